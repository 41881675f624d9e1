"""What stands when a run begins or is taken over: settled landings, recorded ends, spent money (``swarm resume``)."""

from ..core.ticket import SwarmPlan, TaskStatus, Ticket
from .books import add
from .crew import Batch
from .journal import LandingDone, Resumed, RunBegan
from .landing import Lander
from .recover import Past, Recovered
from .schedule import Node


class Takeover:
    """The past of a run, if it has one, entered into its books."""

    def __init__(self, batch: Batch, lander: Lander, past: Recovered | None) -> None:
        self._batch, self._lander, self._past = batch, lander, past

    async def begin_journal(self, plan: SwarmPlan) -> None:
        """The first record of this process."""
        batch = self._batch
        if self._past is not None:
            await batch.journal.write(Resumed(at=batch.now))
            return
        settings = batch.settings
        await batch.journal.write(
            RunBegan(
                run_id=settings.run_id,
                repo=str(settings.repo),
                base=settings.base,
                plan=plan,
                models=dict(settings.models),
                at=batch.now,
            )
        )

    async def node(self, ticket: Ticket, waits: tuple[str, ...]) -> Node:
        """The ticket as the schedule has to see it."""
        past = self._past.tasks[ticket.id] if self._past else Past()
        book = self._batch.books.tasks[ticket.id]
        book.earlier, book.attempts = list(past.spent), past.attempts
        if past.worked is not None:
            book.base, book.branch = past.worked.base, past.worked.branch
            book.commit, book.files = past.worked.commit, past.worked.files
        ended = await self._settle(ticket, past)
        history = self._batch.ports.history
        worked = past.worked is not None and bool(await history.resolve(past.worked.commit))
        return Node(
            parents=ticket.depends_on,
            waits=waits,
            attempts=ticket.attempts,
            used=past.attempts,
            worked=worked,
            ended=ended,
        )

    async def open_scopes(self, tickets: tuple[Ticket, ...]) -> None:
        """Tell the ledger what may still be spent, by the run and by each ticket."""
        ledger, books = self._batch.ports.ledger, self._batch.books
        if ledger is None:
            return
        spent = {ticket.id: add(books.tasks[ticket.id].earlier).usage.cost_usd for ticket in tickets}
        run_cap = _left(self._batch.swarm.max_cost_usd, sum(spent.values()))
        await ledger.open_scope(f"run:{self._batch.settings.run_id}", run_cap, None)
        for ticket in tickets:
            await ledger.open_scope(f"task:{ticket.id}", _left(ticket.max_cost_usd, spent[ticket.id]), None)

    async def _settle(self, ticket: Ticket, past: Past) -> TaskStatus | None:
        """The recorded end that stands. A landing without its end is settled by the branch itself: nothing lands twice."""
        began = past.landing
        if past.landed is None and began is not None and await self._lander.holds(began):
            past.landed = LandingDone(
                task=ticket.id, attempt=began.attempt, commit=began.commit, merged_as=began.new
            )
            await self._batch.journal.write(past.landed)
        if past.merged and not await self._lander.still_holds(past.merged):
            past.landed = past.final = None  # the branch was deleted or moved back: what it lost lands again
            return None
        if self._past is None or not self._past.is_over(ticket.id):
            return None
        book = self._batch.books.tasks[ticket.id]
        book.verify, book.reviews = past.verify, past.reviews
        if past.final is not None:
            book.branch, book.commit, book.files = past.final.branch, past.final.commit, past.final.files
            book.detail, book.wall_s, book.merged_as = (
                past.final.error or "",
                past.final.wall_s,
                past.final.merged_as,
            )
            book.status = past.final.status
        if past.landed is not None:
            book.merged_as, book.status, book.detail = past.landed.merged_as, TaskStatus.MERGED, ""
        return book.status


def _left(cap: float | None, spent: float) -> float | None:
    return None if cap is None else max(0.0, cap - spent)
