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
    starts = offsets(text)
    return text[offset_of(starts, start, len(text)) : offset_of(starts, end, len(text))]


def apply_edits(text: str, edits: tuple[TextEdit, ...], expected: str) -> str:
    """``text`` with every edit applied bottom-up, so that no edit moves another (SYM-08).

    Raises:
        OpenDevError: ``TOOL`` when edits overlap, or when one would replace something other than ``expected``: the text
            is then not the one that the server saw.
    """
    starts = offsets(text)
    spans = sorted(
        {(offset_of(starts, e.start, len(text)), offset_of(starts, e.end, len(text)), e.text) for e in edits},
        reverse=True,
    )
    above = len(text)
    for start, end, new in spans:
        if end > above:
            raise OpenDevError(ErrorKind.TOOL, "The language server's edits overlap.", "Nothing was changed.")
        if text[start:end].removeprefix("$") != expected:  # PHP counts the dollar sign to the name
            found = text[start:end][:80]
            message = f"The language server wants to replace {found!r} where {expected!r} should stand."
            raise OpenDevError(ErrorKind.TOOL, message, "Nothing was changed; try again.")
        text = text[:start] + new + text[end:]
        above = start
    return text


def offsets(text: str) -> list[int]:
    """Where each line begins."""
    return [0, *(found.end() for found in _BREAK.finditer(text))]


def offset_of(starts: list[int], position: tuple[int, int], size: int) -> int:
    """The offset of a (line, code point) position from 0 in a text of ``size``; beyond the end is the end."""
    line, column = position
    return min(starts[line] + column, size) if line < len(starts) else size
