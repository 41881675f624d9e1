"""What a journal says about each ticket: what is merged, what can go on from its commit, what must run (again)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..core.ticket import ReviewOutcome, TaskResult, TaskStatus, VerifyOutcome
from .journal import (
    AgentDone,
    AgentSpent,
    AttemptFailed,
    AttemptStarted,
    CheckDone,
    Final,
    LandingBegan,
    LandingDone,
    Record,
    ReviewDone,
    RunBegan,
    RunEnded,
    Spent,
    content_key,
)

# Ended by the circumstances, not by a verdict on the work: a resume runs these again even after a crash.
_CIRCUMSTANCE = frozenset(
    {
        TaskStatus.CANCELLED,
        TaskStatus.INFRA,
        TaskStatus.SKIPPED,
        TaskStatus.BUDGET,
        TaskStatus.SETUP_FAILED,
        TaskStatus.BLOCKED,
    }
)


@dataclass(slots=True)
class Past:
    """One ticket's history. ``worked`` is the commit of an attempt that neither failed nor landed yet."""

    attempts: int = 0
    failed: int = 0
    worked: AgentDone | None = None
    landing: LandingBegan | None = None
    landed: LandingDone | None = None
    final: TaskResult | None = None
    verify: VerifyOutcome | None = None
    reviews: tuple[ReviewOutcome, ...] = ()
    spent: list[Spent] = field(default_factory=list[Spent])

    @property
    def merged(self) -> str:
        """The commit of the integration branch that holds the ticket's change; empty while there is none."""
        return self.landed.merged_as if self.landed else self.final.merged_as if self.final else ""

    def take_check(self, record: CheckDone) -> None:
        """Keep what the report shows: the ticket's own verification, or what went red on the composed state."""
        if record.where == "task" or record.result.outcome != "pass" or self.verify is None:
            self.verify = record.result


@dataclass(slots=True)
class Recovered:
    """A journal, folded."""

    began: RunBegan
    finished: bool
    tasks: dict[str, Past]
    baseline: VerifyOutcome | None = None

    def is_over(self, task: str) -> bool:
        """Whether the recorded end of ``task`` stands. After a finished run only merged tickets stand; after a crash,
        verdicts on the work stand too. (cc#76907: 2 of 102 failed, and 96 ran again.)"""
        past = self.tasks[task]
        if past.landed is not None or (past.final and past.final.status is TaskStatus.MERGED):
            return True
        if past.final is None or self.finished:
            return False
        return past.final.status not in _CIRCUMSTANCE


def recover(records: Iterable[Record]) -> Recovered:
    """Fold a journal; its first record is ``RunBegan`` (checked by ``Journal.read``)."""
    found: Recovered | None = None
    for record in records:
        if isinstance(record, RunBegan):
            tasks = {ticket.id: Past() for ticket in record.plan.task}
            found = Recovered(record, finished=False, tasks=tasks)
        elif found is not None:
            _fold(found, record)
    if found is None:
        raise ValueError("a journal begins with its run")
    tickets = {ticket.id: ticket for ticket in found.began.plan.task}
    for name, past in found.tasks.items():
        if past.worked and past.worked.key != content_key(tickets[name], past.worked.base):
            past.worked = None
    return found


def _fold(found: Recovered, record: Record) -> None:
    if isinstance(record, CheckDone) and record.where == "base":
        found.baseline = record.result
        return
    found.finished = isinstance(record, RunEnded)
    if isinstance(record, Final):
        past = found.tasks[record.result.id]
        past.final = record.result
        if record.result.status is not TaskStatus.MERGED:
            past.worked = None
    elif isinstance(
        record,
        AttemptStarted
        | AgentDone
        | AgentSpent
        | CheckDone
        | ReviewDone
        | LandingBegan
        | LandingDone
        | AttemptFailed,
    ):
        _fold_task(found.tasks[record.task], record)


def _fold_task(
    past: Past,
    record: AttemptStarted
    | AgentDone
    | AgentSpent
    | CheckDone
    | ReviewDone
    | LandingBegan
    | LandingDone
    | AttemptFailed,
) -> None:
    match record:
        case AttemptStarted():
            past.attempts = max(past.attempts, record.attempt)
            past.worked = past.landing = past.final = past.verify = None
        case AgentDone():
            past.worked = record
        case AgentSpent():
            past.spent.append(record.spent)
        case CheckDone():
            past.take_check(record)
        case ReviewDone():
            past.reviews = record.reviews
        case LandingBegan():
            past.landing = record
        case LandingDone():
            past.landed = record
        case AttemptFailed():
            past.worked = past.landing = None
            past.failed += 1
