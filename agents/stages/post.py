"""Stage 6: decide on the answer: reminders after tools, recovery, completion (LOOP-12, LOOP-13, REM-08 step 8)."""

from ...context.detectors import written_call
from ...core.agent import AgentStatus
from ...core.chat import FinishReason, MessageClass
from ...core.errors import ErrorInfo, ErrorKind
from ..completion import fail, finish
from ..iteration import IterationContext
from ..signals import MAX_NUDGE_ATTEMPTS, after_calls

_MAX_TEXT_CALLS = 2
_MAX_CUTS = 2


async def post(ctx: IterationContext) -> None:
    """Decide whether the loop goes on; without tool calls an answer may be the end."""
    if ctx.calls:
        await _after_calls(ctx)
    else:
        await _after_text(ctx)
    await ctx.flush()


async def _after_calls(ctx: IterationContext) -> None:
    ctx.cut.clear()
    if ctx.finish in (FinishReason.LENGTH, FinishReason.FILTERED):
        _after_cut_calls(ctx)
        return
    ctx.nudges["cut_calls"] = 0
    completed, ctx.memo.completed = ctx.memo.completed, None
    if completed is not None and not _failed_beside(ctx):
        await _completed(ctx, str(completed.get("status", "")), str(completed.get("summary", "")))
        return
    after_calls(ctx)


def _failed_beside(ctx: IterationContext) -> bool:
    """Whether a call beside ``task_complete`` failed: the claim was made without knowing it. Said once per failure."""
    failure = ctx.dispatcher.last_failure
    if failure is None or len(ctx.calls) < 2 or not ctx.nudge("failed_beside", MAX_NUDGE_ATTEMPTS):
        return False
    ctx.remind(
        "tool_failed_generic",
        MessageClass.DIRECTIVE,
        tool="a call beside task_complete",
        message=failure.sentence(),
        acknowledge="",
    )
    return True


def _after_cut_calls(ctx: IterationContext) -> None:
    """Advice, stronger advice, end (M16)."""
    ctx.nudges["cut_calls"] += 1
    hits = ctx.nudges["cut_calls"]
    if hits > _MAX_CUTS:
        message = "The model's answers hit the output limit three times in a row; none of their calls ran."
        hint = "Raise `max_tokens`, or give the agent smaller tasks."
        fail(ctx, ctx.said, ErrorInfo(kind=ErrorKind.MODEL, message=message, hint=hint))
        return
    ctx.remind("output_limit" if hits == 1 else "output_limit_again", MessageClass.DIRECTIVE)


async def _completed(ctx: IterationContext, status: str, summary: str) -> None:
    """The end by ``task_complete``; only the status ``success`` is success."""
    text = summary.strip() or ctx.said
    if status == "success":
        await finish(ctx, text)
        return
    error = ErrorInfo(kind=ErrorKind.TOOL, message=f"The agent reported failure: {text}")
    fail(ctx, text, ctx.unanswered or error, AgentStatus.UNANSWERED if ctx.unanswered else AgentStatus.FAILED)


async def _after_text(ctx: IterationContext) -> None:
    if _malformed(ctx):
        return
    text = "".join([*ctx.cut, ctx.text]).strip()
    ctx.recovery.settle(text)
    if ctx.recovery.recoverable:
        _recover(ctx, text)
    elif not _speaks(text) and not ctx.open_todos():
        _empty(ctx)
    elif ctx.recovery.pending is not None and ctx.unanswered is None:
        fail(ctx, text, ctx.recovery.pending)  # it was refused, and nothing came of it since
    else:
        await finish(ctx, text)


def _recover(ctx: IterationContext, text: str) -> None:
    """A reminder by class, or the end when the budget is used up (LOOP-13 c)."""
    nudge = ctx.recovery.next_reminder()
    if nudge is not None:
        ctx.messages.add_user(nudge)
    elif ctx.recovery.pending is not None:
        fail(ctx, text, ctx.recovery.pending)


def _speaks(text: str) -> bool:
    """Whether there is anything to see: a lone zero-width space is no answer."""
    return any(sign.isprintable() and not sign.isspace() for sign in text)


def _empty(ctx: IterationContext) -> None:
    """One nudge, then the honest end (M29)."""
    if ctx.nudge("completion_summary", 1):
        ctx.remind("completion_summary")
        return
    why = " (content filter)" if ctx.finish is FinishReason.FILTERED else ""
    error = ErrorInfo(kind=ErrorKind.MODEL, message=f"The model answered twice without a word{why}.")
    fail(ctx, ctx.said, error, AgentStatus.EMPTY)


def _malformed(ctx: IterationContext) -> bool:
    """Whether the text is no whole answer: cut off, filtered, or a tool call written as text. Dealt with here."""
    if not ctx.text:
        return False
    if ctx.finish is FinishReason.LENGTH:
        ctx.cut.append(ctx.text)
        if ctx.nudge("output_cut", _MAX_CUTS):
            ctx.remind("output_cut", MessageClass.DIRECTIVE)
        else:
            fail(
                ctx,
                "".join(ctx.cut),
                _model_error("The answer was cut off at the output limit again and again."),
            )
        return True
    if ctx.finish is FinishReason.FILTERED:
        fail(ctx, ctx.text, _model_error("The provider's content filter cut the answer off."))
        return True
    if tool := written_call(ctx.text, ctx.dispatcher.registry.names):
        if ctx.nudge("text_tool_call", _MAX_TEXT_CALLS):
            ctx.remind("text_tool_call", MessageClass.DIRECTIVE, tool=tool)
        else:
            fail(ctx, ctx.text, _model_error(f"The model keeps writing calls of `{tool}` as text."))
        return True
    return False


def _model_error(message: str) -> ErrorInfo:
    return ErrorInfo(kind=ErrorKind.MODEL, message=message)
