"""New lines beside a definition: at its indentation, with blank lines between, past decorators and comments (SYM-10)."""

import re

from pydantic import Field

from ..core.model import Frozen
from ..core.ports import SymbolPlace
from ..core.tool import ToolContext, ToolResult
from .lsp.bodies import python_lines, white
from .lsp.positions import offsets
from .symbol_edit import edit_at, moved, newline

_SEPARATE = frozenset(
    {"module", "namespace", "package", "class", "method", "constructor", "enum", "interface", "function", "struct", "object"}
)  # fmt: skip
_ABOVE = re.compile(
    r"\s*(//|/\*|\*|#\[|# |##|@|--|;;|\[<|\[[A-Z])"
)  # comments and attributes of what follows
_DEFINES = re.compile(
    r"\s*(@|#\[|//|/\*|#|async |export |pub |public |private |protected |static |def |class |func |fn |function |fun |interface |enum |struct |trait |impl )"
)
_OPENED = (":", "{", "(", "[")
_CLOSES = re.compile(r"\s*([)\]}]|end\b)")


class Args(Frozen):
    """``symbol_name`` is the name path of one symbol; ``file_path``, relative to the root, the file that defines it."""

    symbol_name: str = Field(min_length=1, max_length=300, description="Name path, e.g. MyClass.method.")
    file_path: str = Field(min_length=1, description="The file that defines the symbol.")
    content: str = Field(description="The code to insert; its indentation is adapted.")


async def insert(args: Args, ctx: ToolContext, *, before: bool) -> ToolResult:
    """``data``: {"path", "symbol", "diff"}."""
    if not args.content.strip():
        return ToolResult.failure("content is empty. Nothing was changed.", "Send the code to insert.")

    def change(text: str, symbol: SymbolPlace) -> str:
        return inserted(text, symbol, args.content, before=before)

    done = "Inserted before" if before else "Inserted after"
    return await edit_at(args.symbol_name, args.file_path, ctx, done, change)


def inserted(text: str, symbol: SymbolPlace, content: str, *, before: bool) -> str:
    """``text`` with ``content`` beside ``symbol``; nothing else changes but the blank lines between the two."""
    python = symbol.path.endswith((".py", ".pyi"))
    starts, nl = offsets(text), newline(text)
    if python:
        first, last = python_lines(text, symbol.line)
    else:
        last = symbol.end[0] + (symbol.end[1] > 0 or symbol.end[0] == symbol.start[0])
        first = _with_comments(text, starts, symbol.start[0] + 1)
    indent = white(_row(text, starts, first).removeprefix("\ufeff"))
    new = moved(content, indent, python=python).replace("\n", nl) + nl
    apart = 0
    if symbol.kind in _SEPARATE or _DEFINES.match(content):
        apart = 2 if python and not indent else 1
    if before:
        at = starts[first - 1] + (first == 1 and text.startswith("\ufeff"))
        return text[:at] + nl * _missing_above(text[:at], apart) + new + nl * apart + text[at:]
    at = starts[last] if last < len(starts) else len(text)
    above, below = text[:at], text[at:]
    if not above.endswith(("\n", "\r")):
        above += nl
    return above + nl * apart + new + nl * _missing_below(below, apart) + below


def _with_comments(text: str, starts: list[int], first: int) -> int:
    """The first of the comment and attribute lines right above line ``first`` (from 1)."""
    while first > 1 and _ABOVE.match(_row(text, starts, first - 1)):
        first -= 1
    return first


def _row(text: str, starts: list[int], line: int) -> str:
    return text[starts[line - 1] : starts[line] if line < len(starts) else len(text)]


def _missing_above(above: str, apart: int) -> int:
    """Blank lines to add after ``above``: none at the beginning of the file or of a block."""
    rows = above.removeprefix("\ufeff").splitlines()
    blank = 0
    while rows and not rows[-1].strip():
        rows.pop()
        blank += 1
    return 0 if not rows or rows[-1].rstrip().endswith(_OPENED) else max(0, apart - blank)


def _missing_below(below: str, apart: int) -> int:
    """Blank lines to add before ``below``: none at the end of the file, or where the block ends."""
    rows = below.splitlines()
    blank = next((number for number, row in enumerate(rows) if row.strip()), len(rows))
    if blank == len(rows) or _CLOSES.match(rows[blank]):
        return 0
    return max(0, apart - blank)
