"""The tool ``insert_after_symbol`` (T19): new code right after a definition (SYM-10)."""

from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .files import lock_key
from .symbol_insert import Args, insert


async def run(args: Args, ctx: ToolContext) -> ToolResult:
    """See ``insert``."""
    return await insert(args, ctx, before=False)


TOOL = Tool(
    name="insert_after_symbol",
    category="Symbols",
    args=Args,
    run=run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda args: (lock_key(args.file_path),),
    aliases={"symbol": "symbol_name", "name": "symbol_name", "path": "file_path", "code": "content"},
)
