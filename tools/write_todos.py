"""write_todos: create or replace the list of todos (T24, TSK-03)."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from ..core.model import Frozen
from ..core.tool import Effect, TodoState, Tool, ToolContext, ToolResult
from .todo_list import MAX_TODOS, as_data, counts, replace_all, show, state_of


class Item(Frozen):
    """One todo as a model writes it."""

    title: str = Field(min_length=1, max_length=500)
    description: str = Field(default="", max_length=2_000)
    status: Annotated[TodoState, BeforeValidator(state_of)] = TodoState.TODO


class Args(Frozen):
    """Arguments of write_todos."""

    todos: tuple[str | Item, ...] = Field(
        max_length=MAX_TODOS, description="The whole list, in order of work."
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    items = [_item(item) for item in args.todos]
    if any(not text.strip() for text, _ in items):
        return ToolResult.failure("A todo has no text.", "Give every todo a title.")
    replace_all(ctx.memo, items)
    return ToolResult(
        ok=True, text=show(ctx.memo), summary=f"✓ Wrote the list ({counts(ctx.memo)})", data=as_data(ctx.memo)
    )


def _item(item: str | Item) -> tuple[str, TodoState]:
    if isinstance(item, str):
        return item[:500], TodoState.TODO
    return f"{item.title} — {item.description}" if item.description else item.title, item.status


TOOL = Tool(
    name="write_todos",
    category="task management",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda _args: ("todos",),
    aliases={"items": "todos", "list": "todos", "tasks": "todos"},
)
