"""task_complete: the agent declares the end of its task, as success or failure (T35, TSK-08)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..core.model import Frozen
from ..core.tool import Effect, TodoState, Tool, ToolContext, ToolResult

_REFUSALS = 2


def _status(value: Any) -> Any:
    """``completed``, ``done`` and the like are a success, ``failed`` and the like a failure."""
    words = {"completed": "success", "complete": "success", "done": "success", "succeeded": "success", "ok": "success",
             "failed": "failure", "fail": "failure", "error": "failure", "blocked": "failure"}  # fmt: skip
    return words.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


class Args(Frozen):
    """Arguments of task_complete."""

    status: Annotated[Literal["success", "failure"], BeforeValidator(_status)] = Field(
        description="success: done and checked."
    )
    summary: str = Field(
        min_length=1, max_length=50_000, description="What was done, or why it could not be done."
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    left = [todo for todo in ctx.memo.todos if todo.state is not TodoState.DONE]
    if args.status == "success" and left and ctx.memo.completions_refused < _REFUSALS:
        ctx.memo.completions_refused += 1
        named = "; ".join(f"{todo.id}. {todo.text}"[:200] for todo in left[:10])
        return ToolResult.failure(
            f"The task is not complete: {len(left)} todos are open ({named}).",
            "Do them, mark them as done, or drop them from the list by write_todos; then call task_complete again.",
        )
    ctx.memo.completed = {"status": args.status, "summary": args.summary}
    said = "complete" if args.status == "success" else "ended as a failure"
    return ToolResult(
        ok=True, text=f"The task is {said}.", summary=f"✓ Task {said}", data=dict(ctx.memo.completed)
    )


TOOL = Tool(
    name="task_complete",
    category="completion",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda _args: ("todos",),
    aliases={"result": "summary", "message": "summary"},
)
