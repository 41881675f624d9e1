"""Mail between actors: an envelope and the closed union of its bodies. Everything goes through the hub (ACT-04, ACT-05)."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .agent import AgentReport, SpawnRequest
from .approval import ApprovalAnswer, ApprovalRequest
from .chat import Message, ModelFailed, ModelReply, ModelRequest, Question, Usage
from .errors import ErrorInfo
from .events import Event
from .model import Frozen, Persisted


class Spawn(Frozen):
    """An agent asks for a sub-agent; answered by ``Result``, or ``Failed`` when the broker refuses."""

    kind: Literal["spawn"] = "spawn"
    request: SpawnRequest


class CollectOutput(Frozen):
    """An agent asks for the result of a background sub-agent; waits up to ``wait_s``."""

    kind: Literal["collect_output"] = "collect_output"
    agent_id: str
    wait_s: float = 0.0


class Progress(Frozen):
    """An event on its way to the hub."""

    kind: Literal["progress"] = "progress"
    event: Event


class AskApproval(Frozen):
    """A call waits for a person; answered by ``Answer``."""

    kind: Literal["ask_approval"] = "ask_approval"
    request: ApprovalRequest


class AskUser(Frozen):
    """A question for the user; answered by ``Answer``."""

    kind: Literal["ask_user"] = "ask_user"
    questions: tuple[Question, ...]


class Answer(Frozen):
    """The answer to an approval or a question. Both None: nobody answered."""

    kind: Literal["answer"] = "answer"
    approval: ApprovalAnswer | None = None
    texts: tuple[str, ...] | None = None


class PeerMessage(Frozen):
    """A message for another agent, delivered at its next turn."""

    kind: Literal["peer_message"] = "peer_message"
    text: str


class Result(Frozen):
    """How a sub-agent ended. ``running`` is set when a background agent has no result yet."""

    kind: Literal["result"] = "result"
    report: AgentReport | None = None
    running: str = ""


class Cancel(Frozen):
    """Stop an agent with all its descendants; answered when they are dead."""

    kind: Literal["cancel"] = "cancel"
    agent_id: str
    reason: str


class CostReport(Frozen):
    """What a call cost, for the one ledger of the session (ACT-14)."""

    kind: Literal["cost_report"] = "cost_report"
    usage: Usage


class ModelCall(Frozen):
    """A model call routed through the hub, where no model service runs beside the agent."""

    kind: Literal["model_call"] = "model_call"
    request: ModelRequest


class ModelAnswer(Frozen):
    """The answer to ``ModelCall``."""

    kind: Literal["model_answer"] = "model_answer"
    reply: ModelReply | ModelFailed


class Compact(Frozen):
    """An agent asks for a summary of messages by ``model``; answered by ``Summary`` or ``Failed`` (ACT-13)."""

    kind: Literal["compact"] = "compact"
    messages: tuple[Message, ...]
    artifacts: str
    model: str
    scopes: tuple[str, ...] = ()


class AskRoster(Frozen):
    """An agent asks which sub-agents of its own run and which have ended; answered by ``Summary``."""

    kind: Literal["ask_roster"] = "ask_roster"


class Summary(Frozen):
    """The summary, or the roster."""

    kind: Literal["summary"] = "summary"
    text: str


class Down(Frozen):
    """A process died. ``name`` is the actor's, ``agents`` those that lived in it."""

    kind: Literal["down"] = "down"
    name: str
    reason: str
    agents: tuple[str, ...] = ()


class Ok(Frozen):
    """Done, nothing to say."""

    kind: Literal["ok"] = "ok"


class Failed(Frozen):
    """An error as a reply."""

    kind: Literal["failed"] = "failed"
    error: ErrorInfo


Body = Annotated[
    Spawn
    | CollectOutput
    | Progress
    | AskApproval
    | AskUser
    | Answer
    | PeerMessage
    | Result
    | Cancel
    | CostReport
    | ModelCall
    | ModelAnswer
    | Compact
    | AskRoster
    | Summary
    | Down
    | Ok
    | Failed,
    Field(discriminator="kind"),
]


class Envelope(Persisted):
    """One letter. ``seq`` counts one sender's letters, so that the hub removes doubles; ``correlation`` names the letter answered."""

    id: str
    session: str
    sender: str
    to: str = "hub"
    seq: int = 0
    cause: str = ""
    correlation: str = ""
    at: str = ""
    body: Body


ENVELOPE: TypeAdapter[Envelope] = TypeAdapter(Envelope)
