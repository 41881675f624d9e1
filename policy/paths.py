"""Paths a model names: which of them lie inside the folder an agent works in, spelled and real (FIL-15)."""

import os
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError

_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))
# Characters that HFS+ ignores in names: `.g<ZWNJ>it` is `.git` there (CVE-2014-9390).
_IGNORABLE = re.compile("[\u200c-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff]")
_HINT = "Use a path inside the working folder."


def confine(path: str, root: Path, extra_roots: tuple[Path, ...] = (), *, follow: bool = True) -> Path:
    """The real path of ``path`` (absolute, or relative to ``root``), which need not exist.

    Both the path as spelled (``..`` folded) and the path after following every link must lie in ``root`` or in one of
    ``extra_roots`` (the scratch folder), and neither may touch git's own files: ``.git`` in any case, file or folder,
    present or not. With ``follow=False`` a link as the last part is not followed: to delete or move the link itself.

    Raises:
        OpenDevError: ``SCOPE``, with the path and the reason.
    """
    if not path or "\0" in path:
        raise _refused(path, "it is empty or holds a NUL byte")
    if path.startswith("~"):
        raise _refused(path, "`~` is not expanded here")
    roots = tuple(_real(item) for item in (root, *extra_roots))
    spelled = Path(os.path.normpath(roots[0] / path))  # lexical on purpose: links are judged by the real path
    try:
        real = _real(roots[0] / path) if follow else _real_parent(roots[0] / path)
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(path, f"it cannot be resolved ({error})") from error
    for candidate in (spelled, real):
        home = next((item for item in roots if candidate.is_relative_to(item)), None)
        if home is None:
            raise _refused(path, "it leads outside of the working folder")
        _check_parts(path, candidate, home)
    return real


def relative(path: Path, root: Path) -> str:
    """``path`` relative to ``root``, parts separated by ``/``; an absolute path when it lies outside (the scratch folder)."""
    real = _real(root)
    return below(path, real if path.is_relative_to(real) else root)


def below(path: Path, top: Path) -> str:
    """The same for a ``top`` that is real already."""
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else path.as_posix()


def is_git_name(part: str) -> bool:
    """Whether a file system could take this name for ``.git``: the NTFS short name, too."""
    return folded(part) in (".git", "git~1")


@lru_cache(maxsize=4_096)
def folded(part: str) -> str:
    """A name as the most forgiving file system compares it: case, composition, ignorable characters, trailing dots, streams (T06)."""
    text = unicodedata.normalize("NFC", _IGNORABLE.sub("", part)).casefold()
    return text.split(":", 1)[0].rstrip(". ")


def _check_parts(path: str, candidate: Path, home: Path) -> None:
    if any(is_git_name(part) for part in candidate.relative_to(home).parts):
        raise _refused(path, "git's own files are off limits", "Use git commands instead.")
    if any(candidate.is_relative_to(item) for item in _KERNEL):
        raise _refused(path, "it belongs to the kernel, not to the project")


def _real(path: Path) -> Path:
    """Every link followed; raises ``RuntimeError`` on a loop of links."""
    return path.resolve(strict=False)


def _real_parent(path: Path) -> Path:
    folded = Path(os.path.normpath(path)) if path.name in ("", ".", "..") else path
    return _real(folded.parent) / folded.name


def _refused(path: str, why: str, hint: str = _HINT) -> OpenDevError:
    shown = ascii(path) if not path.isprintable() else path
    return OpenDevError(ErrorKind.SCOPE, f"The path {shown[:300]} is refused: {why}.", hint)
