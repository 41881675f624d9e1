"""list_processes: the background tasks of this agent, with pid, state and run time (T07, SHL-12)."""

from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .promotion import details, how_it_is, nowhere

_COMMAND = 200  # characters of a command


class Args(Frozen):
    """None."""


async def _run(_args: Args, ctx: ToolContext) -> ToolResult:
    """``data``: ``{"processes": [...]}``, oldest first."""
    if ctx.processes is None:
        return nowhere()
    found = ctx.processes.tasks()
    lines = [
        f"{info.id}  pid {info.pid}  {how_it_is(info)}  {' '.join(info.command.split())[:_COMMAND]}"
        for info in found
    ]
    return ToolResult(
        ok=True,
        text="\n".join(lines) or "No background tasks.",
        summary=f"✓ {len(found)} background tasks",
        data={"processes": [details(info) for info in found]},
    )


TOOL = Tool(
    name="list_processes",
    category="Process",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    poller=True,
)
