"""update_todo: change one todo, named by number, title or slug; at most one is in work (T25, TSK-04)."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, TodoState, Tool, ToolContext, ToolResult
from .todo_list import as_data, counts, find, put, show, state_of


class Args(Frozen):
    """Arguments of update_todo."""

    id: str = Field(min_length=1, max_length=500, description="Its number, title or slug.")
    status: Annotated[TodoState | None, BeforeValidator(state_of)] = Field(
        default=None, description="todo, doing or done."
    )
    title: str = Field(default="", max_length=2_000, description="New text.")
    log: str = Field(default="", max_length=2_000, description="A note on what was done or found.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        index = find(ctx.memo, args.id)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    old = ctx.memo.todos[index]
    changes = {"text": args.title or old.text, "state": args.status or old.state, "log": args.log or old.log}
    put(ctx.memo, index, old.model_copy(update=changes))
    return ToolResult(
        ok=True,
        text=show(ctx.memo),
        summary=f"✓ Updated todo {old.id} ({counts(ctx.memo)})",
        data=as_data(ctx.memo),
    )


TOOL = Tool(
    name="update_todo",
    category="task management",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda _args: ("todos",),
    aliases={"todo_id": "id", "todo": "id", "state": "status", "text": "title"},
)
