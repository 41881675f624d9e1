"""The tool ``rename_symbol`` (T16): rename a symbol and every reference to it, all files or none (SYM-08, T-19)."""

import asyncio
import keyword
from dataclasses import asdict

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.ports import SymbolPlace, TextEdit
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .diagnostics import with_problems
from .files import Write, read_bytes, writable_place, write_all
from .lsp.positions import apply_edits
from .lsp.words import Occurrence, occurrences
from .symbol_edit import parses, symbols_named

REMAINING = 50  # occurrences of the old word that are listed


class Args(Frozen):
    """``symbol_name`` is the name path of one symbol; ``file_path``, relative to the root, the file that defines it."""

    symbol_name: str = Field(min_length=1, max_length=300, description="Name path, e.g. MyClass.method.")
    file_path: str = Field(min_length=1, description="The file that defines the symbol.")
    new_name: str = Field(min_length=1, max_length=200, description="The new name alone, without its class.")


async def run(args: Args, ctx: ToolContext) -> ToolResult:
    """``data``: {"files", "edits", "remaining": [{path, line, text, code}], "remaining_cut": whether there are more}."""
    if not args.new_name.isidentifier() or _is_keyword(args):
        return ToolResult.failure(
            f"{args.new_name!r} is not a valid identifier. Nothing was changed.",
            "Use letters, digits and underscores, not beginning with a digit, and no keyword.",
        )
    symbol = await _the_one(args, ctx)
    edits = await ctx.symbols.rename_edits(ctx.root, symbol, args.new_name)
    _require_scope(tuple(edits), ctx)
    changes = await asyncio.to_thread(_prepare, edits, symbol.name, ctx)
    linked = await asyncio.to_thread(write_all, changes, ctx.operations)
    for change in changes:
        ctx.seen.record(change.path, change.after)
    left = await asyncio.to_thread(occurrences, ctx.root, symbol.name, REMAINING + 1)
    return await with_problems(_report(args, symbol, edits, left, linked), ctx)


def _is_keyword(args: Args) -> bool:
    return args.file_path.endswith((".py", ".pyi")) and keyword.iskeyword(args.new_name)


async def _the_one(args: Args, ctx: ToolContext) -> SymbolPlace:
    """The symbol meant, whose new name must be free beside it."""
    symbol = (await symbols_named(args.symbol_name, args.file_path, ctx))[0]
    path = symbol.path
    sibling = ".".join([*symbol.name_path.split(".")[:-1], args.new_name])
    if symbol.name_path == sibling:
        raise OpenDevError(ErrorKind.TOOL, f"{symbol.name_path} has this name already. Nothing was changed.")
    taken = [one for one in await ctx.symbols.find(ctx.root, sibling, path) if one.name_path == sibling]
    if taken:
        message = f"{path} already defines {sibling} at line {taken[0].line}. Nothing was changed."
        raise OpenDevError(ErrorKind.TOOL, message, "Choose a name that is free.")
    return symbol


def _require_scope(paths: tuple[str, ...], ctx: ToolContext) -> None:
    outside = ctx.scope.outside(paths)
    if outside:
        listed = ", ".join(outside[:20]) + (f" and {len(outside) - 20} more" if len(outside) > 20 else "")
        message = f"The rename would change files outside of what this task may write: {listed}. Nothing was changed."
        raise OpenDevError(ErrorKind.SCOPE, message, "Report that the task needs these files.")


def _prepare(edits: dict[str, tuple[TextEdit, ...]], word: str, ctx: ToolContext) -> tuple[Write, ...]:
    """The whole new content of every file, checked; blocking. Raises before anything is written."""
    changes: list[Write] = []
    for path, wanted in edits.items():
        target = writable_place(path, ctx)
        before = read_bytes(target.path, target.name)
        ctx.seen.assert_fresh(target.path, before)
        text = before.decode("utf-8")  # the language server has read it as such
        after = apply_edits(text, wanted, word)
        if path.endswith((".py", ".pyi")) and parses(text) and not parses(after):
            message = f"{path} would no longer be valid Python after the rename. Nothing was changed."
            raise OpenDevError(ErrorKind.TOOL, message)
        changes.append(Write(target.path, target.name, before, after.encode()))
    return tuple(changes)


def _remaining(title: str, left: tuple[Occurrence, ...], *, code: bool) -> list[str]:
    rows = [f"  {one.path}:{one.line}: {one.text}" for one in left if one.code is code]
    return ["", title, *rows] if rows else []


def _report(
    args: Args,
    symbol: SymbolPlace,
    edits: dict[str, tuple[TextEdit, ...]],
    left: tuple[Occurrence, ...],
    linked: tuple[str, ...],
) -> ToolResult:
    total = sum(map(len, edits.values()))
    done = f"Renamed {symbol.name_path} to {args.new_name}: {total} edits in {len(edits)} files"
    rows = [f"{done}.", *(f"  {path}: {len(made)}" for path, made in edits.items())]
    shown, cut = left[:REMAINING], len(left) > REMAINING
    rows += _remaining(
        f"Names {symbol.name} in code that are other symbols or could not be followed; check them:",
        shown,
        code=True,
    )
    rows += _remaining(
        f"The word {symbol.name} in strings, comments and other files, left as it is:", shown, code=False
    )
    if cut:
        rows.append(f"  ... and more; only {REMAINING} are listed.")
    if linked:
        rows.append(f"These files had other hard links, which keep the old content: {', '.join(linked)}.")
    return ToolResult(
        ok=True,
        text="\n".join(rows),
        summary=f"{done}; the word remains in {len(shown)}{'+' if cut else ''} places"[:200],
        data={
            "files": list(edits),
            "edits": total,
            "remaining": [asdict(one) for one in shown],
            "remaining_cut": cut,
        },
        changed=tuple(edits),
    )


TOOL = Tool(
    name="rename_symbol",
    category="Symbols",
    args=Args,
    run=run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda _args: ("*",),  # which files it touches is known only afterwards: it runs alone
    aliases={"symbol": "symbol_name", "name": "symbol_name", "path": "file_path", "to": "new_name"},
)
