"""Pending questions to people: FIFO, bound to a digest, the first answer wins, silence is "no answer" (flow "An approval").

Of several open questions with the same digest only the oldest is shown: the same question is asked once.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Pending:
    """One open question. ``digest`` is empty for a question that carries no arguments; ``deadline`` is monotonic seconds."""

    id: str
    agent: str
    digest: str
    deadline: float


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent asks."""

    question: Pending


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answers question ``id`` as it stood at ``digest``; ``wide`` = the answer is for all that ask the same."""

    id: str
    digest: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class AgentGone:
    """The agent ended or died: its questions are moot."""

    agent: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The asking call was cancelled."""

    id: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed."""

    now: float


@dataclass(frozen=True, slots=True)
class Attached:
    """A user interface that can answer came (+1) or went (-1)."""

    change: int


@dataclass(frozen=True, slots=True)
class HubLost:
    """Nobody will answer any more."""


Happening = Asked | Answered | AgentGone | Withdrawn | Tick | Attached | HubLost


@dataclass(frozen=True, slots=True)
class Show:
    """Put the question before every attached interface. Comes again when the one that stood for it is gone."""

    id: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Close the question: with the person's answer, or because nobody answered (``why`` says so)."""

    id: str
    answered: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """An answer that does not count."""

    id: str
    why: str


Command = Show | Settle | Refuse


@dataclass(frozen=True, slots=True)
class Desk:
    """The state: open questions in the order of asking, and how many interfaces can answer."""

    pending: tuple[Pending, ...] = ()
    attached: int = 0
    limit: int = 1000

    def find(self, id: str) -> Pending | None:
        """The open question ``id``."""
        return next((p for p in self.pending if p.id == id), None)

    @property
    def next_deadline(self) -> float | None:
        """When the next question runs out of time."""
        return min((p.deadline for p in self.pending), default=None)


def step(desk: Desk, event: Happening) -> tuple[Desk, tuple[Command, ...]]:
    """The next state, and what the hub has to do."""
    after, commands = _step(desk, event)
    before = _shown(desk)
    return after, (*commands, *(Show(id) for id in _shown(after) if id not in before))


def _shown(desk: Desk) -> tuple[str, ...]:
    """The questions that people see: the oldest of each digest, and every one without."""
    first: dict[str, str] = {}
    for p in desk.pending:
        first.setdefault(p.digest or p.id, p.id)
    return tuple(first.values())


def _step(desk: Desk, event: Happening) -> tuple[Desk, tuple[Command, ...]]:
    match event:
        case Asked(question):
            return _asked(desk, question)
        case Answered():
            return _answered(desk, event)
        case Attached(change):
            after = replace(desk, attached=max(0, desk.attached + change))
        case HubLost():
            after = replace(desk, attached=0)
        case AgentGone() | Withdrawn() | Tick():
            after = desk
    return _close(after, *_moot(after, event))


def _moot(
    desk: Desk, event: AgentGone | Withdrawn | Tick | Attached | HubLost
) -> tuple[tuple[Pending, ...], str]:
    """The open questions that an event ends without an answer, and why."""
    match event:
        case AgentGone(agent):
            return tuple(p for p in desk.pending if p.agent == agent), "the agent that asked has ended"
        case Withdrawn(id):
            return tuple(p for p in desk.pending if p.id == id), "the question was withdrawn"
        case Tick(now):
            return tuple(p for p in desk.pending if p.deadline <= now), "nobody answered in time"
        case Attached():
            return () if desk.attached else desk.pending, "no interface is attached any more"
        case HubLost():
            return desk.pending, "the run is being stopped"


def _asked(desk: Desk, question: Pending) -> tuple[Desk, tuple[Command, ...]]:
    if desk.find(question.id) is not None:
        return desk, (Refuse(question.id, "a question with this id is open already"),)
    if not desk.attached:
        return desk, (
            Settle(question.id, answered=False, why="no interface is attached that could ask a person"),
        )
    if len(desk.pending) >= desk.limit:
        return desk, (Settle(question.id, answered=False, why=f"{desk.limit} questions are open already"),)
    return replace(desk, pending=(*desk.pending, question)), ()


def _answered(desk: Desk, event: Answered) -> tuple[Desk, tuple[Command, ...]]:
    id, question = event.id, desk.find(event.id)
    if question is None:
        return desk, (Refuse(id, "it is not open: it was answered, ran out of time, or its agent ended"),)
    if question.digest != event.digest:
        return desk, (Refuse(id, "the answer was given for other arguments than those that now wait"),)
    same = bool(question.digest) and event.wide
    closed = tuple(p for p in desk.pending if p.id == id or (same and p.digest == question.digest))
    rest = tuple(p for p in desk.pending if p not in closed)
    return replace(desk, pending=rest), tuple(Settle(p.id, answered=True) for p in closed)


def _close(desk: Desk, gone: tuple[Pending, ...], why: str) -> tuple[Desk, tuple[Command, ...]]:
    rest = tuple(p for p in desk.pending if p not in gone)
    return replace(desk, pending=rest), tuple(Settle(p.id, answered=False, why=why) for p in gone)
