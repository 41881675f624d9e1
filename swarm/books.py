"""What a run has done and spent so far, by ticket and in all; the report is written from here."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from ..core.chat import Usage
from ..core.clock import Clock
from ..core.ticket import AgentCounts, ReviewOutcome, TaskStatus, VerifyOutcome
from .journal import Spent

Phase = Literal["plan", "spawn", "work", "verify", "integrate"]
MAX_NOTES = 300


@dataclass(slots=True)
class TaskBook:
    """One ticket. ``earlier`` was spent by a process that is gone, ``spent`` by this one."""

    attempts: int = 0
    base: str = ""
    branch: str = ""
    commit: str = ""
    merged_as: str = ""
    files: tuple[str, ...] = ()
    verify: VerifyOutcome | None = None
    reviews: tuple[ReviewOutcome, ...] = ()
    earlier: list[Spent] = field(default_factory=list[Spent])
    spent: list[Spent] = field(default_factory=list[Spent])
    status: TaskStatus | None = None
    detail: str = ""
    began: float | None = None
    wall_s: float = 0.0
    branches: set[str] = field(default_factory=set[str])

    def total(self) -> Spent:
        """Everything its agents reported."""
        return add(self.earlier + self.spent)


class Books:
    """All tickets, the agents, the phases and the notes of a run."""

    def __init__(self, clock: Clock, tasks: tuple[str, ...]) -> None:
        self._clock = clock
        self.tasks = {name: TaskBook() for name in tasks}
        self.phases: dict[Phase, float] = dict.fromkeys(("plan", "spawn", "work", "verify", "integrate"), 0.0)
        self.notes: list[str] = []
        self.worktrees: set[str] = set()
        self._live = self._spawned = self._peak = 0
        self._pids: set[int] = set()

    @contextmanager
    def phase(self, name: Phase) -> Generator[None]:
        """Add the time spent inside to a phase; phases of parallel tickets add up."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases[name] + self._clock.monotonic() - began, 3)

    @contextmanager
    def agent(self) -> Generator[None]:
        """Count one living agent."""
        self._spawned += 1
        self._live += 1
        self._peak = max(self._peak, self._live)
        try:
            yield
        finally:
            self._live -= 1

    def spend(self, task: str, spent: Spent) -> None:
        """Enter what one agent used."""
        self.tasks[task].spent.append(spent)
        if spent.pid:
            self._pids.add(spent.pid)

    def note(self, text: str) -> None:
        """Keep a note for the retrospective; at most 300, then one that says that there were more."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)
        elif len(self.notes) == MAX_NOTES:
            self.notes.append("More notes were left out; the journal has every step.")

    def agents(self) -> AgentCounts:
        """How many agents ran, how many at once, in which processes."""
        return AgentCounts(spawned=self._spawned, peak=self._peak, pids=tuple(sorted(self._pids)))


def add(items: list[Spent]) -> Spent:
    """The sum; ``pid`` has none."""
    return Spent(
        usage=sum((item.usage for item in items), Usage()),
        model_calls=sum(item.model_calls for item in items),
        tool_calls=sum(item.tool_calls for item in items),
        wall_s=round(sum(item.wall_s for item in items), 3),
    )
