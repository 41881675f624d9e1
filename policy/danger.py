"""The hard floor: what never runs, at no level and by no rule (APR-04, SHL-02, C-33). Judged at command position (T-10)."""

import re
from collections.abc import Callable
from itertools import pairwise

from .code import code_of
from .interpreters import READERS, SHELLS, STDIN, is_interpreter
from .shell import Simple
from .targets import absolute as absolute_path
from .targets import is_device, is_protected, names_part, protected
from .words import Word, has_flag, names, operands
from .wrappers import WRAPPERS

_DOWNLOADERS = names(
    "curl wget fetch aria2c lwp-request lynx links w3m http https xh ftp tftp nc ncat netcat socat GET"
)
# Other programs of which the words say that they fetch.
_REMOTE = {
    "ssh": r"", "scp": r":", "gh": r"^(?:api|gist view|release download)", "aws": r"s3 cp s3:", "gsutil": r"^(?:cat|cp)", "rsync": r"\w:",
    "git": r"^archive --remote",
}  # fmt: skip
_ESCALATE = names("sudo doas su pkexec run0 sudoedit runuser gosu su-exec chroot nsenter machinectl")
_DISKS = names(
    "fdisk sfdisk sgdisk gdisk parted wipefs blkdiscard mkswap hdparm cfdisk mke2fs mkdosfs mkntfs newfs badblocks cryptsetup pvcreate "
    "pvremove vgremove lvremove nvme diskutil"
)
_VOLUMES = {
    "lvremove": "",
    "vgremove": "",
    "zpool": r"^(?:destroy|labelclear)",
    "diskutil": r"(?i)^(?:erase|partition|zero|secure)",
}
_POWER = frozenset({"reboot", "shutdown", "halt", "poweroff", "telinit", "kexec"})
WRITERS = frozenset({"tee", "cp", "mv", "shred", "truncate", "install", "ln", "rsync", "sponge", "pv"})
_MODE = re.compile(r"([ugoa]*)[+=]([rwxXst]+)")
_SECRET_FOLDERS = (".ssh", ".gnupg")


def floor(item: Simple, root: str) -> str:
    """Why the command is never run; empty when the floor has nothing against it."""
    return next((why for rule in RULES if (why := rule(item, root))), "")


def recursive(item: Simple) -> bool:
    """Whether this ``rm`` deletes folders with all they hold."""
    return has_flag(item.args, "rR", "--recursive")


def deletes_found(item: Simple) -> bool:
    """Whether this ``find`` deletes what it finds."""
    texts = [word.text for word in item.args]
    if "-delete" in texts:
        return True
    starts = [texts[i + 1 :] for i, t in enumerate(texts[:-1]) if t in ("-exec", "-execdir", "-ok", "-okdir")]
    removes = re.compile(r"(?:^|[\s/;&|'\"(])(?:rm|rmdir|unlink|shred|truncate)(?:\s|$)")
    return any(removes.search(" ".join(start)) for start in starts)


def is_downloader(item: Simple) -> bool:
    """Whether the command fetches from the network."""
    if item.name in _DOWNLOADERS or any(
        (r.target and r.target.text.startswith("/dev/tcp/")) for r in item.redirects
    ):
        return True
    words = _REMOTE.get(item.name)
    return words is not None and bool(re.search(words, _text(item)))


def _text(item: Simple) -> str:
    return " ".join(word.text for word in item.args)


def _rm(item: Simple, root: str) -> str:
    if item.name != "rm" or not recursive(item):
        return ""
    if has_flag(item.args, "", "--no-preserve-root"):
        return "rm with --no-preserve-root"
    bad = [word.text for word in operands(item.args) if protected(word, item.cwd, root)]
    return f"it deletes {', '.join(bad)} with everything in it" if bad else ""


def _find(item: Simple, _root: str) -> str:
    if item.name == "find" and deletes_found(item) and _finds_protected(item):
        return "it deletes everything it finds under a protected folder"
    if item.name in ("rm", "xargs") and any(o.name == "find" and _finds_protected(o) for o in item.upstream):
        removes = item.name == "rm" or any(word.text.rsplit("/", 1)[-1] == "rm" for word in item.args)
        return "it deletes everything found under a protected folder" if removes else ""
    return ""


def _finds_protected(item: Simple) -> bool:
    starts: list[Word] = []
    for word in item.args:
        if word.text.startswith(("-", "(", "!")) and word.text not in ("-H", "-L", "-P", "--"):
            break
        starts.append(word)
    starts = [word for word in starts if not word.text.startswith("-")] or [Word(".")]
    # The working folder itself is an ordinary start of a search; its deletion asks (confirm).
    return any(word.static and protected(word, item.cwd, "") for word in starts)


def _moved(item: Simple, _root: str) -> str:
    """Folders that are moved away, or emptied by the deletions of a copy."""
    given = operands(item.args)
    if item.name == "mv" and any(protected(word, item.cwd, "") and word.text != "*" for word in given[:-1]):
        return "it moves a protected folder away"
    deletes = item.name == "rsync" and any(word.text.startswith("--del") for word in item.args)
    if deletes and given and protected(given[-1], item.cwd, ""):
        return "it deletes what is in a protected folder"
    if item.name in ("rimraf", "trash", "trash-put", "del-cli", "gio", "rmdir") and any(
        (path := absolute_path(word, item.cwd)) is not None and is_protected(path, "") for word in given
    ):
        return "it deletes a protected folder"
    return ""


def _escalation(item: Simple, _root: str) -> str:
    takes = item.name in _ESCALATE or (item.name == "setpriv" and "id=" in _text(item))
    return f"{item.name} takes the rights of another user" if takes else ""


def _modes(item: Simple, _root: str) -> str:
    if item.name not in ("chmod", "chown", "chgrp"):
        return ""
    args = operands(item.args)
    if item.name == "chmod" and args and _everybody(args[0].text):
        return "chmod 777 lets everybody write"
    if has_flag(item.args, "R", "--recursive") and any(protected(w, item.cwd, "") for w in args):
        return f"{item.name} of a protected folder with everything in it"
    return ""


def _everybody(mode: str) -> bool:
    """Whether everybody may read, write and run it then."""
    clauses = (_MODE.fullmatch(clause) for clause in mode.split(","))
    symbolic = any(found and set("oa") & set(found[1]) and set("rwx") <= set(found[2]) for found in clauses)
    return symbolic or bool(re.fullmatch(r"0*[0-7]?777", mode))


def _disks(item: Simple, _root: str) -> str:
    name = item.name
    device = any(is_device(word, item.cwd) for word in item.args)
    if name == "dd":
        targets = [Word(w.text[3:], w.static) for w in item.args if w.text.startswith("of=")]
        return "dd writes over a device" if any(is_device(word, item.cwd) for word in targets) else ""
    if name in _VOLUMES and re.search(_VOLUMES[name], _text(item)):
        return f"{name} destroys a volume"
    if (name in _DISKS or name == "mkfs" or name.startswith("mkfs.")) and device:
        return f"{name} writes over a device"
    if name in WRITERS and device:
        return f"{name} writes to a device"
    return ""


def _redirects(item: Simple, _root: str) -> str:
    for redirect in item.redirects:
        if not redirect.writes or redirect.target is None:
            continue
        path = absolute_path(redirect.target, item.cwd) or ""
        if is_device(redirect.target, item.cwd):
            return "it writes to a device"
        if re.match(r"/(?:etc|boot|sys|proc|bin|sbin|usr|lib)/", path):
            return f"it writes to the system's {path}"
        if any(names_part(redirect.target, folder) for folder in _SECRET_FOLDERS):
            return f"it writes to {redirect.target.text}"
    return ""


def _power(item: Simple, _root: str) -> str:
    words = [word.text for word in item.args]
    if item.name in _POWER or (item.name == "init" and words[:1] in (["0"], ["6"])):
        return "it stops the machine"
    if item.name in ("systemctl", "loginctl") and {
        *("poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "isolate", "rescue", "emergency")
    } & set(words):
        return "it stops the machine"
    return ""


def _remote_code(item: Simple, _root: str) -> str:
    """A download that is run: from a pipe, or by a substitution at the place where the code stands."""
    network = "it runs code straight from the network"
    first = item.words[0] if item.words else None
    if first is not None and not first.static and any(_fetches(other) for other in item.nested):
        return network  # `$(curl …)`
    if _fetches(item) and any(inner.name in SHELLS and not inner.args for inner in item.nested):
        return network  # `curl … > >(sh)`
    if item.name in SHELLS and any(
        (r.target and r.target.text.startswith("/dev/tcp/")) for r in item.redirects
    ):
        return "it hands a shell to the network"
    runs = (
        is_interpreter(item)
        or item.name in READERS
        or item.name in ("at", "batch", "crontab", "make", "gmake")
    )
    if not runs:
        return ""
    code = _code_words(item)
    inside = any(is_downloader(other) for other in item.nested) and (
        any(not word.static for word in code)
        or any(
            r.operator in ("<", "<<<", "<<") and (r.target is None or not r.target.static)
            for r in item.redirects
        )
    )
    return (
        network
        if inside or (any(_fetches(other) for other in item.upstream) and _reads_code(item, code))
        else ""
    )


def _reads_code(item: Simple, code: tuple[Word, ...]) -> bool:
    """Whether what comes by the pipe is code: `curl … | python3 -m json.tool` reads data."""
    if item.name in ("make", "gmake"):
        return any(word.text in ("-f-", "--file=-", "-") or word.text in STDIN for word in item.args)
    if item.name in READERS:
        return any(word.text in STDIN or not word.static for word in item.args)
    # An interpreter without code of its own runs what it is given; `deno run -` says so.
    return (
        item.name in (*SHELLS, "at", "batch", "crontab")
        or not code
        or any(word.text in STDIN for word in item.args)
    )


def _code_words(item: Simple) -> tuple[Word, ...]:
    """Where an interpreter's code comes from: the words after ``-c``/``-e``/``-m``, else its first operand (``eval``: all)."""
    if item.name in READERS:
        return item.args
    given = tuple(
        b for a, b in pairwise(item.args) if re.fullmatch(r"-[A-Za-z]*[cemr]|-n?p?e|--eval", a.text)
    )
    return given or tuple(word for word in operands(item.args) if word.text not in STDIN)[:1]


def _fetches(item: Simple) -> bool:
    return is_downloader(item) or (
        item.name in WRAPPERS and any(word.text in _DOWNLOADERS for word in item.args)
    )


def _code(item: Simple, _root: str) -> str:
    """What can be seen in the code that an interpreter is given."""
    code = code_of(item)
    return code.floor if code is not None else ""


RULES: tuple[Callable[[Simple, str], str], ...] = (
    _rm,
    _find,
    _escalation,
    _modes,
    _disks,
    _redirects,
    _power,
    _remote_code,
    _moved,
    _code,
)
