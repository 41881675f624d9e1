"""Which folders a command line names: absolute, folded, home resolved to a marker; and which of them must never be destroyed."""

import os
import re
from pathlib import PurePosixPath

from .paths import is_git_name
from .words import Word

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
    r"^/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|loop|dm-|md|mapper/|disk|rdisk|sr|zram|mem$|kmem$|port$)"
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
    elif ".." in text.split("/"):
        found = absolute(word, cwd)
        if found is None:
            return True
        path = found
    else:
        return False
    return not any(path == item or path.startswith(f"{item.rstrip('/')}/") for item in roots)


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
