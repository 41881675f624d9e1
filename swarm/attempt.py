"""One attempt of a ticket: lease, set-up, agent, commit, scope; then its verification."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..actors.fence import fence
from ..context.cautions import WIDE
from ..core.agent import AgentReport, AgentStatus, AgentTask, Budget
from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError
from ..core.lease import Lease
from ..core.scope import Scope
from ..core.ticket import TaskStatus, Ticket
from ..llm.recipes import MODEL as RECIPE_MODEL
from .crew import AttemptOver, Batch, Crew
from .journal import (
    AgentDone,
    AttemptFailed,
    AttemptStarted,
    CheckDone,
    content_key,
)
from .prompts import ticket_prompt
from .provision import Provision, clear, hashes
from .verify import Verification, Verifier

TEXT_CHARS = 4_000
_STATUS: Mapping[AgentStatus, TaskStatus] = {
    AgentStatus.TIMEOUT: TaskStatus.TIMEOUT,
    AgentStatus.BUDGET: TaskStatus.BUDGET,
    AgentStatus.UNANSWERED: TaskStatus.BLOCKED,
    AgentStatus.INFRA: TaskStatus.INFRA,
    AgentStatus.VERIFY_FAILED: TaskStatus.VERIFY_FAILED,
    AgentStatus.CANCELLED: TaskStatus.CANCELLED,
}
_KIND: Mapping[ErrorKind, TaskStatus] = {
    ErrorKind.BUDGET: TaskStatus.BUDGET,
    ErrorKind.UNANSWERED: TaskStatus.BLOCKED,
    ErrorKind.SCOPE: TaskStatus.OUT_OF_SCOPE,
    ErrorKind.TIMEOUT: TaskStatus.TIMEOUT,
    ErrorKind.AUTH: TaskStatus.INFRA,
    ErrorKind.RATE_LIMIT: TaskStatus.INFRA,
    ErrorKind.MODEL: TaskStatus.INFRA,
    ErrorKind.INFRA: TaskStatus.INFRA,
}
_NEVER_AGAIN = frozenset({ErrorKind.AUTH, ErrorKind.CONFIG, ErrorKind.RATE_LIMIT, ErrorKind.BUDGET})


@dataclass(frozen=True, slots=True)
class Candidate:
    """Work of one agent as a commit inside the ticket's scope."""

    branch: str
    commit: str
    files: tuple[str, ...]


class Attempts:
    """Runs the steps of attempts. It decides nothing about order: that is the schedule's."""

    def __init__(self, batch: Batch, crew: Crew) -> None:
        self._crew, self._ports, self._settings = crew, batch.ports, batch.settings
        self._swarm, self._books, self._journal = batch.swarm, batch.books, batch.journal
        self.provision = Provision(
            repo=batch.settings.repo,
            patterns=batch.swarm.copy_files,
            setup=batch.swarm.setup,
            shell=batch.ports.setup_shell or batch.ports.shell,
            env=batch.settings.env,
            timeout_s=batch.settings.setup_timeout_s,
        )
        self.verifier = Verifier(batch.ports, batch.settings, self.provision)
        # (tree, command) that passed: equal content need not run again. Bounded by tickets x attempts x 2.
        self.proven: set[tuple[str, str]] = set()

    async def work(self, ticket: Ticket, attempt: int, base: str, feedback: str) -> None:
        """Bring an attempt to a durable commit. Raises ``AttemptOver``."""
        book = self._books.tasks[ticket.id]
        book.attempts, book.base, book.verify, book.reviews = attempt, base, None, ()
        if book.began is None:
            book.began = self._ports.clock.monotonic()
        key = content_key(ticket, base)
        await self._journal.write(AttemptStarted(task=ticket.id, attempt=attempt, key=key, base=base))
        names = [""] if ticket.best_of == 1 else [f"-{number}" for number in range(1, ticket.best_of + 1)]
        made = await asyncio.gather(
            *(self._candidate(ticket, attempt, name, base, feedback) for name in names),
            return_exceptions=True,
        )
        chosen = await self._choose(ticket, base, made)
        book.branch, book.commit, book.files = chosen.branch, chosen.commit, chosen.files
        if len(chosen.files) >= WIDE and not ticket.recipe:
            self._books.note(f"{ticket.id} changed {len(chosen.files)} files: a person should look at it .")
        await self._journal.write(
            AgentDone(
                task=ticket.id, attempt=attempt, key=key, base=base,
                branch=chosen.branch, commit=chosen.commit, files=chosen.files,
            )
        )  # fmt: skip

    async def check(self, ticket: Ticket, attempt: int) -> None:
        """Run the ticket's verification on its commit, in a clean checkout. Raises ``AttemptOver``."""
        if not ticket.verify:
            return
        book = self._books.tasks[ticket.id]
        self._crew.tell(ticket.id, "verifying", attempt)
        found = await self._verify_commit(ticket, book.commit)
        book.verify = found.outcome
        await self._journal.write(
            CheckDone(task=ticket.id, attempt=attempt, where="task", commit=book.commit, result=found.outcome)
        )
        if found.passed:
            self.proven.add((await self._ports.history.tree(book.commit), ticket.verify))
            return
        if found.outcome.outcome == "infra":
            raise AttemptOver(TaskStatus.INFRA, found.sentence())
        detail = found.sentence() + await self._same_on_base(ticket.verify, book.base)
        raise AttemptOver(TaskStatus.VERIFY_FAILED, detail, retry=not ticket.recipe)

    async def failed(self, task: str, attempt: int, status: TaskStatus, detail: str) -> None:
        """Record that an attempt is over."""
        await self._journal.write(AttemptFailed(task=task, attempt=attempt, status=status, detail=detail))

    async def _candidate(
        self, ticket: Ticket, attempt: int, name: str, base: str, feedback: str
    ) -> Candidate:
        self._crew.refuse_when_stopping()
        self._crew.tell(ticket.id, "setup", attempt)
        with self._books.phase("spawn"):
            lease = await self._ports.desk.lease(
                write=True, task=ticket.id, run_id=self._settings.run_id, base=base
            )
        book = self._books.tasks[ticket.id]
        book.branches.add(lease.branch)
        try:
            with self._books.phase("spawn"):
                put = await self._fill(lease)
            order = self._task(ticket, attempt, name, lease, feedback)
            fenced = await asyncio.to_thread(fence, self._settings.run_dir / "hooks", lease)
            self._crew.tell(ticket.id, "working", attempt)
            report = await self._crew.run(
                ticket.id, attempt, order.model_copy(update={"env": {**order.env, **fenced}})
            )
            await asyncio.to_thread(clear, Path(lease.path), put)
            return await self._commit(ticket, lease, report)
        except asyncio.CancelledError:
            await asyncio.shield(self._save(ticket, lease, "interrupted"))
            raise
        finally:
            await asyncio.shield(self._end_lease(lease))

    async def _fill(self, lease: Lease) -> dict[str, str]:
        folder = Path(lease.path)
        try:
            put = await self.provision.fill(folder)
        except OpenDevError as error:
            status = TaskStatus.SETUP_FAILED if error.info.kind is ErrorKind.SETUP else TaskStatus.INFRA
            await self._ports.desk.quarantine(lease, error.info.sentence())
            raise AttemptOver(status, error.info.sentence(), retry=False) from error
        if self._swarm.setup:
            tracked = set(await self._ports.history.files(lease.base))
            made = [path for path in await self._ports.desk.changed(lease) if path not in tracked]
            put |= await asyncio.to_thread(hashes, folder, made)
        return put

    def _task(self, ticket: Ticket, attempt: int, name: str, lease: Lease, feedback: str) -> AgentTask:
        models, spec = dict(self._settings.models), self._settings.specs[ticket.agent]
        if ticket.recipe or ticket.model:
            spec = spec.model_copy(update={"model": ""})  # the ticket's word is above the agent's own model
        if ticket.recipe:
            models = {Role.ACTION: RECIPE_MODEL}
        elif ticket.model:
            models[Role.ACTION] = ticket.model
        elif self._settings.stronger and attempt > 1:
            spec, models[Role.ACTION] = spec.model_copy(update={"model": ""}), self._settings.stronger
        return AgentTask(
            id=f"{self._settings.run_id}-{ticket.id}-{attempt}{name}",
            run_id=self._settings.run_id,
            spec=spec,
            prompt=ticket_prompt(ticket, attempt, feedback),
            root=lease.path,
            attempt=attempt,
            scope=Scope(may=ticket.scope, avoid=ticket.avoid),
            recipe=ticket.recipe,
            approve=self._swarm.approve,
            models=models,
            budget=Budget(max_cost_usd=ticket.max_cost_usd, timeout_s=ticket.timeout_s),
            scopes=self._crew.scopes(ticket.id),
            verify="" if ticket.recipe else ticket.verify,  # a recipe cannot react to a failure
            env={
                "PYTHONDONTWRITEBYTECODE": "1"
            },  # caches of the agent's own test runs are no part of its change
        )

    async def _commit(self, ticket: Ticket, lease: Lease, report: AgentReport) -> Candidate:
        if report.status is not AgentStatus.DONE:
            await self._save(ticket, lease, report.status.value)
            raise self._over(ticket, report)
        files = await self._ports.desk.changed(lease)
        outside = Scope(may=ticket.scope, avoid=ticket.avoid).outside(files)
        commit = await self._ports.desk.commit(lease, f"{ticket.goal}\n\nOpenDev-Task: {ticket.id}\n")
        self._remember(ticket, lease, commit, files)
        if not files or commit == lease.base:
            raise AttemptOver(
                TaskStatus.AGENT_FAILED,
                "The agent reported success but changed nothing.",
                retry=not ticket.recipe,
            )
        if outside:
            shown = ", ".join(outside[:10]) + (f" and {len(outside) - 10} more" if len(outside) > 10 else "")
            detail = f"The change touches files outside of the ticket's scope: {shown}."
            raise AttemptOver(TaskStatus.OUT_OF_SCOPE, detail, retry=not ticket.recipe)
        return Candidate(lease.branch, commit, files)

    def _over(self, ticket: Ticket, report: AgentReport) -> AttemptOver:
        kind = report.error.kind if report.error else None
        status = _STATUS.get(report.status) or (_KIND.get(kind) if kind else None) or TaskStatus.AGENT_FAILED
        if report.status is AgentStatus.EMPTY and not report.model_calls and not report.tool_calls:
            status = TaskStatus.INFRA  # it never began (aid#73)
        why = report.error.sentence() if report.error else report.text.strip()[-TEXT_CHARS:]
        fixed = (
            bool(ticket.recipe) and status is not TaskStatus.INFRA
        )  # the same steps would fail the same way
        retry = not fixed and kind not in _NEVER_AGAIN
        return AttemptOver(
            status, f"The agent ended as {report.status}: {why or 'it gave no reason.'}", retry=retry
        )

    def _remember(self, ticket: Ticket, lease: Lease, commit: str, files: tuple[str, ...]) -> None:
        book = self._books.tasks[ticket.id]
        book.branch, book.commit, book.files = lease.branch, commit, files

    async def _save(self, ticket: Ticket, lease: Lease, why: str) -> None:
        """Keep unfinished work as a commit on its branch; if git refuses, the lease desk's rescue ref has it."""
        try:
            files = await self._ports.desk.changed(lease)
            if files:
                commit = await self._ports.desk.commit(
                    lease, f"Unfinished: {ticket.goal}\n\nThe agent ended: {why}.\n"
                )
                self._remember(ticket, lease, commit, files)
        except OpenDevError as error:
            self._books.note(f"{ticket.id}: unfinished work could not be committed: {error.info.sentence()}")

    async def _end_lease(self, lease: Lease) -> None:
        if self._settings.keep:
            self._books.worktrees.add(lease.path)
            return
        try:
            said = await self._ports.desk.release(lease)
        except OpenDevError as error:
            said = f"kept at {lease.path}: {error.info.sentence()}"
        if await asyncio.to_thread(Path(lease.path).exists):
            self._books.worktrees.add(lease.path)
            self._books.note(f"The worktree of {lease.task} was {said}")

    async def _choose(self, ticket: Ticket, base: str, made: list[Candidate | BaseException]) -> Candidate:
        good = [item for item in made if isinstance(item, Candidate)]
        if not good:
            raise next(item for item in made if isinstance(item, BaseException))
        if len(made) == 1:
            return good[0]
        sized: dict[str, tuple[int, Candidate]] = {}
        for item in good:  # equal trees are one candidate; tests come first, then the smaller change
            tree = await self._ports.history.tree(item.commit)
            if tree in sized or (
                ticket.verify and not (await self._verify_commit(ticket, item.commit)).passed
            ):
                continue
            self.proven.add((tree, ticket.verify))
            sized[tree] = (len(await self._ports.history.diff(base, item.commit)), item)
        self._books.note(
            f"{ticket.id}: best of {len(made)}: {len(good)} finished, {len(sized)} different ones passed its verification."
        )
        if not sized:
            return good[0]  # its own verification will say why
        return min(sized.values(), key=lambda pair: (pair[0], pair[1].branch))[1]

    async def _verify_commit(self, ticket: Ticket, commit: str) -> Verification:
        with self._books.phase("verify"):
            found = await self.verifier.at_commit(ticket.verify, commit=commit, task=ticket.id, where="task")
        self._crew.tell_verified(ticket.id, "task", found)
        return found

    async def _same_on_base(self, command: str, base: str) -> str:
        """Whether the untouched base fails the same command: then the ticket may not be the cause (T-17)."""
        if self.verifier.baseline(command) is None:
            with self._books.phase("verify"):
                found = await self.verifier.at_commit(command, commit=base, task="", where="base")
            if found.passed:
                return ""
        return f"\n(On the base {base[:12]}, without the change, the same command does not pass either.)"
