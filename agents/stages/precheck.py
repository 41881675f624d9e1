"""Stage 1: injected messages, then the compaction check (LOOP-03, REM-08)."""

from ...context.compaction import Step
from ...context.pressure import Stage
from ...core.events import Compacted, Notice
from ..escalation import escalate
from ..iteration import IterationContext
from ..opening import attach_late_map
from ..signals import proactive
from ..standing import standing


async def precheck(ctx: IterationContext) -> None:
    """Drain the inbox and run the stage of compaction that is due. Raises ``OpenDevError`` when the disk fails."""
    ctx.drain()
    escalate(ctx)
    ctx.refresh_tools()
    await attach_late_map(ctx)
    ctx.memory.note(ctx.messages.snapshot(), ctx.usage)
    proactive(ctx)
    step = await ctx.unless_interrupted(
        ctx.compaction.check(ctx.messages.snapshot(), ctx.system, ctx.tools, standing(ctx))
    )
    if step is not None:
        tell(ctx, step)


def tell(ctx: IterationContext, step: Step) -> None:
    """Report a stage of compaction (CMP-03, CMP-16)."""
    ctx.emit(Compacted(stage=step.stage.name.lower(), before=step.before, after=step.after))
    if step.stage is Stage.WARN:
        ctx.emit(
            Notice(
                level="warning",
                text=f"The request has {step.before} tokens; older output will soon be left out.",
            )
        )
    elif step.trend:
        ctx.emit(Notice(level="info", text=step.trend))
    if step.notice:
        ctx.emit(Notice(level="error", text=step.notice))
