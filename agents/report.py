"""The report of one agent: counted from what happened, never claimed (SUB-03, LOOP-16)."""

import os

from ..core.agent import AgentReport, AgentTask
from .iteration import End, IterationContext


def make_report(task: AgentTask, end: End, wall_s: float, ctx: IterationContext | None) -> AgentReport:
    """The report of ``task``; ``ctx`` None = it ended before the loop began, or needs no loop. Only the final text crosses back."""
    report = AgentReport(
        id=task.id,
        agent=task.spec.name,
        status=end.status,
        text=end.text,
        error=end.error,
        wall_s=round(wall_s, 3),
        pid=os.getpid(),
    )
    if ctx is None:
        return report
    return report.model_copy(
        update={
            "turns": ctx.iteration,
            "tool_calls": ctx.dispatcher.stats.tool_calls,
            "model_calls": ctx.model_calls,
            "usage": ctx.usage,
            "files_changed": tuple(sorted(ctx.dispatcher.changed)),
            "transcript": str(ctx.transcript.path),
        }
    )
