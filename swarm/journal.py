"""The journal of a run: every step a durable record, keyed by content, so that resume runs exactly what is unfinished."""

import asyncio
import hashlib
import os
import signal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from ..core.chat import Role, Usage, canonical
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, Persisted
from ..core.ticket import ReviewOutcome, SwarmPlan, TaskResult, TaskStatus, Ticket, VerifyOutcome
from ..store.atomic import JsonlLog


class Spent(Frozen):
    """What one agent run used."""

    usage: Usage = Usage()
    model_calls: int = 0
    tool_calls: int = 0
    wall_s: float = 0.0
    pid: int = 0


class RunBegan(Persisted):
    """The first record: everything a resume needs."""

    kind: Literal["run_started"] = "run_started"
    run_id: str
    repo: str
    base: str
    plan: SwarmPlan
    models: dict[Role, str] = {}
    at: str = ""


class Resumed(Persisted):
    """Another process took the run over."""

    kind: Literal["resumed"] = "resumed"
    at: str = ""


class AttemptStarted(Persisted):
    """An agent is about to be started for a ticket."""

    kind: Literal["attempt_started"] = "attempt_started"
    task: str
    attempt: int
    key: str
    base: str


class AgentDone(Persisted):
    """The attempt's work is a commit, inside of its scope."""

    kind: Literal["agent_done"] = "agent_done"
    task: str
    attempt: int
    key: str
    base: str
    branch: str
    commit: str
    files: tuple[str, ...] = ()


class AgentSpent(Persisted):
    """An agent ended, well or not; what it used."""

    kind: Literal["agent_spent"] = "agent_spent"
    task: str
    attempt: int
    agent: str
    spent: Spent


class CheckDone(Persisted):
    """A verification ended."""

    kind: Literal["verified"] = "verified"
    task: str
    attempt: int
    where: Literal["base", "task", "composed"]
    commit: str
    result: VerifyOutcome


class ReviewDone(Persisted):
    """The reviewers have spoken."""

    kind: Literal["reviewed"] = "reviewed"
    task: str
    attempt: int
    reviews: tuple[ReviewOutcome, ...]


class LandingBegan(Persisted):
    """The integration branch is about to be moved from ``old`` to ``new``."""

    kind: Literal["landing"] = "landing"
    task: str
    attempt: int
    commit: str
    old: str
    new: str


class LandingDone(Persisted):
    """The integration branch holds the ticket's change as ``merged_as``."""

    kind: Literal["landed"] = "landed"
    task: str
    attempt: int
    commit: str
    merged_as: str


class AttemptFailed(Persisted):
    """An attempt is over without landing."""

    kind: Literal["attempt_failed"] = "attempt_failed"
    task: str
    attempt: int
    status: TaskStatus
    detail: str = ""


class Final(Persisted):
    """A ticket has its final status."""

    kind: Literal["final"] = "final"
    result: TaskResult


class RunEnded(Persisted):
    """The run is over; its report is written."""

    kind: Literal["run_finished"] = "run_finished"
    status: str
    exit_code: int


Record = Annotated[
    RunBegan
    | Resumed
    | AttemptStarted
    | AgentDone
    | AgentSpent
    | CheckDone
    | ReviewDone
    | LandingBegan
    | LandingDone
    | AttemptFailed
    | Final
    | RunEnded,
    Field(discriminator="kind"),
]
_RECORD: TypeAdapter[Record] = TypeAdapter(Record)


def content_key(ticket: Ticket, base: str) -> str:
    """The key of a piece of work: the ticket's content and the commit it starts from, never its position in the file."""
    text = canonical([ticket.model_dump(mode="json", by_alias=True), base])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


class Journal:
    """Appends records, one ``fsync`` each, in the order of the calls."""

    def __init__(self, path: Path, crash_after: int | None = None) -> None:
        self.path = path
        self._log = JsonlLog(path)
        self._lock = asyncio.Lock()
        self._crash_after = crash_after
        self._written = 0

    async def write(self, record: Record) -> None:
        """Make ``record`` durable. Raises ``OpenDevError`` (infra) when the disk refuses."""
        async with self._lock:
            await asyncio.to_thread(self._log.append, record.to_json())
            self._written += 1
            if self._written == self._crash_after:
                os.kill(os.getpid(), signal.SIGKILL)

    def read(self) -> tuple[Record, ...]:
        """All whole records. Raises ``OpenDevError`` (usage) when the file is not a journal."""
        found: list[Record] = []
        for line in self._log.read():
            try:
                found.append(_RECORD.validate_json(line))
            except ValidationError as error:
                raise OpenDevError(
                    ErrorKind.USAGE,
                    f"The journal {self.path} holds a record this version cannot read: {line[:80]}",
                    "Look at the run with `opendev swarm report`; start a new run instead of resuming.",
                ) from error
        if not found or not isinstance(found[0], RunBegan):
            raise OpenDevError(
                ErrorKind.USAGE,
                f"There is no run in {self.path.parent}.",
                "`opendev swarm status` lists the runs.",
            )
        return tuple(found)
