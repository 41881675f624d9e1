"""What the tools that write at a symbol share: the one symbol meant, a checked change of its file, lines moved to its place."""

import ast
import asyncio
import io
import tokenize
from collections.abc import Callable

from ..core.errors import ErrorKind, OpenDevError
from ..core.ports import SymbolPlace
from ..core.tool import ToolContext, ToolResult
from .diagnostics import with_problems
from .edit.canonical import printable
from .edit.diff import diff
from .files import Write, place, read_bytes, writable_place, write_bytes_atomic
from .lsp.bodies import white
from .lsp.positions import slice_of

_SHOWN_DIFF = 2_000
_OPENERS = (":", "{", "(", "[", ",", "\\")


async def symbols_named(symbol_name: str, file_path: str, ctx: ToolContext) -> tuple[SymbolPlace, ...]:
    """The definitions in ``file_path`` with the one name path that ``symbol_name`` means. Raises ``OpenDevError``."""
    path = place(file_path, ctx).name
    if "*" in symbol_name:
        message = f"{symbol_name!r} has a wildcard; this needs an exact name. Nothing was changed."
        raise OpenDevError(ErrorKind.TOOL, message, "Use find_symbol first.")
    found = await ctx.symbols.find(ctx.root, symbol_name, path)
    exact = tuple(one for one in found if one.name_path == symbol_name) or found
    if not exact:
        message = f"{symbol_name!r} is not defined in {path}. Nothing was changed."
        raise OpenDevError(ErrorKind.NOT_FOUND, message, "Use find_symbol to see where it is defined.")
    if len({one.name_path for one in exact}) > 1:
        raise _not_unique(symbol_name, path, exact, "Give the whole name path.")
    return exact


async def edit_at(
    symbol_name: str,
    file_path: str,
    ctx: ToolContext,
    done: str,
    change: Callable[[str, SymbolPlace], str],
) -> ToolResult:
    """Write ``change(text, symbol)`` under the rules of edit_file: scope, freshness, atomic, undoable (SYM-12).

    ``data``: {"path", "symbol", "diff"}. ``done`` is the sentence's beginning, as "Replaced the body of".
    """
    symbol, *others = found = await symbols_named(symbol_name, file_path, ctx)
    if others:
        raise _not_unique(symbol_name, symbol.path, found, "Use edit_file for one of several definitions.")
    shown, linked = await asyncio.to_thread(_write, symbol, ctx, change)
    name, path = symbol.name_path, symbol.path
    text = f"{done} {name} in {path}. What changed:\n{shown[:_SHOWN_DIFF]}"
    if linked:
        text += f"\nNote: {path} had other hard links; those keep the old content."
    result = ToolResult(
        ok=True,
        text=text,
        summary=f"✓ {done} {name} in {path}"[:200],
        data={"path": path, "symbol": name, "diff": shown},
        changed=(path,),
    )
    return await with_problems(result, ctx)


def _write(
    symbol: SymbolPlace, ctx: ToolContext, change: Callable[[str, SymbolPlace], str]
) -> tuple[str, bool]:
    target = writable_place(symbol.path, ctx)
    data = read_bytes(target.path, target.name)
    ctx.seen.assert_fresh(target.path, data)
    before = data.decode("utf-8")  # the language server has read it as such
    if not slice_of(before, symbol.start, symbol.end).startswith(symbol.body):
        message = f"{target.name} changed while it was looked at. Nothing was written."
        raise OpenDevError(ErrorKind.CONFLICT, message, "Try again.")
    after = change(before, symbol)
    if target.name.endswith((".py", ".pyi")) and parses(before) and not parses(after):
        message = f"{target.name} would no longer be valid Python. Nothing was written."
        raise OpenDevError(ErrorKind.TOOL, message, "Check the indentation and brackets of what you sent.")
    encoded = after.encode()
    linked = write_bytes_atomic(Write(target.path, target.name, data, encoded), ctx.operations)
    ctx.seen.record(target.path, encoded)
    return printable(diff(target.name, before, after)), bool(linked)


def _not_unique(name: str, path: str, found: tuple[SymbolPlace, ...], hint: str) -> OpenDevError:
    listed = ", ".join(f"{one.name_path} (line {one.line})" for one in found[:10])
    message = f"{name!r} is not unique in {path}: {listed}. Nothing was changed."
    return OpenDevError(ErrorKind.TOOL, message, hint)


def parses(text: str) -> bool:
    """Whether it is valid Python."""
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def newline(text: str) -> str:
    """The line end that the file uses most."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def moved(content: str, indent: str, *, python: bool) -> str:
    """``content`` with its own common indentation replaced by ``indent``; ``\\n`` line ends, no blank lines around it.

    Lines inside of a multi-line string of Python keep what they have.
    """
    rows = content.replace("\r\n", "\n").split("\n")
    while rows and not rows[0].strip():
        del rows[0]
    while rows and not rows[-1].strip():
        del rows[-1]
    fixed = _inside_strings("\n".join(rows)) if python else frozenset[int]()
    free = [row for number, row in enumerate(rows) if number not in fixed and row.strip()]
    if len(free) > 1 and rows[0][:1].strip() and not rows[0].rstrip().endswith(_OPENERS):
        rows[0] = _common(free[1:]) + rows[0]  # the first line came without its indentation
        free[0] = rows[0]
    common = _common(free)
    return "\n".join(
        row if number in fixed else indent + row.removeprefix(common) if row.strip() else ""
        for number, row in enumerate(rows)
    )


def _common(rows: list[str]) -> str:
    """The white space that all ``rows`` begin with."""
    common = min((white(row) for row in rows), key=len, default="")
    while not all(row.startswith(common) for row in rows):
        common = common[:-1]
    return common


def _inside_strings(text: str) -> frozenset[int]:
    """Lines (from 0) that begin inside a string."""
    inside = set[int]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        pass
    return frozenset(inside)
