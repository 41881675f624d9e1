"""Whether a claim of completion is accepted: waiting messages, open todos, the verification command (LOOP-12, LOOP-14)."""

from ..core.agent import AgentStatus
from ..core.chat import MessageClass
from ..core.errors import ErrorInfo, ErrorKind
from ..core.events import Notice, Verified
from ..core.ticket import VerifyOutcome
from .iteration import IterationContext
from .signals import tell_report
from .verifier import MAX_VERIFICATIONS

MAX_TODO_NUDGES = 2
MAX_CHILD_NUDGES = 10


async def finish(ctx: IterationContext, text: str) -> None:
    """End with success, or say what is missing and let the loop go on."""
    if _todos_open(ctx):
        return
    if await _children_running(ctx):
        return
    if ctx.verifier.command and not await _verified(ctx):
        return
    if not ctx.inbox.try_close():
        return  # a message came in at the very end: it is drained at the next boundary
    if ctx.unanswered is not None:
        ctx.finish_with(AgentStatus.UNANSWERED, text, ctx.unanswered)
    else:
        ctx.finish_with(AgentStatus.DONE, text)


def fail(
    ctx: IterationContext, text: str, error: ErrorInfo, status: AgentStatus = AgentStatus.FAILED
) -> None:
    """End without success, unless a message waits."""
    if ctx.inbox.try_close():
        ctx.finish_with(status, text, error)


def _todos_open(ctx: IterationContext) -> bool:
    todos = ctx.open_todos()
    if not todos or ctx.memo.completions_refused >= MAX_TODO_NUDGES:
        return False  # REM-07: the agent's decision is accepted, what is open stays visible in its list
    ctx.memo.completions_refused += 1  # shared with task_complete, which refuses by the same count
    ctx.remind("incomplete_todos", MessageClass.DIRECTIVE, count=len(todos.splitlines()), todo_list=todos)
    return True


async def _children_running(ctx: IterationContext) -> bool:
    """Wait for background sub-agents: their reports belong to the result. At most ten waits, then the decision is accepted."""
    if not ctx.children.running:
        return False
    ended = await ctx.unless_interrupted(ctx.children.wait(lambda: ctx.inbox.waiting))
    for id, report in ended or ():
        tell_report(ctx, id, report)
    left = ctx.children.running
    if ended or ended is None or ctx.inbox.waiting:
        return True
    if ctx.nudge("children_running", MAX_CHILD_NUDGES):
        ctx.remind("children_running", MessageClass.DIRECTIVE, count=len(left), children=", ".join(left))
        return True
    ctx.emit(
        Notice(level="warning", text=f"The agent ends while {len(left)} sub-agents of its own still run.")
    )
    return False


async def _verified(ctx: IterationContext) -> bool:
    verifier = ctx.verifier
    outcome = await ctx.unless_interrupted(verifier.check())
    if outcome is None:
        return False
    ctx.emit(Verified(task=ctx.task.id, where="agent", result=outcome))
    if outcome.outcome == "pass":
        return True
    how = _how(outcome)
    if verifier.spent:
        error = ErrorInfo(
            kind=ErrorKind.VERIFY,
            message=f"The verification command `{verifier.command}` {how}, {verifier.attempts} times.",
            hint=f"Its last output: {verifier.output[-500:].strip()}" if verifier.output.strip() else "",
        )
        fail(ctx, ctx.said, error, AgentStatus.VERIFY_FAILED)
        return False
    ctx.remind(
        "verify_failed",
        MessageClass.DIRECTIVE,
        command=verifier.command,
        how=how,
        attempt=verifier.attempts,
        attempts=MAX_VERIFICATIONS,
        output=verifier.output,
    )
    if verifier.unchanged > 1:
        ctx.remind(
            "reflection",
            MessageClass.DIRECTIVE,
            tool=verifier.command,
            count=verifier.unchanged,
            message="its output did not change",
        )
    return False


def _how(outcome: VerifyOutcome) -> str:
    match outcome.outcome:
        case "fail":
            return f"failed with exit code {outcome.exit_code}"
        case "timeout":
            return "did not end in time"
        case _:
            return "could not be run"
