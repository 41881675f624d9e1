"""Detectors between tool execution and the next model call: each a reminder with a guard of its own (REM-03, REM-06, REM-08)."""

from ..core.agent import AgentReport
from ..core.chat import MessageClass
from ..core.errors import ErrorInfo, ErrorKind
from ..core.tool import Effect, TodoState, ToolResult
from ..policy.redact import redact
from ..tools.batch_tool import unfolded
from ..tools.promotion import how_it_is
from ..tools.subagent_result import render
from .iteration import IterationContext

MAX_NUDGE_ATTEMPTS = 3
READS_IN_A_ROW = 5
PROACTIVE_EVERY = 10  # iterations (LOOP-04)
_RESULT_CHARS = 3_600
_PROCESS_LINES, _PROCESS_CHARS, _PROCESS_COMMAND = 20, 2_000, 200


def after_calls(ctx: IterationContext) -> None:
    """Step 8 with tool calls, in the order of the nine: plan approved, todos done, denied, reads; then a repeated failure."""
    _plan_approved(ctx)
    _todos_done(ctx)
    _denied(ctx)
    _reads(ctx)
    if ctx.recovery.repeated is not None and ctx.nudge("reflection", MAX_NUDGE_ATTEMPTS):
        tool, count, message = ctx.recovery.repeated
        ctx.remind("reflection", MessageClass.DIRECTIVE, tool=tool, count=count, message=message)


def proactive(ctx: IterationContext) -> None:
    """Every tenth iteration, the todos that are open, so that a long run does not lose them (LOOP-04)."""
    todos = ctx.open_todos()
    if todos and ctx.iteration > 1 and ctx.iteration % PROACTIVE_EVERY == 0:
        ctx.remind("todo_state", MessageClass.INTERNAL, count=ctx.iteration, todo_list=todos)


async def subagents_ended(ctx: IterationContext) -> None:
    """Step 4: reports of background sub-agents join the conversation; reports that came back ask for a synthesis (SUB-08)."""
    if ctx.children.running:
        for id, report in await ctx.unless_interrupted(ctx.children.ended()) or ():
            tell_report(ctx, id, report)
    returned = ctx.children.take_returned()
    if returned and ctx.nudge("subagent_synthesis", MAX_NUDGE_ATTEMPTS):
        ctx.remind("subagent_synthesis", count=returned)


async def processes_ended(ctx: IterationContext) -> None:
    """Background tasks that ended since the last turn, each told once, with its code and its last lines (SHL-11, P17)."""
    processes = ctx.ports.processes
    for info in () if processes is None else processes.take_ended():
        text = redact(await processes.tail(info.id, _PROCESS_LINES)) if processes else ""
        command = " ".join(info.command.split())[:_PROCESS_COMMAND]
        ctx.remind(
            "process_ended",
            MessageClass.DIRECTIVE,
            process_id=info.id,
            command=redact(command),
            how=how_it_is(info),
            output=text[-_PROCESS_CHARS:].strip() or "(none)",
            path=info.output,
        )


def tell_report(ctx: IterationContext, agent_id: str, report: AgentReport | ErrorInfo) -> None:
    """A background sub-agent's end, as a message: its call has had its result long ago (C13)."""
    if isinstance(report, ErrorInfo):
        text = f"It has no report: {report.sentence()}"
    else:
        text = render(report, ctx.dispatcher.make_context(f"background-{agent_id}")).text
    if len(text) > _RESULT_CHARS:
        half = _RESULT_CHARS // 2
        text = f"{text[:half]}\n[…]\n{text[-half:]}"
    ctx.children.returned += 1
    ctx.remind("subagent_complete", MessageClass.DIRECTIVE, agent_id=agent_id, result=text)


def note_result(ctx: IterationContext, result: ToolResult) -> None:
    """What a call's result means for the run, told before the next call of the same answer is judged.

    An approved plan ends plan mode and, with approve_auto, the questions about its edits (C-08, APR-09).
    """
    ctx.children.note(result)
    data = result.data
    if data and "call_id" in data:
        ctx.transcript.link(str(data["call_id"]), str(data.get("agent_id")))
    if data and data.get("plan_approved") is True:
        ctx.plan = data
        ctx.nudges["plan_approved"] = 0
        ctx.dispatcher.gate.plan_approved(edits=data.get("auto_approve") is True)


def _plan_approved(ctx: IterationContext) -> None:
    if ctx.plan is None or not ctx.nudge("plan_approved", 1):
        return
    auto = ctx.plan.get("auto_approve") is True
    edits = "; its edits are approved too" if auto else "; each edit is still reviewed"
    path = ctx.plan.get("plan_file_path", "")
    todos = ctx.open_todos()
    ctx.remind("plan_approved", MessageClass.DIRECTIVE, path=path, edits=edits, todo_list=todos)


def _todos_done(ctx: IterationContext) -> None:
    """Once per run: work goes on although every todo is done. The edits of a plan are over then."""
    todos = ctx.memo.todos
    if not todos or any(todo.state is not TodoState.DONE for todo in todos):
        return
    ctx.dispatcher.gate.plan_done()
    if ctx.nudge("all_todos_complete", 1):
        ctx.remind("all_todos_complete")


def _denied(ctx: IterationContext) -> None:
    """A refused call, a refused retry included: three reminders, then the agent's own decision counts (REM-07, APR-10)."""
    pending = ctx.recovery.pending
    if pending is None or pending.kind not in (ErrorKind.DENIED, ErrorKind.UNANSWERED):
        return
    name = "tool_unanswered" if pending.kind is ErrorKind.UNANSWERED else "tool_denied"
    if ctx.nudge(name, MAX_NUDGE_ATTEMPTS):
        ctx.remind(name, tool=ctx.calls[-1].name, reason=pending.message)


def _reads(ctx: IterationContext) -> None:
    """Answers in a row that only read. Waiting for a sub-agent or a process is no reading."""
    tools = [ctx.dispatcher.registry.resolve(call.name) for call in unfolded(ctx.calls)]
    only = all(
        not isinstance(tool, ErrorInfo) and tool.effects <= {Effect.READ, Effect.NET} and not tool.poller
        for tool in tools
    )
    ctx.reads = ctx.reads + 1 if only else 0
    if ctx.reads >= READS_IN_A_ROW and ctx.nudge("consecutive_reads", MAX_NUDGE_ATTEMPTS):
        ctx.remind("consecutive_reads", count=ctx.reads)
        ctx.reads = 0
