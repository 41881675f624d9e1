"""Stage 4: the action call (LOOP-08)."""

from ...core.agent import AgentStatus
from ...core.chat import ModelFailed, ModelReply
from ...core.errors import ErrorKind
from ...core.events import AssistantText
from ..calling import ask_model
from ..iteration import IterationContext
from ..signals import processes_ended, subagents_ended
from ..standing import standing
from .precheck import tell

_ENDS = {
    ErrorKind.BUDGET: AgentStatus.BUDGET,
    ErrorKind.CANCELLED: AgentStatus.CANCELLED,
    ErrorKind.CONFIG: AgentStatus.FAILED,
    ErrorKind.USAGE: AgentStatus.FAILED,
}


async def action(ctx: IterationContext) -> None:
    """Ask the model and take its answer into the conversation. A failed model ends the loop with the last words kept."""
    await subagents_ended(ctx)
    await processes_ended(ctx)
    ctx.drain()
    if ctx.end is not None:
        return
    ctx.calls, ctx.text = (), ""
    reply = await ask_model(ctx, ctx.tools)
    if isinstance(reply, ModelFailed):
        await _failed(ctx, reply)
    elif reply is not None:
        await _take(ctx, reply)


async def _failed(ctx: IterationContext, reply: ModelFailed) -> None:
    if reply.error.kind is ErrorKind.CONTEXT and ctx.nudge("context_overflow", 1):
        # The provider's window is smaller than we believed: summarise once and ask again in the same iteration.
        step = await ctx.compaction.force(ctx.messages.snapshot(), ctx.system, ctx.tools, standing(ctx))
        tell(ctx, step)
        await action(ctx)
        return
    ctx.finish_with(_ENDS.get(reply.error.kind, AgentStatus.INFRA), error=reply.error)


async def _take(ctx: IterationContext, reply: ModelReply) -> None:
    ctx.nudges["context_overflow"] = 0  # the request fits again; a later overflow gets its own try
    stored = ctx.messages.add_assistant(reply.message)
    ctx.finish = reply.finish
    if stored is None:
        return
    ctx.calls = stored.tool_calls
    ctx.text = stored.content
    await ctx.flush()
    if ctx.text.strip():
        ctx.said = ctx.text.strip()
        ctx.emit(AssistantText(text=stored.content))
