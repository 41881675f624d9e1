"""Stage 3: at level HIGH the thoughts are criticised and written again; then the final ones join the conversation (LOOP-06, 07)."""

from ...core.chat import MessageClass, Role, ThinkingLevel
from ..iteration import IterationContext
from .thinking import DIRECT, length_of, thought

_CRITIQUE_TOKENS = 600


async def critique(ctx: IterationContext) -> None:
    """Lower levels never call the critique model; without a trace there is nothing to criticise."""
    if not ctx.trace:
        return
    if ctx.trace.strip(" .*`\"'").upper() == DIRECT:
        ctx.remind("act_directly", MessageClass.INTERNAL)
        return
    if ctx.thinking is ThinkingLevel.HIGH:
        ctx.trace = await _refined(ctx, ctx.trace)
    if ctx.end is None:
        ctx.remind("thinking_trace", MessageClass.INTERNAL, trace=ctx.trace)


async def _refined(ctx: IterationContext, trace: str) -> str:
    """A second draft with the critique as input; the first one when a call fails."""
    criticism = await thought(
        ctx, Role.CRITIQUE, ctx.reminders.text("thinking_critique", trace=trace), _CRITIQUE_TOKENS
    )
    if not criticism or ctx.end is not None:
        return trace
    length, tokens = length_of(ThinkingLevel.HIGH)
    memory = ctx.thinks.render(ctx.messages.snapshot())
    ask = ctx.reminders.text("thinking_refine", trace=trace, critique=criticism, length=length)
    return await thought(ctx, Role.THINKING, f"{memory}\n\n---\n{ask}", tokens) or trace
