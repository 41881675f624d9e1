"""list_todos: the list, items in work first, then open, then done (T27, TSK-05)."""

from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .todo_list import as_data, counts, show


class Args(Frozen):
    """list_todos has no arguments."""


async def _run(_args: Args, ctx: ToolContext) -> ToolResult:
    return ToolResult(
        ok=True, text=show(ctx.memo), summary=f"✓ Listed todos ({counts(ctx.memo)})", data=as_data(ctx.memo)
    )


TOOL = Tool(
    name="list_todos", category="task management", args=Args, run=_run, effects=frozenset({Effect.READ})
)
