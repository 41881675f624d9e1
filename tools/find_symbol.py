"""The tool ``find_symbol`` (T14): where a symbol is defined, asked of a language server (SYM-02, SYM-06)."""

from pydantic import Field

from ..core.model import Frozen
from ..core.ports import SymbolPlace
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .files import place

SHOWN = 200  # definitions in one answer


class Args(Frozen):
    """``symbol_name`` is a name path; ``file_path`` is relative to the root."""

    symbol_name: str = Field(
        min_length=1,
        max_length=300,
        description="Name or name path, e.g. MyClass.method; `*` is a wildcard.",
    )
    file_path: str = Field(default="", description="Look in this file only.")


async def run(args: Args, ctx: ToolContext) -> ToolResult:
    """``data``: {"matches": [{name, name_path, kind, path, line, column, body}], "total"}, lines and columns from 1."""
    path = place(args.file_path, ctx).name if args.file_path else None
    found = await ctx.symbols.find(ctx.root, args.symbol_name, path)
    if not found:
        where = f"in {path}" if path else "in the project"
        return ToolResult.failure(
            f"No symbol matches {args.symbol_name!r} {where}.",
            "Use search to find the word as text; names may be given with a wildcard, as in `Http*`.",
        )
    count = f"{len(found)} definition{'' if len(found) == 1 else 's'} of {args.symbol_name}"
    cut = f", the first {SHOWN} of them (narrow the name)" if len(found) > SHOWN else ""
    return ToolResult(
        ok=True,
        text="\n\n".join([f"{count}{cut}:", *map(describe, found[:SHOWN])]),
        summary=f"{count}: {', '.join(f'{p.path}:{p.line}' for p in found[:5])}"[:200],
        data={
            "matches": [one.model_dump(mode="json", exclude={"start", "end"}) for one in found[:SHOWN]],
            "total": len(found),
        },
    )


def describe(found: SymbolPlace) -> str:
    """One definition, its place first (the recipe model reads that line), with the beginning of its body."""
    body = "\n".join(f"    {line}" for line in found.body.splitlines())
    return f"{found.path}:{found.line}:{found.column}  {found.kind}  {found.name_path}\n{body}"


TOOL = Tool(
    name="find_symbol",
    category="Symbols",
    args=Args,
    run=run,
    effects=frozenset({Effect.READ}),
    aliases={"symbol": "symbol_name", "name": "symbol_name", "path": "file_path"},
)
