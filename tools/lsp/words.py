"""A word as text: which files of a tree hold it, and on which lines (trap T-19)."""

import contextlib
import io
import os
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SKIP = frozenset({"node_modules", "__pycache__", "__pypackages__", "site-packages", "venv", "virtualenv"})
_MAX_FILE = 4_000_000  # bytes; larger files are data
_MAX_FILES = 50_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file changed without reading it."""

    mtime_ns: int
    size: int


def tree(root: Path, suffixes: frozenset[str] | None = None) -> dict[str, Stamp]:
    """Root-relative path and stamp of the regular files below ``root``: no links, hidden folders, virtual environments,
    installed packages, or other repositories nested in it. At most 50,000 files of at most 4 MB; blocking."""
    found: dict[str, Stamp] = {}
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not _foreign(Path(folder), n))
        for name in sorted(files):
            if suffixes is not None and Path(name).suffix.lower() not in suffixes:
                continue
            stamp = _stamp(Path(folder, name))
            if stamp is not None:
                found[Path(folder, name).relative_to(root).as_posix()] = stamp
            if len(found) >= _MAX_FILES:
                return found
    return found


def _foreign(folder: Path, name: str) -> bool:
    inner = folder / name
    return (
        name.startswith(".")
        or name in _SKIP
        or inner.is_symlink()
        or (inner / "pyvenv.cfg").exists()
        or (inner / ".git").exists()
    )


def _stamp(path: Path) -> Stamp | None:
    try:
        seen = path.lstat()
    except OSError:
        return None
    regular = (seen.st_mode & 0o170000) == 0o100000
    return Stamp(seen.st_mtime_ns, seen.st_size) if regular and seen.st_size <= _MAX_FILE else None


def holding(root: Path, paths: Iterator[str] | list[str], pattern: str) -> tuple[str, ...]:
    """Those of ``paths`` whose text holds the identifier ``pattern`` (``*`` stands for any part of it); blocking."""
    word = word_pattern(pattern)
    return tuple(path for path in paths if (text := text_of(root / path)) is not None and word.search(text))


def word_pattern(pattern: str) -> "re.Pattern[str]":
    """A whole identifier; Unicode letters count."""
    inner = r"\w*".join(re.escape(part) for part in pattern.split("*"))
    return re.compile(rf"(?<!\w){inner}(?!\w)")


def text_of(path: Path) -> str | None:
    """The file as UTF-8 text; None when it is gone, binary or in another encoding. Line ends stay as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One line that holds a word; ``code``: as a name in Python code, not only in a string, comment or other file."""

    path: str
    line: int  # from 1
    text: str
    code: bool


def occurrences(root: Path, word: str, limit: int) -> tuple[Occurrence, ...]:
    """Every line of any text file that still holds ``word``, at most ``limit``; blocking.

    Files in another encoding than UTF-8 count too: a language server cannot read them, so nothing in them was renamed.
    """
    pattern, found = word_pattern(word), list[Occurrence]()
    for path in tree(root):
        text = _any_text(root / path)
        if not pattern.search(text):
            continue
        names = _name_lines(text, word) if path.endswith((".py", ".pyi")) else frozenset[int]()
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                found.append(Occurrence(path, number, line.strip()[:200], number in names))
                if len(found) >= limit:
                    return tuple(found)
    return tuple(found)


def _name_lines(text: str, word: str) -> frozenset[int]:
    """Lines where ``word`` is a name token; of a file that does not parse, those before the error."""
    lines = set[int]()
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string == word:
                lines.add(token.start[0])
    return frozenset(lines)


def _any_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in data else data.decode("utf-8", "replace")
