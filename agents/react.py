"""The ReAct loop: six stages an iteration, an interrupt check before each, four ways to end (LOOP-02, LOOP-13, LOOP-17)."""

from collections.abc import Awaitable, Callable

from ..core.agent import AgentStatus
from ..core.chat import MessageClass, ModelFailed
from ..core.errors import ErrorInfo, ErrorKind
from .calling import ask_model
from .iteration import End, IterationContext
from .stages.action import action
from .stages.critique import critique
from .stages.execution import execution
from .stages.post import post
from .stages.precheck import precheck
from .stages.thinking import thinking

Stage = Callable[[IterationContext], Awaitable[None]]
STAGES: tuple[Stage, ...] = (precheck, thinking, critique, action, execution, post)


async def react(ctx: IterationContext) -> End:
    """Run until the end. Every call has its result afterwards, whatever the end was.

    Raises:
        OpenDevError: when the transcript cannot be written.
        CancelledError: when the surrounding task is cancelled.
    """
    while ctx.end is None:
        if ctx.iteration >= ctx.cap:
            await _forced_summary(ctx)
            break
        ctx.iteration += 1
        await _iterate(ctx)
    return ctx.end or End(AgentStatus.FAILED, ctx.said)


async def _iterate(ctx: IterationContext) -> None:
    for stage in STAGES:
        if ctx.interrupted() or ctx.end is not None:
            return
        await stage(ctx)


async def _forced_summary(ctx: IterationContext) -> None:
    """One last call without tools: a report of the state so far (LOOP-15)."""
    ctx.drain()
    ctx.remind("safety_limit_summary", MessageClass.DIRECTIVE, count=ctx.cap)
    text = ""
    reply = await ask_model(ctx, ())
    if reply is not None and not isinstance(reply, ModelFailed):
        answer = reply.message.model_copy(update={"tool_calls": ()})
        stored = ctx.messages.add_assistant(answer)
        text = stored.content.strip() if stored else ""
    if not ctx.interrupted():
        error = ErrorInfo(
            kind=ErrorKind.TOOL,
            message=f"The agent reached its limit of {ctx.cap} iterations.",
            hint="Raise the limit, or split the task.",
        )
        ctx.finish_with(AgentStatus.ITERATION_CAP, text, error)
