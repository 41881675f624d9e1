"""Stage 1: injected messages, then the compaction check (LOOP-03, REM-08)."""

from ...context.compaction import Step
from ...context.pressure import Stage
from ...core.events import Compacted, Notice
from ..iteration import IterationContext


async def precheck(ctx: IterationContext) -> None:
    """Drain the inbox and run the stage of compaction that is due. Raises ``OpenDevError`` when the disk fails."""
    ctx.drain()
    step = await ctx.unless_interrupted(
        ctx.compaction.check(ctx.messages.snapshot(), ctx.system, ctx.tools, ctx.open_todos())
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
    if step.notice:
        ctx.emit(Notice(level="error", text=step.notice))
