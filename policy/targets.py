"""Which folders a command line names: absolute, folded, home resolved to a marker; and which of them must never be destroyed."""

import os
import re
from pathlib import PurePosixPath

from .paths import folded, is_git_name
from .words import Word

SETTINGS = frozenset({".opendev", ".mcp.json"})  # what would widen an agent's own rights
HOME = "/home/~"  # stands for the user's home, whose place this room does not know
_SYSTEM = frozenset(
    [
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/lib32",
        "/lib64",
        "/media",
        "/mnt",
        "/opt",
        "/proc",
        "/root",
        "/run",
        "/sbin",
        "/srv",
        "/sys",
        "/usr",
        "/var",
        "/Applications",
        "/Library",
        "/System",
        "/Users",
        "/Volumes",
        "/private",
    ]
)
_WILD = re.compile(r"^(?:[*?]|\[[^\]]*\])+$|^\.(?:[*?]|\[[^\]]*\])+$")
_DEVICE = re.compile(
    r"^/dev/(?:sd|hd|a?da\d|vd|xvd|nvme|mmcblk|loop|dm-|md|mapper/|disk|rdisk|sr|zram|mem$|kmem$|port$)"
)
_HARMLESS = re.compile(r"^/dev/(?:null|zero|full|u?random|tty|std(?:in|out|err)|fd/\d+)$")


def absolute(word: Word, cwd: str | None) -> str | None:
    """The folded absolute path a word names, None when it is not known (a variable, an unknown folder)."""
    if not word.static or not word.text:
        return None
    if not word.text.startswith("/"):
        if cwd is None:
            return None
        return _fold(f"{cwd}/{word.text}")
    return _fold(word.text)


def protected(word: Word, cwd: str | None, root: str) -> bool:
    """Whether destroying what ``word`` names is a catastrophe: ``/``, system folders, a home, the working folder as a whole
    or a folder above it, or everything inside one of them (``/*``). T-10: exactly these; ``/tmp/x`` is none of them."""
    path = absolute(word, cwd)
    if path is None:
        # `cd "$X" && rm -rf *`: an empty variable leaves the shell in some other folder.
        return (
            word.static
            and bool(_WILD.match(PurePosixPath(word.text).name or ""))
            and "/" not in word.text.strip("./")
        )
    folder, _, last = path.rpartition("/")
    if word.glob and _WILD.match(last):
        path = folder or "/"
    return is_protected(path, root)


def is_wild(word: Word) -> bool:
    """Whether the wildcard stands for everything in a folder, or in all folders below."""
    return bool(_WILD.match(word.text.rpartition("/")[2])) or "**" in word.text


def is_protected(path: str, root: str) -> bool:
    """The same for a folded absolute path."""
    if path == "/" or path in _SYSTEM or re.fullmatch(r"/(?:home|Users)/[^/]+", path):
        return True
    return path == root or root.startswith(f"{path}/")


def is_device(word: Word, cwd: str | None) -> bool:
    """Whether it is a disk or the machine's memory."""
    path = absolute(word, cwd)
    return path is not None and bool(_DEVICE.match(path))


def outside(word: Word, cwd: str | None, roots: tuple[str, ...]) -> bool:
    """Whether ``word`` names a path outside of every root.

    An absolute word counts as a path only when its first part exists at ``/``, so that a pattern (``/mkfs/``) does not;
    a relative one when it climbs out. Unknown words do not count: they are judged elsewhere.
    """
    text = word.text
    if "=" in text and text.startswith("-"):
        word = Word(text.split("=", 1)[1], word.static, word.glob)
        text = word.text
    if not word.static or not text or re.match(r"^[a-z][a-z0-9+.-]*://", text):
        return False
    if text.startswith("/"):
        path = _fold(text)
        if _HARMLESS.match(path) or not (path.startswith(HOME) or path == "/" or _exists(path)):
            return False
        spelled = text
    else:
        climbs, spelled = ".." in text.split("/"), f"{cwd}/{text}"
        found = absolute(word, cwd)
        if found is None or not (climbs or _within(found, roots)):
            return climbs
        path = found
    return not _within(path, roots) or _led_out((path, spelled), roots)


def linked_program(word: Word, cwd: str | None, roots: tuple[str, ...]) -> bool:
    """Whether it is a program of the project's own ``bin`` folder that is a link to the system's: ``.venv/bin/python``."""
    path = absolute(word, cwd)
    if path is None or not _within(path, roots) or PurePosixPath(path).parent.name not in ("bin", ".bin"):
        return False
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - texts of a command, no paths of ours


def settings_of(word: Word, cwd: str | None, roots: tuple[str, ...]) -> bool:
    """Whether ``word`` names a file below a root that widens the agent's own rights, also one that does not exist yet."""
    path = absolute(word, cwd) or word.text
    names = {path, *re.split(r"""[\s=:,;|&()'"`]+""", word.text)}
    for name in names:
        root = next((item for item in roots if name.startswith(f"{item.rstrip('/')}/")), "")
        if {folded(part) for part in name[len(root) :].split("/")} & SETTINGS:
            return bool(root) or not name.startswith("/")
    return False


def _within(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == item or path.startswith(f"{item.rstrip('/')}/") for item in roots)


def _led_out(paths: tuple[str, ...], roots: tuple[str, ...]) -> bool:
    """Whether links lead from inside of the roots to a place outside (T02); ``..`` counts from where a link leads."""
    if any("\0" in path for path in paths):
        return True
    real = [os.path.realpath(path) for path in dict.fromkeys(paths)]
    if all(_within(path, roots) for path in real):
        return False
    tops = tuple({*roots, *(os.path.realpath(item) for item in roots)})
    return not all(_within(path, tops) for path in real)


def names_part(word: Word, part: str) -> bool:
    """Whether a part of the path is ``part``, in any case (``.ssh``)."""
    return any(piece.casefold() == part for piece in re.split(r"[/=:]", word.text))


def names_git(word: Word) -> bool:
    """Whether a part of the path is git's own folder."""
    return any(is_git_name(piece) for piece in re.split(r"[/=]", word.text))


def _fold(text: str) -> str:
    return "/" + os.path.normpath(text).lstrip("/")


def _exists(path: str) -> bool:
    return os.path.lexists("/" + path.split("/", 2)[1])
