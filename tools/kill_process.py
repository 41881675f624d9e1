"""kill_process: ends one of this agent's background tasks, its whole process group (T09, SHL-14)."""

from pydantic import Field

from ..core.model import Frozen
from ..core.ports import ProcessState
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .promotion import details, how_it_is, nowhere


class Args(Frozen):
    """Only ids of the agent's own tasks count; a pid does not (P20)."""

    process_id: str = Field(min_length=1, max_length=100, description="The task's id.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    """SIGTERM, 5 s, SIGKILL; returns when all of it is dead."""
    if ctx.processes is None:
        return nowhere()
    before = await ctx.processes.wait(args.process_id, 0.0)
    info = await ctx.processes.kill(args.process_id)
    was = "" if before.state is ProcessState.RUNNING else " It had ended before."
    return ToolResult(
        ok=True,
        text=f"The task {info.id} and all it started is ended: {how_it_is(info)}.{was}",
        summary=f"✓ Ended task {info.id}",
        data=details(info),
    )


TOOL = Tool(
    name="kill_process",
    category="Process",
    args=Args,
    run=_run,
    effects=frozenset({Effect.EXEC}),
    aliases={"id": "process_id", "task_id": "process_id"},
)
