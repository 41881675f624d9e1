"""What a person confirms at every level, ``auto`` included: what destroys work or leaves the working folder (C-33)."""

import re
from fnmatch import fnmatchcase

from . import gitwork
from .code import Code, code_of
from .danger import WRITERS, deletes_found, is_downloader, recursive
from .interpreters import READERS, SHELLS, STDIN, feeds, is_interpreter, script_word
from .programs import loses
from .shell import Script, Simple
from .targets import HOME, is_wild, linked_program, names_git, names_part, outside, settings_of
from .variables import leads_astray
from .words import Word, operands
from .wrappers import joined

_TEXT_ONLY = frozenset({"echo", "printf", ":", "true", "false", "test", "[", "[[", "expr"})
_READERS_OF_FILES = frozenset(
    ["ls", "cat", "head", "tail", "wc", "stat", "file", "find", "grep", "rg", "tree", "du"]
)
_PATTERN_FIRST = frozenset({"sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "rg", "jq"})
_SQL = re.compile(r"(?i)\b(drop\s+(table|database|schema)|truncate\s+table|delete\s+from\s+\S+\s*(;|$))")
_SQL_CLIENTS = frozenset({"psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "duckdb", "clickhouse-client"})
# A file by its name, also behind `REV:` and inside of the code that an interpreter is given (T18); `.env.example` is none.
_SECRETS = re.compile(
    r"""(?:^|[/:=@'"(,])(?:\.(?:env|gnupg|netrc|pgpass)|id_(?:rsa|dsa|ecdsa|ed25519))(?=$|[\s/'"),;|&])"""
)
_SECRET_NAMES = (".env", ".netrc", ".pgpass", ".ssh", ".gnupg")
_NOTHING = re.compile(r"(?!)")
_SCRIPT_FROM_TEXT = re.compile(r"(?:^|\s)(?:-f|--file)[= ]?(?:-|/dev/stdin)(?:\s|$)")
_RULES_FROM_TEXT = {
    **dict.fromkeys(("awk", "gawk", "mawk", "sed"), _SCRIPT_FROM_TEXT),
    **dict.fromkeys(
        ("make", "gmake"),
        re.compile(r"(?:^|\s)(?:-\w*f|--file|--makefile)[= ]?(?:-|/dev/stdin)(?:\s|$)|--eval|(?:^|\s)SHELL="),
    ),
}
# What stands around a path in a word: `of=FILE`, `-d @FILE`, `-v HERE:THERE`.
_PREFIXES = {
    "dd": re.compile(r"^\w+="),
    "curl": re.compile(r"^(?:[^/]*=)?@|^file://"),
    **dict.fromkeys(
        ("docker", "podman", "nerdctl", "docker-compose"),
        re.compile(r"^(?:-v|--volume=)|^.*\b(?:source|src)=|[:,].*$"),
    ),
}
_SAVES = re.compile(r"^(?:-\w*[oO]|--output\S*|--remote-name\S*)")


def confirm(item: Simple, script: Script, roots: tuple[str, ...]) -> str:
    """Why a person must confirm the command; empty when there is no reason. ``roots``: the working folder, then others."""
    reasons = (
        _unreadable(item),
        _fed(item),
        _deletion(item, script),
        _downloaded(item, script),
        gitwork.judge(item),
        loses(item),
        "it ends whatever processes another command found"
        if item.name == "kill" and _started_by(item, script)
        else "",
        _database(item),
        _places(item, roots),
        _environment(item),
    )
    return next((why for why in reasons if why), "")


def _unreadable(item: Simple) -> str:
    first = item.words[0] if item.words else None
    if first is not None and (not first.static or first.glob) and first.text not in ("[", "[["):
        return "which program it runs is known only when it runs"
    if first is not None and re.fullmatch(r"[-%,;=+*^@]+", first.text):
        return "it is no program"
    if item.name in READERS and any(not word.static for word in item.args[:1]):
        return "it runs text that is known only when it runs"
    return ""


_UNSEEN = "it runs text that is known only when it runs"


def _fed(item: Simple) -> str:
    """An interpreter of which the code is not there to be seen: it comes from a pipe, a decoder, a variable."""
    if item.name in SHELLS:
        return _shell_fed(item)
    if item.name in READERS:
        fed = any(word.text in STDIN for word in item.args)
        return _UNSEEN if fed and not feeds(item)[1] else ""
    if item.name == "ssh" and not joined(item) and not feeds(item)[1]:
        return _UNSEEN
    if item.name == "parallel":
        return "" if any(not word.text.startswith("-") for word in item.args) else _UNSEEN
    if _RULES_FROM_TEXT.get(item.name, _NOTHING).search(" ".join(word.text for word in item.args)):
        return "it takes what it runs from a text"
    return _code_fed(code_of(item))


def _shell_fed(item: Simple) -> str:
    word = script_word(item)
    if word is not None:
        echoed = word.text.startswith("<(") and _echoes(item)
        return "" if word.static or echoed else _UNSEEN
    options = [word.text for word in item.args]
    if {"--version", "--help", "-n"} & set(options):
        return ""
    headless = any(re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", text) for text in options)  # `xargs sh -c`
    return _UNSEEN if headless or not feeds(item)[1] else ""


def _code_fed(code: Code | None) -> str:
    if code is None:
        return ""
    if not code.known or code.evaluates:
        return _UNSEEN
    return "its code changes git's own files" if code.names_git else ""


def _echoes(item: Simple) -> bool:
    return all(inside.name in ("echo", "printf") for inside in item.nested)


def _deletion(item: Simple, script: Script) -> str:
    code = code_of(item)
    if code is not None and code.deletes:
        return "its code deletes files"
    if item.name == "find" and deletes_found(item):
        return "it deletes whatever it finds"
    if item.name not in ("rm", "unlink"):
        return _emptied(item)
    if item.name == "rm" and recursive(item):
        return "it deletes folders with everything in them"
    if any(other.name in ("xargs", "find") for other in item.upstream) or _started_by(item, script):
        return "it deletes whatever another command found"
    return _single_files(operands(item.args))


def _single_files(given: tuple[Word, ...]) -> str:
    if any(not word.static for word in given):
        return "which files it deletes is known only when it runs"
    return "it deletes every file of a folder" if any(word.glob and is_wild(word) for word in given) else ""


def _emptied(item: Simple) -> str:
    given = operands(item.args)
    if item.name == "truncate" and any(word.glob for word in given):
        return "it empties files"
    if item.name == "mv" and given and given[-1].text.startswith("/dev/"):
        return "it moves files to nowhere"
    return ""


def _started_by(item: Simple, script: Script) -> bool:
    """Whether a command of the line hands this one its operands (``xargs rm``)."""
    names = ("xargs", "find", "fd", "fdfind", "parallel", "entr")
    return any(
        other.name in names and word in other.args for other in script.commands for word in item.words[:1]
    )


def _downloaded(item: Simple, script: Script) -> str:
    """Something that was fetched earlier in the line and is run now."""
    program = item.words[0].text if item.words else ""
    own = re.match(r"/(?:var/)?tmp/|~|[^/].*/", program) is not None
    runs = own or item.name in READERS or (is_interpreter(item) and code_of(item) is None)
    data = [
        *item.upstream,
        *item.nested,
    ]  # what is piped or substituted in is read, not run (the floor looks at that)
    if not runs or not script.commands:
        return ""
    for other in script.commands:
        if other is item or (other.span[0] >= item.span[0] and item.span != (0, 0)):
            break
        if other not in data and _saves(other, item, script):
            return "it downloads and runs something in one line"
    return ""


def _saves(other: Simple, item: Simple, script: Script) -> bool:
    """Whether ``other`` puts a file from the network where ``item`` could run it."""
    words = [word.text for word in other.args]
    if other.name == "git" and "clone" in words:
        return True
    if other.name == "tee" and any(is_downloader(source) for source in other.upstream):
        return bool({text.rsplit("/", 1)[-1] for text in words} & _names_run(item))
    if not is_downloader(other):
        return False
    if any(w.name in ("tar", "unzip", "bsdtar", "7z", "gunzip") for w in script.commands):
        return True
    targets = [r.target.text for r in other.redirects if r.target is not None and r.writes]
    saved = bool(targets) or other.name in ("wget", "aria2c") or any(_SAVES.match(text) for text in words)
    return saved and any(
        text.rsplit("/", 1)[-1].removeprefix("-o") in _names_run(item) for text in (*words, *targets) if text
    )


def _names_run(item: Simple) -> set[str]:
    """The name of the file that is run: the program itself, or what an interpreter is given."""
    runs = operands(item.args)[:1] if is_interpreter(item) or item.name in READERS else item.words[:1]
    return {word.text.rsplit("/", 1)[-1] for word in runs}


def _database(item: Simple) -> str:
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
        if redirect.writes and (
            names_git(target) or (not target.static and not target.text.startswith((">(", "<(")))
        ):
            return f"it writes to {target.text}"
        if redirect.writes and settings_of(target, item.cwd, roots):
            return f"{target.text} belongs to the settings that the agent works under"
        if outside(target, item.cwd, roots):
            return f"{target.text} is outside of the working folder"
        if _secret(target):
            return f"{target.text} names what may hold secrets"
    code = code_of(item)
    opened = [
        text for text in (code.paths() if code is not None else ()) if outside(_home(text), item.cwd, roots)
    ]
    if opened:
        return f"{opened[0]} is outside of the working folder"
    return next((why for word in _path_words(item) if (why := _place(item, word, roots))), "")


def _home(text: str) -> Word:
    return Word(f"{HOME}{text[1:]}" if text.startswith("~") else text)


def _path_words(item: Simple) -> tuple[Word, ...]:
    """The words that may be paths: not what is only printed, not a pattern or script, not what is left out."""
    if item.name in _TEXT_ONLY:
        return ()
    if item.name in _PREFIXES:
        clean = _PREFIXES[item.name]
        return tuple(Word(clean.sub("", word.text), word.static, word.glob) for word in item.args)
    left_out = [n for n, w in enumerate(item.args) if re.match(r"--(?:exclude|ignore)", w.text)]
    skip = {
        *left_out,
        *(n + 1 for n in left_out if "=" not in item.args[n].text),
    }  # `--exclude=.git`, `--exclude .git`
    given = tuple(word for n, word in enumerate(item.args) if n not in skip)
    if item.name not in _PATTERN_FIRST or any(word.text in ("-e", "-f", "--regexp") for word in item.args):
        return given
    pattern = operands(item.args)[:1]
    return tuple(word for word in given if word not in pattern)


def _place(item: Simple, word: Word, roots: tuple[str, ...]) -> str:
    if _secret(word):
        return f"{word.text[:200]} names what may hold secrets"
    if item.name != "git" and names_git(word) and not _only_reads(item):
        return f"{word.text} is git's own"
    if settings_of(word, item.cwd, roots) and not _only_reads(item):
        return f"{word.text} belongs to the settings that the agent works under"
    program = item.name not in WRITERS and linked_program(word, item.cwd, roots)
    if outside(word, item.cwd, roots) and not program:
        return f"{word.text} is outside of the working folder"
    return ""


def _secret(word: Word) -> bool:
    text = word.text.casefold()
    last = text.rstrip("/").rpartition("/")[2]
    matched = word.glob and last.startswith((".", "[.", "?")) and not is_wild(word)
    return (
        names_part(word, ".ssh")
        or bool(_SECRETS.search(text))
        or (matched and any(fnmatchcase(name, last) for name in _SECRET_NAMES))
    )


def _only_reads(item: Simple) -> bool:
    return item.name in _READERS_OF_FILES and not (item.name == "find" and deletes_found(item))


def _environment(item: Simple) -> str:
    given = list(item.assignments)
    if item.name in SHELLS and any(name == "ENV" for name, _ in given):
        return "ENV names a file that the shell runs first"
    if item.name in ("export", "declare", "typeset", "readonly", "local"):
        given += [
            (w.text.partition("=")[0], Word(w.text.partition("=")[2], w.static))
            for w in item.args
            if "=" in w.text
        ]
    return next((why for name, value in given if (why := leads_astray(name, value))), "")
