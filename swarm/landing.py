"""The merge train as the swarm uses it: one ticket at a time, the composed state verified, every step in the journal (SWM-09)."""

import asyncio
from pathlib import Path

from ..core.errors import OpenDevError
from ..core.events import Merged
from ..core.ticket import TaskStatus, Ticket, VerifyOutcome
from ..worktrees.train import Landing
from .attempt import Attempts
from .crew import AttemptOver, Batch, Crew
from .journal import CheckDone, LandingBegan, LandingDone
from .verify import Verification, new_failures

_SHOWN = 20  # files named in a note


class Lander:
    """Lands attempts first come, first served. ``head`` is the integration branch as this run last saw it."""

    def __init__(self, batch: Batch, attempts: Attempts, crew: Crew) -> None:
        self._batch, self._attempts, self._crew = batch, attempts, crew
        self._ports, self._settings, self._swarm = batch.ports, batch.settings, batch.swarm
        self._journal, self._books = batch.journal, batch.books
        self._turn = asyncio.Lock()  # FIFO
        self._last: Verification | None = None
        self._began: LandingBegan | None = None
        self.head = ""

    async def land(self, ticket: Ticket, attempt: int) -> None:
        """Put the attempt's commit on the integration branch. Raises ``AttemptOver`` when it is ejected."""
        async with self._turn:
            self._crew.tell(ticket.id, "integrating", attempt)
            self._last = self._began = None
            try:
                with self._books.phase("integrate"):
                    landing = await self._train(ticket, attempt)
            except asyncio.CancelledError:
                # The ref may have moved just before the interrupt: ask the ref, not the clock.
                if self._began is not None and await asyncio.shield(self.holds(self._began)):
                    await asyncio.shield(self._done(ticket, attempt, self._began.new))
                    return
                raise
            except OpenDevError as error:
                raise AttemptOver(TaskStatus.INFRA, error.info.sentence()) from error
            self.head = landing.head or self.head
            if landing.outcome == "empty":
                self._books.note(f"{ticket.id}: its change was on {self._swarm.into} already.")
            elif landing.outcome != "landed":
                raise self._ejected(ticket, landing)
            await self._done(ticket, attempt, landing.merged_as or landing.head)

    async def holds(self, began: LandingBegan) -> bool:
        """Whether a landing that was begun did move the branch: the branch itself is the proof."""
        return await self.still_holds(began.new)

    async def still_holds(self, commit: str) -> bool:
        """Whether the integration branch holds ``commit``."""
        head = await self._ports.history.resolve(f"refs/heads/{self._swarm.into}")
        if not head or not await self._ports.history.resolve(commit):
            return False
        return await self._ports.history.is_ancestor(commit, head)

    async def _train(self, ticket: Ticket, attempt: int) -> Landing:
        book = self._books.tasks[ticket.id]

        async def verify(folder: Path, composed: str) -> VerifyOutcome:
            found = await self._verify(ticket, attempt, folder, composed)
            if found.passed:
                self._began = LandingBegan(
                    task=ticket.id, attempt=attempt, commit=book.commit, old=self.head, new=composed
                )
                await self._journal.write(self._began)
            return found.outcome

        return await self._ports.train.land(
            task=ticket.id,
            commit=book.commit,
            base=book.base,
            message=f"{ticket.goal}\n\nOpenDev-Run: {self._settings.run_id}",
            verify=verify,
        )

    async def _verify(self, ticket: Ticket, attempt: int, folder: Path, composed: str) -> Verification:
        tree = await self._ports.history.tree(composed)
        wanted = tuple(dict.fromkeys(command for command in (self._swarm.verify, ticket.verify) if command))
        commands = tuple(command for command in wanted if (tree, command) not in self._attempts.proven)
        found = Verification(VerifyOutcome(command=" && ".join(wanted), exit_code=0, outcome="pass"))
        if commands:
            with self._books.phase("verify"):
                found = await self._attempts.verifier.in_folder(
                    commands, folder=folder, task=ticket.id, where="composed"
                )
            self._crew.tell_verified(ticket.id, "composed", found)
            await self._journal.write(
                CheckDone(
                    task=ticket.id, attempt=attempt, where="composed", commit=composed, result=found.outcome
                )
            )
            book = self._books.tasks[ticket.id]
            if (
                not found.passed or book.verify is None
            ):  # the report shows the ticket's own verification, or what went red
                book.verify = found.outcome
        if found.passed:
            self._attempts.proven.update((tree, command) for command in wanted)
        self._last = found
        return found

    async def _done(self, ticket: Ticket, attempt: int, merged_as: str) -> None:
        book = self._books.tasks[ticket.id]
        book.merged_as = self.head = merged_as
        await self._journal.write(
            LandingDone(task=ticket.id, attempt=attempt, commit=book.commit, merged_as=merged_as)
        )
        self._ports.emit(
            Merged(
                run=self._settings.run_id,
                at=self._batch.now,
                task=ticket.id,
                commit=merged_as,
                into=self._swarm.into,
            )
        )
        await self._tell_others(ticket, book.files, merged_as)
        if not self._settings.keep:
            await self._drop_branch(book.branch)

    async def _tell_others(self, ticket: Ticket, files: tuple[str, ...], merged_as: str) -> None:
        """Agents at work on the same files learn of the change now, not by a conflict at the end."""
        if self._ports.board is None or not files:
            return
        shown = ", ".join(files[:_SHOWN]) + (
            f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        )
        text = (
            f"[Note from the board, for information] The ticket {ticket.id} ({ticket.goal[:200]}) has landed on "
            f"{self._swarm.into} as {merged_as[:12]}. It changed {shown}. Your working copy does not hold this, and your own "
            f"change will be put on top of it: keep it compatible. `git show {merged_as[:12]}` shows the change."
        )
        told = await self._ports.board.post(ticket.id, text, files)
        if told:
            self._books.note(
                f"{ticket.id} landed while {len(told)} agents worked on its files; they were told."
            )

    async def _drop_branch(self, branch: str) -> None:
        try:
            await self._ports.desk.drop_branch(branch, self._swarm.into)
        except OpenDevError as error:
            self._books.note(f"The branch {branch} was kept: {error.info.sentence()}")

    def _ejected(self, ticket: Ticket, landing: Landing) -> AttemptOver:
        match landing.outcome:
            case "conflict":
                files = ", ".join(landing.files[:20])
                self._books.note(f"{ticket.id} conflicts with {landing.head[:12]} in {files}.")
                return AttemptOver(
                    TaskStatus.CONFLICT,
                    f"The change conflicts with what is on {self._swarm.into} by now, in {files}. {landing.detail}",
                )
            case "red":
                return self._red(ticket, landing)
            case "moved":
                return AttemptOver(
                    TaskStatus.CONFLICT,
                    f"{self._swarm.into} kept moving while the change was verified. {landing.detail}",
                )
            case _:
                why = landing.detail or (self._last.sentence() if self._last else "git refused")
                return AttemptOver(TaskStatus.INFRA, f"The change could not be integrated: {why}")

    def _red(self, ticket: Ticket, landing: Landing) -> AttemptOver:
        found = self._last
        if found is None:
            return AttemptOver(TaskStatus.VERIFY_FAILED, landing.detail or "The composed state is red.")
        if found.outcome.outcome == "infra":
            return AttemptOver(TaskStatus.INFRA, found.sentence())
        new = new_failures(found, self._attempts.verifier.baseline(found.outcome.command))
        self._books.note(
            f"{ticket.id} makes {self._swarm.into} red: {new or found.outcome.command}. It was ejected."
        )
        return AttemptOver(
            TaskStatus.VERIFY_FAILED,
            f"Together with what is on {self._swarm.into} by now, {found.sentence()}",
        )
