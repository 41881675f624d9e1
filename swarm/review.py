"""Reviewers gate the merge: each reads the commit in a private folder and ends with a verdict that a machine can read (SWM-12)."""

import asyncio

from ..actors.fence import fence
from ..core.agent import AgentStatus, AgentTask, Budget
from ..core.ticket import ReviewOutcome, TaskStatus, Ticket
from .crew import AttemptOver, Batch, Crew
from .journal import ReviewDone
from .prompts import read_verdict, rejection, review_prompt


class Reviewers:
    """Asks the reviewers of a ticket."""

    def __init__(self, batch: Batch, crew: Crew) -> None:
        self._batch, self._crew = batch, crew
        self._ports, self._settings = batch.ports, batch.settings

    async def review(self, ticket: Ticket, attempt: int) -> None:
        """Ask the reviewers side by side, each in a private read lease. Raises ``AttemptOver`` when one rejects."""
        if not ticket.review:
            return
        book = self._batch.books.tasks[ticket.id]
        self._crew.tell(ticket.id, "reviewing", attempt)
        diff = await self._ports.history.diff(book.base, book.commit)
        prompt = review_prompt(ticket, book.files, diff)
        book.reviews = tuple(
            await asyncio.gather(
                *(self._reviewer(ticket, attempt, name, prompt, book.commit) for name in ticket.review)
            )
        )
        await self._batch.journal.write(ReviewDone(task=ticket.id, attempt=attempt, reviews=book.reviews))
        against = [item for item in book.reviews if item.verdict == "reject"]
        if against:
            words = "; ".join(str(found.get("text", found)) for item in against for found in item.findings)
            names = ", ".join(item.agent for item in against)
            raise AttemptOver(
                TaskStatus.REJECTED,
                f"Rejected by {names}: {words or 'no finding was given'}",
                retry=not ticket.recipe,
            )

    async def _reviewer(
        self, ticket: Ticket, attempt: int, name: str, prompt: str, commit: str
    ) -> ReviewOutcome:
        run = self._settings.run_id
        lease = await self._ports.desk.lease(
            write=False, task=ticket.id, run_id=run, base=commit, private=True
        )
        try:
            order = AgentTask(
                id=f"{run}-{ticket.id}-{attempt}-{name.lower()}",
                run_id=run,
                spec=self._settings.specs[name],
                prompt=prompt,
                root=lease.path,
                attempt=attempt,
                approve=self._batch.swarm.approve,
                models=dict(self._settings.models),
                budget=Budget(max_cost_usd=ticket.max_cost_usd, timeout_s=ticket.timeout_s),
                scopes=self._crew.scopes(ticket.id),
                env=await asyncio.to_thread(fence, self._settings.run_dir / "hooks", lease),
            )
            report = await self._crew.run(ticket.id, attempt, order)
        finally:
            await asyncio.shield(self._ports.desk.release(lease))
        if report.status is AgentStatus.CANCELLED:
            raise AttemptOver(
                TaskStatus.CANCELLED, self._crew.stopping or "The reviewer was cancelled.", retry=False
            )
        if report.status is not AgentStatus.DONE:
            why = report.error.sentence() if report.error else f"It ended as {report.status}."
            return rejection(name, f"{name} came to no verdict. {why}")
        return read_verdict(name, report.text)
