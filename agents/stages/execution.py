"""Stage 5: run the calls of the answer, unless it was cut off or repeats itself (LOOP-09..11, M16)."""

import asyncio
from contextlib import nullcontext

from ...core.agent import AgentStatus
from ...core.approval import ApprovalRequest
from ...core.chat import FinishReason, MessageClass, ToolMessage, canonical
from ...core.errors import ErrorInfo, ErrorKind, OpenDevError
from ...core.ids import new_id
from ...core.tool import Effect
from ...policy.mode import INTERNAL
from ...tools.batch_tool import unfolded
from ..doomloop import Level, Repetition
from ..iteration import IterationContext

_CUT = {
    FinishReason.LENGTH: "Error: not run. The answer hit the output limit, so its calls may be incomplete.",
    FinishReason.FILTERED: "Error: not run. The content filter cut the answer off, so its calls may be incomplete.",
}
_REPEATED = "Error: not run. This call, or one beside it, repeats an earlier call with the same arguments."
_STOPPED = "Error: not run: interrupted by user."
_UNANSWERED_LOOPS = 2


async def execution(ctx: IterationContext) -> None:
    """Give every call exactly one result, in call order. Raises ``CancelledError`` with all results in place (T-18)."""
    if not ctx.calls:
        return
    if ctx.finish in _CUT:
        _refuse(ctx, _CUT[ctx.finish])
        return
    repetition = ctx.doom.check(unfolded(ctx.calls))
    if repetition is None or await _may_repeat(ctx, repetition):
        await _dispatch(ctx)
    await ctx.flush()


async def _dispatch(ctx: IterationContext) -> None:
    unanswered = ctx.dispatcher.stats.unanswered
    try:
        async with ctx.cover.around(ctx.calls) if ctx.cover else nullcontext():
            results = await ctx.unless_interrupted(ctx.dispatcher.run(ctx.calls))
    except asyncio.CancelledError:
        ctx.messages.add_results(ctx.dispatcher.finished)
        raise
    if results is None:
        ctx.messages.add_results(ctx.dispatcher.finished + _synthetic(ctx, _STOPPED))
        return
    ctx.messages.add_results(results)
    failure = ctx.dispatcher.last_failure
    if failure is not None and isinstance(ctx.dispatcher.registry.resolve(results[-1].name), ErrorInfo):
        failure = failure.model_copy(update={"kind": ErrorKind.TOOL})  # a wrong name is a slip, not a refusal
    for call, result in (*zip(ctx.calls, results, strict=True), *ctx.dispatcher.inner):
        ctx.doom.note(call, result)
        _note(ctx, result)
    if ctx.dispatcher.stats.unanswered > unanswered:
        ctx.unanswered = failure if failure and failure.kind is ErrorKind.UNANSWERED else _NOBODY
    ctx.recovery.note(results, failure)


_NOBODY = ErrorInfo(kind=ErrorKind.UNANSWERED, message="A tool call needs an approval and nobody answered.")


def _note(ctx: IterationContext, result: ToolMessage) -> None:
    """Tell the guards what a successful call did to the world."""
    tool = ctx.dispatcher.registry.resolve(result.name)
    if isinstance(tool, ErrorInfo) or result.is_error or tool.name in INTERNAL:
        return  # todos and the end itself change the agent's own list, not the world
    if not tool.read_only:
        ctx.verifier.note_action()
    if tool.effects & {Effect.WRITE, Effect.EXEC}:
        ctx.unanswered = None


async def _may_repeat(ctx: IterationContext, repetition: Repetition) -> bool:
    """Warn at the first hit; ask a person at the second. False = the batch does not run."""
    tool = repetition.call.name
    if repetition.level is Level.WARN:
        _refuse(ctx, _REPEATED)
        ctx.remind("doom_loop_warning", MessageClass.DIRECTIVE, tool=tool, count=repetition.count)
        return False
    decision = await _ask(ctx, repetition)
    if ctx.end is not None:
        _refuse(ctx, _STOPPED)
        return False
    ctx.doom.reset()  # an allowed repetition runs once, then detection starts over
    if decision == "allow":
        return True
    reason = "the user denied it" if decision == "deny" else "nobody answered"
    _refuse(ctx, _REPEATED)
    if decision == "no_answer" and not ctx.nudge("doom_unanswered", _UNANSWERED_LOOPS - 1):
        message = f"The agent keeps repeating `{tool}` and nobody answered whether it may."
        ctx.finish_with(AgentStatus.UNANSWERED, error=ErrorInfo(kind=ErrorKind.UNANSWERED, message=message))
        return False
    ctx.remind("doom_loop_aborted", MessageClass.DIRECTIVE, tool=tool, reason=reason)
    return False


async def _ask(ctx: IterationContext, repetition: Repetition) -> str:
    """ "allow", "deny" or "no_answer"."""
    call = repetition.call
    request = ApprovalRequest(
        id=new_id(),
        agent_id=ctx.task.id,
        agent=ctx.task.spec.name,
        tool=call.name,
        arguments=call.arguments,
        reason=f"The agent repeated this call {repetition.count} times, after a warning.",
        card=f"{call.name} {canonical(call.arguments)}",
    )
    try:
        answer = await ctx.unless_interrupted(ctx.ports.ask.approve(request))
    except OpenDevError:
        return "no_answer"
    if answer is None or answer.decision == "no_answer":
        return "no_answer"
    return "allow" if answer.allowed and answer.digest == request.digest else "deny"


def _refuse(ctx: IterationContext, why: str) -> None:
    ctx.messages.add_results(_synthetic(ctx, why))


def _synthetic(ctx: IterationContext, why: str) -> tuple[ToolMessage, ...]:
    return tuple(
        ToolMessage(call_id=call.id, name=call.name, content=why, is_error=True, summary=why[:150])
        for call in ctx.calls
    )
