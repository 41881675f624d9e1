"""An event as one plain line for people; None for events that are not worth one."""

from ..core.events import (
    AgentFinished,
    AgentStarted,
    ApprovalAnswered,
    ApprovalAsked,
    AssistantText,
    Compacted,
    Event,
    GateDecided,
    LeaseEnded,
    Merged,
    Notice,
    ProcessChanged,
    QuestionAnswered,
    QuestionAsked,
    RunFinished,
    RunStarted,
    TaskChanged,
    ToolFinished,
    ToolStarted,
    Verified,
)
from ..policy.visible import visible

LINE_CHARS = 200
NOTICE_CHARS = 800  # a notice ends with what to do about it
SILENT = frozenset(  # kinds that never have a line; the tools' own lines tell of the todos
    {"text_delta", "tool_output", "lease_granted", "cost", "todos_changed"}
)


def line_of(event: Event) -> str | None:
    """One line without control characters, at most 200 characters of foreign text (a notice: 800); multi-line answers stay whole."""
    if isinstance(event, AssistantText):
        return visible(event.text.strip()) or None
    text = _agent(event) or _tool(event) or _gate(event) or _question(event) or _ticket(event) or _run(event)
    return (
        None
        if text is None
        else visible(_one_line(text, NOTICE_CHARS if isinstance(event, Notice) else LINE_CHARS))
    )


def _one_line(text: str, most: int) -> str:
    flat = text[: len(text) - len(text.lstrip())] + " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _agent(event: Event) -> str | None:
    match event:
        case AgentStarted():
            return f"> {event.name} {event.agent} starts" + (f" on {event.task}" if event.task else "")
        case AgentFinished():
            why = f": {event.error.sentence()}" if event.error else ""
            return f"< {event.name} {event.agent} {event.status} after {event.turns} turns{why}"
        case LeaseEnded() if event.how != "released":
            return f"! the working folder of {event.lease_id} was {event.how}: {event.detail}"
        case _:
            return None


def _tool(event: Event) -> str | None:
    match event:
        case ToolStarted():
            shown = ", ".join(f"{key}={value!r}" for key, value in event.arguments.items())
            return f"  {event.tool}({shown})"
        case ToolFinished():
            mark = "ok" if event.ok else "failed"
            return (
                f"  {event.tool} {mark}: {event.summary or (event.error.sentence() if event.error else '')}"
            )
        case ProcessChanged():
            code = "" if event.exit_code is None else f", exit code {event.exit_code}"
            return f"  background task {event.id} {event.state}{code}: {event.command}"
        case Compacted():
            return f"  context {event.stage}: {event.before} to {event.after} tokens"
        case _:
            return None


def _gate(event: Event) -> str | None:
    match event:
        case GateDecided() if event.decision == "deny":
            return f"! {event.tool} was refused by {event.layer}: {event.reason}"
        case ApprovalAsked():
            request = event.request
            return f"? {request.agent} asks to run {request.tool}: {request.card}"
        case ApprovalAnswered():
            told = {"deny": "denied", "no_answer": "not answered, so denied"}
            return f"  {event.request_id} was {told.get(event.answer.decision, 'allowed')}"
        case _:
            return None


def _question(event: Event) -> str | None:
    match event:
        case QuestionAsked():
            return "? " + " / ".join(question.text for question in event.questions)
        case QuestionAnswered():
            return "  nobody answered" if event.answers is None else f"  answered: {', '.join(event.answers)}"
        case _:
            return None


def _ticket(event: Event) -> str | None:
    match event:
        case TaskChanged():
            tries = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            return f"* {event.task}: {event.state}{tries}" + (f": {event.detail}" if event.detail else "")
        case Verified():
            who = event.task or "the base"
            return f"  {event.where} verification of {who}: {event.result.outcome} in {event.result.wall_s:.1f} s"
        case Merged():
            return f"+ {event.task} landed on {event.into} as {event.commit[:12]}"
        case _:
            return None


def _run(event: Event) -> str | None:
    match event:
        case Notice():
            return f"{event.level}: {event.text}"
        case RunStarted():
            return f"Run {event.run}: {event.what}"
        case RunFinished():
            return f"Run {event.run} {event.status} (exit {event.exit_code})"
        case _:
            return None
