"""A run that only sums up what was said: `/compact` between two turns (CMP-15)."""

from dataclasses import replace

from ..core.agent import AgentStatus, AgentTask
from ..core.events import Notice
from ..core.ops import COMPACT
from .iteration import End, IterationContext
from .stages.precheck import tell
from .standing import standing


def only_sums_up(task: AgentTask) -> bool:
    """Whether this run answers nothing: the user gave the command, and there is something to sum up."""
    return task.stream and bool(task.history) and task.prompt.strip() == COMPACT


async def sum_up(ctx: IterationContext) -> End:
    """One summary, whatever the pressure; it stands in the session's record for the next turn. Raises ``OpenDevError`` (infra)."""
    ctx.compaction.request()
    before = ctx.compaction.shown.upto
    messages = ctx.messages.snapshot()
    step = await ctx.unless_interrupted(ctx.compaction.check(messages, ctx.system, ctx.tools, standing(ctx)))
    if step is not None and ctx.compaction.shown.upto > before:
        tell(ctx, replace(step, notice=""))  # the user asked for it: that it saves little is no alarm
    elif ctx.end is None:
        ctx.emit(Notice(level="info", text="There is too little to sum up yet."))
    return ctx.end or End(AgentStatus.DONE)
