"""What a person confirms at every level, ``auto`` included: what destroys work or leaves the working folder (C-33)."""

import re
from itertools import pairwise

from .danger import WRITERS, deletes_found, has_flag, is_downloader, operands, recursive
from .shell import Script, Simple
from .targets import linked_program, names_git, names_part, outside, settings_of
from .unwrap import INTERPRETERS, READERS
from .words import Word

_TEXT_ONLY = frozenset({"echo", "printf", ":", "true", "false", "test", "[", "[["})
_READERS_OF_FILES = frozenset(
    ["ls", "cat", "head", "tail", "wc", "stat", "file", "find", "grep", "rg", "tree", "du"]
)
_PATTERN_FIRST = frozenset({"sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "rg", "jq", "expr"})
_GIT_VALUE = frozenset(
    {"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
)
_GIT_HARMLESS = re.compile(
    r"(?i)^(user\.(name|email)|commit\.gpgsign|color\.[\w.]+|core\.quotepath|advice\.\w+|init\.defaultbranch)="
)
_SQL = re.compile(r"(?i)\b(drop\s+(table|database|schema)|truncate\s+table|delete\s+from\s+\S+\s*(;|$))")
_SQL_CLIENTS = frozenset(
    {"psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "mongosh", "duckdb", "clickhouse-client"}
)
_PROGRAMS = {
    "pkill": "it ends processes by name, also those of others",
    "killall": "it ends processes by name, also those of others",
    "taskkill": "it ends processes by name, also those of others",
    "shred": "it destroys files",
    "crontab": "it changes scheduled jobs",
}
# A file by its name, also behind `REV:` and inside of the code that an interpreter is given (T18); `.env.example` is none.
_SECRETS = re.compile(r"""(?:^|[/:=@'"(,])\.(?:env|gnupg|netrc|pgpass)(?=$|[\s/'"),;|&])""")
_DELETERS = re.compile(
    r"\b(unlink|rmtree|removedirs|rm_rf|rm_r|rmSync|rmdirSync|unlinkSync|remove_dir_all)\b|\brm\s+-\w*[rR]"
)


def confirm(item: Simple, script: Script, roots: tuple[str, ...]) -> str:
    """Why a person must confirm the command; empty when there is no reason. ``roots``: the working folder, then others."""
    reasons = (
        _unreadable(item),
        _deletion(item, script),
        _git(item),
        _programs(item),
        _places(item, roots),
        _environment(item),
    )
    return next((why for why in reasons if why), "")


def git_words(item: Simple) -> tuple[list[str], list[str]]:
    """The options before git's subcommand, and the words from the subcommand on."""
    words = [word.text for word in item.args]
    before: list[str] = []
    while words and words[0].startswith("-"):
        take = 2 if words[0] in _GIT_VALUE else 1
        before.extend(words[:take])
        del words[:take]
    return before, words


def _unreadable(item: Simple) -> str:
    first = item.words[0] if item.words else None
    if first is not None and (not first.static or first.glob) and first.text not in ("[", "[["):
        return "which program it runs is known only when it runs"
    if item.name in READERS and any(not word.static for word in item.args):
        return "it runs text that is known only when it runs"
    return ""


def _deletion(item: Simple, script: Script) -> str:
    found = ("xargs", "find")
    reasons = {
        "rm": "it deletes folders with everything in them"
        if recursive(item)
        else "it deletes whatever another command found"
        if any(other.name in found for other in item.upstream) or _started_by(item, script, found)
        else "",
        "find": "it deletes whatever it finds" if deletes_found(item) else "",
        "rsync": "rsync deletes files at its target"
        if any(w.text.startswith("--del") for w in item.args)
        else "",
    }
    return reasons.get(item.name, "") or (_code(item, script) if item.name in INTERPRETERS else "")


def _code(item: Simple, script: Script) -> str:
    """What an interpreter is given on the command line."""
    given = [b.text for a, b in pairwise(item.args) if a.text in ("-c", "-e", "-E", "-le", "-ne")]
    if any(_DELETERS.search(text) for text in given):
        return "its code deletes files"
    data = (
        *item.upstream,
        *item.nested,
    )  # what is piped or substituted in is read, not run (the floor looks at that)
    if operands(item.args) and any(is_downloader(other) and other not in data for other in script.commands):
        return "it downloads and runs something in one line"
    return ""


def _started_by(item: Simple, script: Script, names: tuple[str, ...]) -> bool:
    """Whether a command of the line hands this one its operands (``xargs rm``)."""
    return any(
        other.name in names and word in other.args for other in script.commands for word in item.words[:1]
    )


def _git(item: Simple) -> str:
    if item.name != "git":
        return ""
    before, words = git_words(item)
    for number, text in enumerate(before):
        if text == "-c":
            if not _GIT_HARMLESS.match(before[number + 1] if number + 1 < len(before) else ""):
                return "git with a setting of its own (-c) can run any program"
        elif text.startswith(("-C", "--git-d", "--work-t", "--exec-p", "--config-e", "--namesp")):
            return f"git {text} leads git to another place"
    command, rest = (words[0] if words else ""), words[1:]
    return _git_subcommand(command, rest, item)


def _git_subcommand(command: str, rest: list[str], item: Simple) -> str:
    start = next((n for n, w in enumerate(item.args) if w.text == command), 0)
    args = item.args[start + 1 :]
    loses = {
        "reset": has_flag(args, "", "--hard", "--merge", "--keep"),
        "clean": not has_flag(args, "n", "--dry-run"),
        "checkout": "." in rest or "--" in rest or has_flag(args, "f", "--force", "--orphan"),
        "switch": has_flag(args, "fC", "--force", "--discard-changes", "--force-create"),
        "restore": not (has_flag(args, "S", "--staged") and not has_flag(args, "W", "--worktree")),
        "rm": not has_flag(args, "", "--cached") and (has_flag(args, "rf", "--force") or "." in rest),
        "stash": rest[:1] not in (["list"], ["show"]),
        "branch": has_flag(
            args, "DMCmf", "--force", "--move"
        )  # a rename gets past the fence of an agent's worktree
        or (has_flag(args, "d", "--delete") and has_flag(args, "f")),
        "tag": has_flag(args, "df", "--delete", "--force"),
        "reflog": rest[:1] in (["expire"], ["delete"], ["drop"]),
        "push": has_flag(args, "fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune")
        or any(t.startswith(("+", ":")) for t in rest),
        "worktree": rest[:1] != ["list"],
        "config": _writes_config(rest),
        "gc": any(t.startswith("--prune") for t in rest),
        "submodule": rest[:1] in (["deinit"], ["foreach"], ["update"]),
    }
    always = (
        "update-ref",
        "filter-branch",
        "filter-repo",
        "prune",
        "replace",
        "symbolic-ref",
        "remote-ext",
        "difftool",
        "mergetool",
    )
    if command in always or (command == "symbolic-ref" and len(rest) > 1) or loses.get(command):
        return f"git {command} in this form can lose work, run programs or change the repository's set-up"
    return ""


def _writes_config(rest: list[str]) -> bool:
    reads = ("--get", "--list", "-l", "--get-all", "--get-regexp", "get", "list", "--show-origin")
    return not any(text in reads for text in rest) and len([t for t in rest if not t.startswith("-")]) != 1


def _programs(item: Simple) -> str:
    if item.name in _PROGRAMS:
        return _PROGRAMS[item.name]
    if item.name == "kill" and any(word.text == "-1" for word in item.args[1:]):
        return "it ends every process of the user"
    if item.name == "kill" and any(re.search(r"\$\{?PPID", word.text) for word in item.args):
        return "it ends the process that started it"
    if item.name == "fuser" and has_flag(item.args, "k", "--kill"):
        return "it ends whatever uses a file or port, also processes of others"
    if item.name in _SQL_CLIENTS:
        text = " ".join(word.text for word in item.args) + " " + " ".join(r.text for r in item.redirects)
        before = " ".join(w.text for other in item.upstream for w in other.args)
        if _SQL.search(text) or _SQL.search(before):
            return "it deletes data of a database"
    return ""


def _places(item: Simple, roots: tuple[str, ...]) -> str:
    for redirect in item.redirects:
        target = redirect.target
        if target is None:
            continue
        if redirect.writes and (names_git(target) or (not target.static and not item.nested)):
            return f"it writes to {target.text}"
        if redirect.writes and settings_of(target, item.cwd, roots):
            return f"{target.text} belongs to the settings that the agent works under"
        if outside(target, item.cwd, roots):
            return f"{target.text} is outside of the working folder"
    return next((why for word in _path_words(item) if (why := _place(item, word, roots))), "")


def _path_words(item: Simple) -> tuple[Word, ...]:
    """The words that may be paths: not what is only printed, not a pattern or script."""
    if item.name in _TEXT_ONLY:
        return ()
    if item.name not in _PATTERN_FIRST or any(word.text in ("-e", "-f", "--regexp") for word in item.args):
        return item.args
    pattern = operands(item.args)[:1]
    return tuple(word for word in item.args if word not in pattern)


def _place(item: Simple, word: Word, roots: tuple[str, ...]) -> str:
    if names_part(word, ".ssh") or _SECRETS.search(word.text.casefold()):
        return f"{word.text[:200]} names what may hold secrets"
    if item.name != "git" and names_git(word) and not _only_reads(item):
        return f"{word.text} is git's own"
    if settings_of(word, item.cwd, roots) and not _only_reads(item):
        return f"{word.text} belongs to the settings that the agent works under"
    program = item.name not in WRITERS and linked_program(word, item.cwd, roots)
    if outside(word, item.cwd, roots) and not program:
        return f"{word.text} is outside of the working folder"
    return ""


def _only_reads(item: Simple) -> bool:
    return item.name in _READERS_OF_FILES and not (item.name == "find" and deletes_found(item))


def _environment(item: Simple) -> str:
    for name, _ in item.assignments:
        if name.startswith("GIT_") and name not in (
            "GIT_PAGER",
            "GIT_TERMINAL_PROMPT",
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
            "GIT_OPTIONAL_LOCKS",
        ):
            return f"{name} leads git to another place or program"
        if name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "PROMPT_COMMAND"):
            return f"{name} makes programs run other code"
    if item.name in ("export", "declare", "typeset") and any(
        w.text.startswith(("GIT_", "LD_", "BASH_ENV")) for w in item.args
    ):
        return "it changes where git or programs find their code"
    return ""
