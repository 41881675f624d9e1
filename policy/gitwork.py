"""What git can lose, run or change in the set-up that all checkouts share: confirmed at every level (C-33, S15, S34, T08)."""

import os
import re
from collections.abc import Callable

from .shell import Simple
from .words import Word, has_flag, names, operands

_VALUE = frozenset(
    {
        "-c",
        "-C",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--config-env",
        "--super-prefix",
        "--attr-source",
    }
)
_HARMLESS = re.compile(
    r"(?i)^(user\.(name|email)|commit\.gpgsign|color\.[\w.]+|core\.quotepath|advice\.\w+|init\.defaultbranch|diff\.(renames|algorithm)"
    r"|core\.(autocrlf|safecrlf)|merge\.conflictstyle|pull\.(rebase|ff)|push\.default)="
)
# Options of any subcommand that name a program, a folder of hooks, or a file to write.
_PROGRAMS = (
    *(
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--open-files-in-pager",
        "--extcmd",
        "--ext-diff",
        "--smtp-server",
    ),
    *("--template", "--tool", "--gpg-program"),
)
_ALWAYS = names(
    "update-ref filter-branch filter-repo prune replace remote-ext remote-fd difftool mergetool fast-import daemon instaweb credential "
    "credential-store send-email maintenance sparse-checkout checkout-index update-index unpack-objects hook upload-pack receive-pack "
    "shell http-backend web--browse gui citool request-pull imap-send svn p4 cvsimport archimport quiltimport prune-packed"
) - {"update-index", "request-pull"}
_READS_CONFIG = re.compile(
    r"--(?:get|list|get-all|get-regexp|get-urlmatch|show-origin|show-scope|local|global|system|worktree|bool|int|path|null|name-only|type=\w+"
    r"|includes|no-includes|default=.*)|-[lz]"
)


def git_words(item: Simple) -> tuple[list[str], list[str]]:
    """The options before git's subcommand, and the words from the subcommand on."""
    words = [word.text for word in item.args]
    before: list[str] = []
    while words and words[0].startswith("-"):
        take = 2 if words[0] in _VALUE else 1
        before.extend(words[:take])
        del words[:take]
    return before, words


def judge(item: Simple) -> str:
    """Why this use of git is confirmed; empty when there is no reason."""
    if item.name != "git":
        return ""
    before, words = git_words(item)
    for number, text in enumerate(before):
        if text == "-c":
            if not _HARMLESS.match(before[number + 1] if number + 1 < len(before) else ""):
                return "git with a setting of its own (-c) can run any program"
        elif text.startswith(("-C", "--git-d", "--work-t", "--exec-p", "--config-e", "--namesp", "--attr-s")):
            return f"git {text} leads git to another place"
    if not words:
        return ""
    start = len(before)
    if any(not word.static for word in item.args[: start + 1]):
        return "which part of git it runs is known only when it runs"
    return _subcommand(words[0], item.args[start + 1 :], item)


def _subcommand(command: str, args: tuple[Word, ...], item: Simple) -> str:
    texts = [word.text for word in args]
    if has_flag(args, "", *_PROGRAMS) or any(text.startswith(("ext::", "fd::")) for text in texts):
        return f"git {command} with a program of its own can run anything"
    loses = _LOSES.get(command)
    if command in _ALWAYS or (loses is not None and loses(args, item)):
        return f"git {command} in this form can lose work, run programs or change the repository's set-up"
    return ""


def _checkout(args: tuple[Word, ...], item: Simple) -> bool:
    """Whether it writes over files: a path, a force, a place to start anew."""
    texts = [word.text for word in args]
    if "--" in texts or has_flag(
        args, "fBp", "--force", "--orphan", "--ours", "--theirs", "--patch", "--merge", "--pathspec-from-file"
    ):
        return True
    if has_flag(args, "b"):
        return False
    given = operands(args)
    paths = [w for w in given if w.glob or re.match(r"\.{1,2}(/|$)|:", w.text) or _is_file(w, item)]
    return bool(paths) or len(given) > 1


def _is_file(word: Word, item: Simple) -> bool:
    return (
        bool(item.cwd)
        and word.static
        and "\0" not in word.text
        and os.path.lexists(f"{item.cwd}/{word.text}")
    )


def _restore(args: tuple[Word, ...], _item: Simple) -> bool:
    return not (has_flag(args, "S", "--staged") and not has_flag(args, "W", "--worktree"))


def _remove(args: tuple[Word, ...], _item: Simple) -> bool:
    return not has_flag(args, "", "--cached") and (
        has_flag(args, "rf", "--force") or any(w.text == "." or w.glob for w in args)
    )


def _branch(args: tuple[Word, ...], _item: Simple) -> bool:
    # A rename gets past the fence of an agent's worktree.
    return has_flag(args, "DMCmf", "--force", "--move") or (
        has_flag(args, "d", "--delete") and has_flag(args, "f")
    )


def _push(args: tuple[Word, ...], _item: Simple) -> bool:
    forced = has_flag(
        args, "fd", "--force", "--force-with-lease", "--force-if-includes", "--delete", "--mirror", "--prune"
    )
    return forced or any(word.text.startswith(("+", ":")) for word in args)


def _config(args: tuple[Word, ...], _item: Simple) -> bool:
    texts = [word.text for word in args]
    flags, rest = [t for t in texts if t.startswith("-")], [t for t in texts if not t.startswith("-")]
    if not all(_READS_CONFIG.fullmatch(flag) for flag in flags):
        return True
    reads = any(re.match(r"--(?:get|list)|-l", flag) for flag in flags) or rest[:1] in (["get"], ["list"])
    return not reads and len(rest) != 1


def _first(*harmless: str) -> Callable[[tuple[Word, ...], Simple], bool]:
    """Everything but these subcommands of the subcommand."""
    return lambda args, _item: not args or args[0].text not in harmless


def _one_of(*harmful: str) -> Callable[[tuple[Word, ...], Simple], bool]:
    return lambda args, _item: bool(args) and args[0].text in harmful


def _flag(letters: str, *names: str) -> Callable[[tuple[Word, ...], Simple], bool]:
    return lambda args, _item: has_flag(args, letters, *names)


_LOSES: dict[str, Callable[[tuple[Word, ...], Simple], bool]] = {
    "reset": _flag("", "--hard", "--merge", "--keep"),
    "clean": lambda args, _item: not has_flag(args, "n", "--dry-run"),
    "checkout": _checkout,
    "switch": _flag("fC", "--force", "--discard-changes", "--force-create", "--orphan"),
    "restore": _restore,
    "rm": _remove,
    "stash": _first("list", "show"),
    "branch": _branch,
    "tag": _flag("df", "--delete", "--force"),
    "reflog": _one_of("expire", "delete", "drop"),
    "push": _push,
    "worktree": _first("list"),
    "config": _config,
    "gc": _flag("", "--prune"),
    "submodule": _one_of("deinit", "foreach", "update", "add", "set-url", "sync", "absorbgitdirs"),
    "symbolic-ref": lambda args, _item: len(operands(args)) > 1 or has_flag(args, "d", "--delete"),
    "remote": lambda args, _item: bool(operands(args)) and operands(args)[0].text not in ("show", "get-url"),
    "rebase": _flag("x", "--exec"),
    "bisect": _one_of("run", "visualize"),
    "notes": _one_of("prune", "remove", "merge"),
    "lfs": _one_of("prune", "uninstall", "migrate"),
    "read-tree": _flag("um", "--reset"),
    "clone": _flag("uc", "--config", "--separate-git-dir"),
    "init": _flag("", "--bare", "--separate-git-dir"),
    "grep": _flag("O"),
    "apply": lambda args, _item: any(".git" in word.text.split("/") or ".git" in word.text.split("=") for word in args),
    "archive": _flag("", "--remote"),
    "format-patch": lambda args, _item: any(word.text.startswith(("/", "..")) for word in args),
}  # fmt: skip
