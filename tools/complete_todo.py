"""complete_todo: mark one todo as done, with an optional log (T26, TSK-05)."""

from pydantic import Field

from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, TodoState, Tool, ToolContext, ToolResult
from .todo_list import as_data, counts, find, put, show


class Args(Frozen):
    """Arguments of complete_todo."""

    id: str = Field(min_length=1, max_length=500, description="Its number, title or slug.")
    log: str = Field(default="", max_length=2_000, description="What was done, in a sentence.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        index = find(ctx.memo, args.id)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    old = ctx.memo.todos[index]
    put(ctx.memo, index, old.model_copy(update={"state": TodoState.DONE, "log": args.log or old.log}))
    return ToolResult(
        ok=True,
        text=show(ctx.memo),
        summary=f"✓ Completed todo {old.id} ({counts(ctx.memo)})",
        data=as_data(ctx.memo),
    )


TOOL = Tool(
    name="complete_todo",
    category="task management",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda _args: ("todos",),
    aliases={"todo_id": "id", "todo": "id", "note": "log"},
)
