"""Record model calls to a file and answer from it (--record, --replay): JSON lines of request digest and reply (MOD-11)."""

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable

from pydantic import Field, TypeAdapter, ValidationError

from ..core.chat import (
    Message,
    MessageClass,
    ModelFailed,
    ModelReply,
    ModelRequest,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
    canonical,
)
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.model import Persisted
from .budget import Journal


class Recorded(Persisted):
    """One line of the file."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    model: str
    reply: ModelReply | ModelFailed


_RECORDED: TypeAdapter[Recorded] = TypeAdapter(Recorded)


def digest(request: ModelRequest) -> str:
    """SHA-256 of the conversation; what differs in every run does not count.

    That is: the ids of request and agent, the budgets and the way of delivery; the environment block (date, an agent's own
    folder); what tools print (times, process ids, ids of sub-agents), though not whether they failed; and the harness's
    reminders, which quote such output.
    """
    seen = request.model_dump(exclude={"id", "agent_id", "scopes", "stream", "messages"})
    seen["messages"] = [_lasting(message).model_dump() for message in request.messages]
    return hashlib.sha256(canonical(seen).encode()).hexdigest()


def _lasting(message: Message) -> Message:
    match message:
        case SystemMessage():
            return message.model_copy(update={"dynamic": ""})
        case ToolMessage():
            return message.model_copy(update={"content": "", "summary": ""})
        case UserMessage() if message.msg_class is not MessageClass.USER:
            return message.model_copy(update={"content": ""})
        case _:
            return message


def recorded_line(request: ModelRequest, reply: ModelReply | ModelFailed) -> str:
    """The line to append for one call."""
    return Recorded(digest=digest(request), model=request.model, reply=reply).to_json()


class Replay:
    """Answers from a recording. Equal requests get their recorded answers in order; the usage is kept, nothing is spent."""

    def __init__(self, source: Journal, name: str) -> None:
        self._name = name
        self.model = ""  # of the first call
        self._answers: dict[str, deque[ModelReply | ModelFailed]] = defaultdict(deque)
        self._load(source.read())

    def _load(self, lines: Iterable[str]) -> None:
        for number, line in enumerate(lines, start=1):
            try:
                row = _RECORDED.validate_json(line)
            except ValidationError as error:
                raise OpenDevError(
                    ErrorKind.USAGE,
                    f"Line {number} of the recording {self._name} cannot be read.",
                    "Record the run again with --record.",
                ) from error
            self._answers[row.digest].append(row.reply)
            self.model = self.model or row.model
        if not self._answers:
            raise OpenDevError(
                ErrorKind.USAGE, f"The recording {self._name} holds no call.", "Make one with --record FILE."
            )

    def answer(self, request: ModelRequest) -> ModelReply | ModelFailed:
        """The next recorded answer; a request that was never recorded is a failure that says so."""
        key = digest(request)
        waiting = self._answers.get(key)
        if waiting:
            return waiting.popleft()
        why = "was asked more often than it was recorded" if waiting is not None else "is not in it"
        error = ErrorInfo(
            kind=ErrorKind.MODEL,
            message=f"The recording {self._name} has no answer: the request {key[:12]} to {request.model} {why}.",
            hint="The prompt, the tools or the outcome of a call differ from the recorded run; record it again with --record.",
        )
        return ModelFailed(error=error, usage=Usage(), tries=1)
