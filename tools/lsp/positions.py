"""Positions in text: the server's code units to code points and back, and edits applied to text."""

import re

from ...core.errors import ErrorKind, OpenDevError
from ...core.ports import TextEdit

_BREAK = re.compile(r"\r\n|\n|\r")  # the three line ends of LSP; str.splitlines knows eight more
_UNIT = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
ENCODINGS = ("utf-32", "utf-16", "utf-8")  # what is offered to a server; UTF-16 is the protocol's default


def lines(text: str) -> list[str]:
    """The lines without their ends; there is always at least one."""
    return _BREAK.split(text)


def to_points(line: str, units: int, encoding: str) -> int:
    """The code-point column of the column ``units`` that a server counts in ``encoding``."""
    codec, width = _UNIT[encoding]
    data = line.encode(codec, "surrogatepass")
    return len(data[: units * width].decode(codec, "ignore"))


def to_units(line: str, points: int, encoding: str) -> int:
    """The column a server expects for the code-point column ``points``."""
    codec, width = _UNIT[encoding]
    return len(line[:points].encode(codec, "surrogatepass")) // width


def slice_of(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text between two (line, code-point column) positions, both from 0."""
    starts = _starts(text)
    return text[_offset(starts, start, len(text)) : _offset(starts, end, len(text))]


def apply_edits(text: str, edits: tuple[TextEdit, ...], expected: str) -> str:
    """``text`` with every edit applied bottom-up, so that no edit moves another (SYM-08).

    Raises:
        OpenDevError: ``TOOL`` when edits overlap, or when one would replace something other than ``expected``: the text
            is then not the one that the server saw.
    """
    starts = _starts(text)
    spans = sorted(
        {(_offset(starts, e.start, len(text)), _offset(starts, e.end, len(text)), e.text) for e in edits},
        reverse=True,
    )
    above = len(text)
    for start, end, new in spans:
        if end > above:
            raise OpenDevError(ErrorKind.TOOL, "The language server's edits overlap.", "Nothing was changed.")
        if text[start:end] != expected:
            found = text[start:end][:80]
            message = f"The language server wants to replace {found!r} where {expected!r} should stand."
            raise OpenDevError(ErrorKind.TOOL, message, "Nothing was changed; try again.")
        text = text[:start] + new + text[end:]
        above = start
    return text


def _starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _BREAK.finditer(text))]


def _offset(starts: list[int], position: tuple[int, int], size: int) -> int:
    line, column = position
    return min(starts[line] + column, size) if line < len(starts) else size
