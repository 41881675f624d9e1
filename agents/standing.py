"""What stands outside of every summary: the todos with their states and the plan that was approved (CMP-13, C07)."""

from .iteration import IterationContext


def standing(ctx: IterationContext) -> str:
    """Todos and plan as they are now; empty when there are none."""
    todos = "\n".join(f"- [{todo.state.value}] {todo.id}: {todo.text}" for todo in ctx.memo.todos)
    plan = str((ctx.plan or {}).get("plan_file_path", ""))
    parts = (("Todos", todos), ("Approved plan", plan))
    return "\n\n".join(f"## {title}\n{text}" for title, text in parts if text)
