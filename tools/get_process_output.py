"""get_process_output: the last lines of a background task (T08, SHL-13)."""

from pydantic import Field

from ..core.model import Frozen
from ..core.ports import ProcessState
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .promotion import details, how_it_is, nowhere

LINES = 100


class Args(Frozen):
    """``wait_s`` ends early when the task ends."""

    process_id: str = Field(min_length=1, max_length=100, description="The task's id.")
    wait_s: float = Field(default=0.0, ge=0, le=600, description="Seconds to wait for its end.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    """Its state and its last 100 lines, of at most 30,000 characters."""
    if ctx.processes is None:
        return nowhere()
    info = await ctx.processes.wait(args.process_id, args.wait_s)
    text = await ctx.processes.tail(info.id, LINES)
    cut = len(text) - ctx.limits.result_chars
    if cut > 0:
        text = f"[{cut:,} characters left out]\n{text[cut:]}"
    if info.state is not ProcessState.RUNNING:
        ctx.processes.told(info.id)
    return ToolResult(
        ok=True,
        text=f"{text or '(no output)'}\n[task {info.id}: {how_it_is(info)}. The last {LINES} lines; all: {info.output}]",
        summary=f"✓ Task {info.id}: {how_it_is(info)}",
        data=details(info),
    )


TOOL = Tool(
    name="get_process_output",
    category="Process",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    aliases={"id": "process_id", "task_id": "process_id", "wait": "wait_s"},
    poller=True,
)
