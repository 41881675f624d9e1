"""All that can happen, as a closed union. The hub numbers events on append; every UI draws from events only."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .approval import ApprovalAnswer, ApprovalRequest
from .chat import Question, Usage
from .errors import ErrorInfo
from .lease import Lease
from .model import Frozen, JsonObject, Persisted
from .ticket import TaskStatus, VerifyOutcome


class _Event(Persisted):
    """``seq`` is 0 until the hub appends the event. ``agent`` is an agent id, empty for the run itself."""

    seq: int = 0
    at: str = ""
    run: str = ""
    agent: str = ""


class RunStarted(_Event):
    """A prompt or a batch began."""

    kind: Literal["run_started"] = "run_started"
    what: str
    detail: JsonObject = {}


class AgentStarted(_Event):
    """An agent runs, in this process."""

    kind: Literal["agent_started"] = "agent_started"
    name: str
    parent: str = ""
    task: str = ""  # the ticket it works for
    pid: int = 0


class AgentFinished(_Event):
    """An agent ended; ``status`` is an ``AgentStatus``."""

    kind: Literal["agent_finished"] = "agent_finished"
    name: str
    status: str
    turns: int = 0
    usage: Usage = Usage()
    error: ErrorInfo | None = None


class TextDelta(_Event):
    """A piece of the answer as it streams. Ephemeral."""

    kind: Literal["text_delta"] = "text_delta"
    text: str


class AssistantText(_Event):
    """What the model said in one turn."""

    kind: Literal["assistant_text"] = "assistant_text"
    text: str


class ToolStarted(_Event):
    """A tool call passed every gate and runs."""

    kind: Literal["tool_started"] = "tool_started"
    call_id: str
    tool: str
    arguments: JsonObject


class ToolOutput(_Event):
    """A piece of a running command's output. Ephemeral."""

    kind: Literal["tool_output"] = "tool_output"
    call_id: str
    text: str


class ProcessChanged(_Event):
    """A background task of the agent started or ended; ``state`` is a ``ProcessState`` (SHL-11)."""

    kind: Literal["process_changed"] = "process_changed"
    id: str
    command: str
    pid: int
    state: str
    exit_code: int | None = None
    signal: int | None = None


class ToolFinished(_Event):
    """A tool call has its result."""

    kind: Literal["tool_finished"] = "tool_finished"
    call_id: str
    tool: str
    ok: bool
    summary: str
    error: ErrorInfo | None = None
    wall_s: float = 0.0


class GateDecided(_Event):
    """A safety layer refused a call or sent it to a person (ARC-03 c), or let a command line pass (APR-07).

    ``subject``: the command line, or the arguments, without secrets; ``rule``: the rule of permissions.json that decided.
    """

    kind: Literal["gate_decided"] = "gate_decided"
    tool: str
    decision: Literal["allow", "ask", "deny"]
    layer: str
    reason: str
    subject: str = ""
    rule: str = ""


class ApprovalAsked(_Event):
    """A call waits for a person."""

    kind: Literal["approval_asked"] = "approval_asked"
    request: ApprovalRequest


class ApprovalAnswered(_Event):
    """A waiting call was answered, or nobody answered; ``subject`` is the call, as in ``GateDecided``."""

    kind: Literal["approval_answered"] = "approval_answered"
    request_id: str
    answer: ApprovalAnswer
    tool: str = ""
    subject: str = ""


class QuestionAsked(_Event):
    """The agent asks the user."""

    kind: Literal["question_asked"] = "question_asked"
    request_id: str
    questions: tuple[Question, ...]


class QuestionAnswered(_Event):
    """The user answered; None = nobody did."""

    kind: Literal["question_answered"] = "question_answered"
    request_id: str
    answers: tuple[str, ...] | None


class TodoLine(Frozen):
    """One item of an agent's list, as a screen shows it."""

    id: str
    text: str
    state: Literal["todo", "doing", "done"]


class TodosChanged(_Event):
    """The agent's whole list, in order, after it changed (TSK-09); at most 100 items."""

    kind: Literal["todos_changed"] = "todos_changed"
    todos: tuple[TodoLine, ...]


class Compacted(_Event):
    """A compaction stage ran (CMP-16); tokens of the request view."""

    kind: Literal["compacted"] = "compacted"
    stage: str
    before: int
    after: int


class LeaseGranted(_Event):
    """A working folder was handed out."""

    kind: Literal["lease_granted"] = "lease_granted"
    lease: Lease


class LeaseEnded(_Event):
    """A working folder was given back; ``how`` says what became of it."""

    kind: Literal["lease_ended"] = "lease_ended"
    lease_id: str
    how: Literal["released", "quarantined", "kept"]
    detail: str = ""


class TaskChanged(_Event):
    """A ticket moved on: queued, setup, working, verifying, reviewing, integrating, or a final status."""

    kind: Literal["task_changed"] = "task_changed"
    task: str
    state: (
        Literal["queued", "setup", "working", "verifying", "reviewing", "integrating", "retrying"]
        | TaskStatus
    )
    attempt: int = 0
    detail: str = ""


class Verified(_Event):
    """A verification command ended."""

    kind: Literal["verified"] = "verified"
    task: str
    where: Literal["base", "task", "composed", "agent"]
    result: VerifyOutcome


class Merged(_Event):
    """The integration branch moved."""

    kind: Literal["merged"] = "merged"
    task: str
    commit: str
    into: str


class Cost(_Event):
    """What the run has cost so far."""

    kind: Literal["cost"] = "cost"
    total: Usage
    calls: int


class Notice(_Event):
    """Something a person should know: a degraded mode, a retry, a warning."""

    kind: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"]
    text: str


class RunFinished(_Event):
    """A prompt ended (``status`` is an ``AgentStatus``) or a batch ended."""

    kind: Literal["run_finished"] = "run_finished"
    status: str
    exit_code: int


Event = Annotated[
    RunStarted
    | AgentStarted
    | AgentFinished
    | TextDelta
    | AssistantText
    | ToolStarted
    | ToolOutput
    | ProcessChanged
    | ToolFinished
    | GateDecided
    | ApprovalAsked
    | ApprovalAnswered
    | QuestionAsked
    | QuestionAnswered
    | TodosChanged
    | Compacted
    | LeaseGranted
    | LeaseEnded
    | TaskChanged
    | Verified
    | Merged
    | Cost
    | Notice
    | RunFinished,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
EPHEMERAL = frozenset({"text_delta", "tool_output"})
