"""The tool ``find_referencing_symbols`` (T15): every reference to one symbol, grouped by file (SYM-07)."""

from itertools import groupby

from pydantic import Field

from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .symbol_edit import symbols_named

SHOWN = 300  # references in one answer


class Args(Frozen):
    """``symbol_name`` is the name path of one symbol; ``file_path``, relative to the root, the file that defines it."""

    symbol_name: str = Field(min_length=1, max_length=300, description="Name path, e.g. MyClass.method.")
    file_path: str = Field(min_length=1, description="The file that defines the symbol.")
    include_declaration: bool = Field(default=False, description="List the definition too.")


async def run(args: Args, ctx: ToolContext) -> ToolResult:
    """``data``: {"files": {path: [{line, column, text}]}, "total"}, lines and columns from 1."""
    symbol = (await symbols_named(args.symbol_name, args.file_path, ctx))[0]
    found = await ctx.symbols.references(ctx.root, symbol, include_declaration=args.include_declaration)
    shown = found[:SHOWN]
    grouped = {path: list(uses) for path, uses in groupby(shown, key=lambda use: use.path)}
    files = len({use.path for use in found})
    count = f"{len(found)} reference{'' if len(found) == 1 else 's'} to {symbol.name_path} in {files} file{'' if files == 1 else 's'}"
    rows = [f"{count}{f', the first {SHOWN} of them' if len(found) > SHOWN else ''}{':' if found else '.'}"]
    for path, uses in grouped.items():
        rows += ["", f"{path}:", *(f"  {use.line}:{use.column}: {use.text}" for use in uses)]
    return ToolResult(
        ok=True,
        text="\n".join(rows),
        summary=count[:200],
        data={
            "files": {
                path: [use.model_dump(mode="json", exclude={"path"}) for use in uses]
                for path, uses in grouped.items()
            },
            "total": len(found),
        },
    )


TOOL = Tool(
    name="find_referencing_symbols",
    category="Symbols",
    args=Args,
    run=run,
    effects=frozenset({Effect.READ}),
    aliases={"symbol": "symbol_name", "name": "symbol_name", "path": "file_path"},
)
