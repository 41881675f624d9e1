"""The agents of a run: how many at once, who lives, what they spent, and what the run tells about its tickets."""

import asyncio
from dataclasses import dataclass

from ..core.agent import AgentReport, AgentStatus, AgentTask
from ..core.clock import iso
from ..core.events import Cost, TaskChanged, Verified
from ..core.ticket import SwarmSettings, TaskStatus
from .books import Books, add
from .journal import AgentSpent, Journal, Spent
from .ports import RunSettings, SwarmPorts
from .verify import Verification

GRACE_S = 30.0  # beyond the agent's own time limit, before it is ended from outside


@dataclass(frozen=True, slots=True)
class Batch:
    """What every step of one run shares."""

    ports: SwarmPorts
    settings: RunSettings
    swarm: SwarmSettings
    books: Books
    journal: Journal

    @property
    def now(self) -> str:
        """The wall time, as events carry it."""
        return iso(self.ports.clock.now())


class AttemptOver(Exception):
    """The attempt will not land."""

    def __init__(self, status: TaskStatus, detail: str, retry: bool = True) -> None:
        super().__init__(status, detail, retry)
        self.status, self.detail, self.retry = status, detail, retry


class Crew:
    """Runs the agents of tickets and reviewers under one cap. ``stopping`` holds the reason once nothing new may start."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._permits = asyncio.Semaphore(batch.swarm.concurrency)
        self.live: dict[str, set[str]] = {}  # ids of running agents by ticket
        self.stopping = ""

    async def run(self, task: str, attempt: int, order: AgentTask) -> AgentReport:
        """Run one agent for a ticket and enter what it used. Raises ``AttemptOver`` when the run is being stopped."""
        async with self._permits:
            self.refuse_when_stopping()
            living = self.live.setdefault(task, set())
            living.add(order.id)
            try:
                with self._batch.books.agent(), self._batch.books.phase("work"):
                    report = await self._watched(order)
            finally:
                living.discard(order.id)
        spent = Spent(
            usage=report.usage, model_calls=report.model_calls, tool_calls=report.tool_calls,
            wall_s=report.wall_s, pid=report.pid,
        )  # fmt: skip
        self._batch.books.spend(task, spent)
        await self._batch.journal.write(AgentSpent(task=task, attempt=attempt, agent=order.id, spent=spent))
        total = add([book.total() for book in self._batch.books.tasks.values()])
        self._batch.ports.emit(
            Cost(
                run=self._batch.settings.run_id,
                at=self._batch.now,
                total=total.usage,
                calls=total.model_calls,
            )
        )
        return report

    async def _watched(self, order: AgentTask) -> AgentReport:
        limit = order.budget.timeout_s
        try:
            async with asyncio.timeout(None if limit is None else limit + GRACE_S):
                return await self._batch.ports.agents.run_agent(order)
        except TimeoutError:
            await self._batch.ports.agents.cancel(order.id, "its time is up")
            return AgentReport(
                id=order.id, agent=order.spec.name, status=AgentStatus.TIMEOUT, wall_s=limit or 0.0
            )

    def tell(self, task: str, state: str, attempt: int, detail: str = "") -> None:
        """Emit a change of state."""
        now = self._batch.now
        event = TaskChanged.model_validate(
            {
                "task": task,
                "state": state,
                "attempt": attempt,
                "detail": detail,
                "run": self._batch.settings.run_id,
                "at": now,
            }
        )
        self._batch.ports.emit(event)

    def tell_verified(self, task: str, where: str, found: Verification) -> None:
        """Emit the end of a verification, and keep its notes."""
        for note in found.notes:
            self._batch.books.note(f"{task}: {note}" if task else note)
        event = Verified.model_validate({"task": task, "where": where, "result": found.outcome})
        self._batch.ports.emit(
            event.model_copy(update={"run": self._batch.settings.run_id, "at": self._batch.now})
        )

    def refuse_when_stopping(self) -> None:
        """Raise ``AttemptOver`` (cancelled) when nothing new may start."""
        if self.stopping:
            raise AttemptOver(TaskStatus.CANCELLED, self.stopping, retry=False)

    def scopes(self, task: str) -> tuple[str, ...]:
        """The budgets that a ticket's model calls are charged to."""
        return (f"run:{self._batch.settings.run_id}", f"task:{task}")
