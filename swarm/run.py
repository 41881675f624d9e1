"""Runs a batch: drives the schedule, carries out its commands, and always ends with a report (SWM-01, SWM-02)."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass

from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Notice, RunFinished, RunStarted
from ..core.exits import Exit
from ..core.ticket import RunReport, SwarmPlan, TaskStatus
from ..store.atomic import write_atomic
from .attempt import Attempts
from .books import Books
from .control import claim
from .crew import AttemptOver, Batch, Crew
from .journal import CheckDone, Final, Journal, RunEnded
from .landing import Lander
from .plan import PlanView, make_plan
from .ports import RunSettings, SwarmPorts
from .preflight import check_baseline, check_disk, check_models
from .recover import Recovered
from .report import Ending, build_report, task_result
from .review import Reviewers
from .schedule import (
    Abort,
    Check,
    Checked,
    Command,
    End,
    Event,
    Failed,
    Land,
    Landed,
    Review,
    Reviewed,
    Schedule,
    Stopped,
    Work,
    Worked,
)
from .takeover import Takeover


@dataclass(frozen=True, slots=True)
class _Live:
    """A running step of a ticket."""

    attempt: int
    step: asyncio.Task[Event]


class SwarmRun:
    """One batch. ``past`` is set when another process's run is taken over. Use once."""

    def __init__(
        self, plan: SwarmPlan, ports: SwarmPorts, settings: RunSettings, *, past: Recovered | None = None
    ) -> None:
        self._plan, self._ports, self._settings, self._past = plan, ports, settings, past
        self._tickets = {ticket.id: ticket for ticket in plan.task}
        self._books = Books(ports.clock, tuple(self._tickets))
        self._journal = Journal(settings.run_dir / "journal.jsonl", settings.crash_after)
        self._batch = Batch(ports, settings, plan.swarm, self._books, self._journal)
        self._crew = Crew(self._batch)
        self._attempts = Attempts(self._batch, self._crew)
        self._reviewers = Reviewers(self._batch, self._crew)
        self._lander = Lander(self._batch, self._attempts, self._crew)
        self._takeover = Takeover(self._batch, self._lander, past)
        self._stop = asyncio.Event()
        self._live: dict[str, _Live] = {}
        self._failure: OpenDevError | None = None
        self._began = ports.clock.monotonic()

    def stop(self, reason: str = "The run was interrupted.") -> None:
        """Cancel everything; ``run`` then returns a report with status ``cancelled``. To be called on the event loop."""
        self._crew.stopping = self._crew.stopping or reason
        self._stop.set()

    async def run(self) -> RunReport:
        """Run to the end. Raises ``OpenDevError`` only for what the user must mend first (exit 2); all else is in the report."""
        check_models(self._plan, self._settings)
        try:
            await asyncio.to_thread(check_disk, self._settings.run_dir, self._settings.disk_floor_bytes)
            schedule = await self._unless_stopped(self._prepare())
            await self._drive(schedule)
        except OpenDevError as error:
            if error.info.kind in (ErrorKind.USAGE, ErrorKind.CONFIG):
                raise
            self._failure = error
            self._notice("error", error.info.sentence())
            await self._close_rest(error)
        return await self._finish()

    async def _unless_stopped(self, preparing: Coroutine[None, None, Schedule]) -> Schedule:
        """An interrupt also ends what comes before the first ticket: the baseline may take long."""
        step = asyncio.create_task(preparing)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({step, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not step.done():
                step.cancel()
                await asyncio.wait({step})
        if step.cancelled():
            raise OpenDevError(ErrorKind.CANCELLED, self._crew.stopping)
        return step.result()

    async def _prepare(self) -> Schedule:
        settings, history, tickets = self._settings, self._ports.history, self._plan.task
        await asyncio.to_thread(claim, settings.run_dir)
        with self._books.phase("plan"):
            view = make_plan(self._plan, base=settings.base, files=await history.files(settings.base))
            self._lander.head = await self._ports.train.prepare(settings.base)
            await self._takeover.begin_journal(self._plan)
        self._announce(view)
        nodes = {
            ticket.id: await self._takeover.node(ticket, view.waits.get(ticket.id, ())) for ticket in tickets
        }
        await self._takeover.open_scopes(tickets)
        schedule = Schedule(nodes, self._plan.swarm.concurrency)
        if not schedule.done:
            await self._baseline()
        return schedule

    def _announce(self, view: PlanView) -> None:
        run = self._settings.run_id
        what = "swarm resume" if self._past else "swarm"
        self._ports.emit(
            RunStarted(run=run, at=self._batch.now, what=what, detail=view.model_dump(mode="json"))
        )
        for warning in view.warnings:
            self._notice("warning", warning)
        for item in view.overlaps:
            how = "one after the other" if item.serial else "side by side"
            self._books.note(f"The scopes of {item.first} and {item.second} overlap; they run {how}.")

    async def _baseline(self) -> None:
        swarm, settings = self._plan.swarm, self._settings
        if not (swarm.verify and swarm.baseline):
            return
        with self._books.phase("verify"):
            found = await self._attempts.verifier.at_commit(
                swarm.verify, commit=settings.base, task="", where="base"
            )
        self._crew.tell_verified("", "base", found)
        await self._journal.write(
            CheckDone(task="", attempt=0, where="base", commit=settings.base, result=found.outcome)
        )
        warning = check_baseline(found, settings.base)
        self._attempts.verifier.keep_baseline(found)
        if warning:
            self._books.note(warning)
            self._notice("warning", warning)

    async def _drive(self, schedule: Schedule) -> None:
        stopping = asyncio.create_task(self._stop.wait())
        halted = False
        commands = schedule.begin()
        try:
            while True:
                for command in commands:
                    await self._execute(command)
                if schedule.done:
                    return
                waiting: set[asyncio.Task[Event] | asyncio.Task[bool]] = {
                    live.step for live in self._live.values()
                }
                if not halted:
                    waiting.add(stopping)
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if not halted and self._stop.is_set():
                    halted = True
                    commands = schedule.handle(Stopped(TaskStatus.CANCELLED, self._crew.stopping))
                else:
                    commands = await self._collect(schedule)
        finally:
            stopping.cancel()
            for live in self._live.values():
                live.step.cancel()

    async def _collect(self, schedule: Schedule) -> tuple[Command, ...]:
        commands: list[Command] = []
        for name, live in list(self._live.items()):
            if live.step.done():
                del self._live[name]
                event = _event_of(name, live)
                if isinstance(event, Failed):
                    await self._attempts.failed(event.task, event.attempt, event.status, event.detail)
                commands += schedule.handle(event)
        return tuple(commands)

    async def _execute(self, command: Command) -> None:
        match command:
            case End(task, status, _, detail):
                await self._ended(task, status, detail)
            case Abort(task, _, detail):
                await self._abort(task, detail)
            case Work(task, attempt, feedback):
                if feedback:
                    self._crew.tell(task, "retrying", attempt, feedback[:300])
                    self._books.note(
                        f"{task} was tried again (attempt {attempt}): {feedback.splitlines()[0][:300]}"
                    )
                step = self._attempts.work(self._tickets[task], attempt, self._lander.head, feedback)
                self._start(task, attempt, step, Worked(task, attempt))
            case Check(task, attempt):
                self._start(
                    task, attempt, self._attempts.check(self._tickets[task], attempt), Checked(task, attempt)
                )
            case Review(task, attempt):
                self._start(
                    task,
                    attempt,
                    self._reviewers.review(self._tickets[task], attempt),
                    Reviewed(task, attempt),
                )
            case Land(task, attempt):
                step = self._lander.land(self._tickets[task], attempt)
                self._start(task, attempt, step, Landed(task, attempt))

    def _start(self, task: str, attempt: int, step: Coroutine[None, None, None], done: Event) -> None:
        async def steps() -> Event:
            try:
                await step
            except AttemptOver as over:
                return Failed(task, attempt, over.status, over.detail, over.retry)
            except OpenDevError as error:
                return Failed(task, attempt, TaskStatus.INFRA, error.info.sentence())
            return done

        self._live[task] = _Live(attempt, asyncio.create_task(steps()))

    async def _abort(self, task: str, detail: str) -> None:
        agents = tuple(self._crew.live.get(task, ()))
        if agents:  # the attempt then saves what the agents left and ends by itself
            await asyncio.gather(*(self._ports.agents.cancel(agent, detail) for agent in agents))
        elif (live := self._live.get(task)) is not None:
            live.step.cancel()

    async def _ended(self, task: str, status: TaskStatus, detail: str) -> None:
        book = self._books.tasks[task]
        book.status, book.detail = status, detail
        if book.began is not None:
            book.wall_s = round(self._ports.clock.monotonic() - book.began, 3)
        await self._journal.write(Final(result=task_result(task, book, None)))
        self._crew.tell(task, status, book.attempts, detail[:2000])

    async def _close_rest(self, error: OpenDevError) -> None:
        """After the end of the run itself every ticket without an end shares its cause."""
        status = TaskStatus.CANCELLED if error.info.kind is ErrorKind.CANCELLED else TaskStatus.INFRA
        await asyncio.gather(*(live.step for live in self._live.values()), return_exceptions=True)
        for book in self._books.tasks.values():
            if book.status is None:
                book.status, book.detail = status, error.info.sentence()

    async def _finish(self) -> RunReport:
        leftover = await self._branches()
        report = await build_report(
            self._plan,
            self._ports,
            self._settings,
            self._books,
            Ending(
                self._failure,
                self._lander.head,
                leftover,
                round(self._ports.clock.monotonic() - self._began, 3),
            ),
        )
        try:
            await asyncio.to_thread(
                write_atomic, self._settings.run_dir / "report.json", (report.to_json() + "\n").encode()
            )
            await self._journal.write(RunEnded(status=report.status, exit_code=report.exit_code))
        except OpenDevError as error:
            self._notice("error", error.info.sentence())
            notes = (*report.notes, error.info.sentence())
            code = report.exit_code if report.exit_code == Exit.INTERRUPTED else Exit.INFRA
            report = report.model_copy(update={"notes": notes, "exit_code": int(code)})
            if report.status == "succeeded":
                report = report.model_copy(update={"status": "partial"})
        self._ports.emit(
            RunFinished(
                run=self._settings.run_id,
                at=self._batch.now,
                status=report.status,
                exit_code=report.exit_code,
            )
        )
        return report

    async def _branches(self) -> tuple[str, ...]:
        names = sorted(
            {name for book in self._books.tasks.values() for name in (*book.branches, book.branch) if name}
        )
        try:
            return tuple([name for name in names if await self._ports.history.resolve(f"refs/heads/{name}")])
        except OpenDevError:
            return tuple(names)

    def _notice(self, level: str, text: str) -> None:
        event = Notice.model_validate({"level": level, "text": text, "run": self._settings.run_id})
        self._ports.emit(event.model_copy(update={"at": self._batch.now}))


def _event_of(task: str, live: _Live) -> Event:
    if live.step.cancelled():
        return Failed(task, live.attempt, TaskStatus.CANCELLED, "It was interrupted.", retry=False)
    error = live.step.exception()
    if error is not None:  # a defect of ours must not take the other tickets along
        return Failed(task, live.attempt, TaskStatus.INFRA, f"Internal error: {error!r}", retry=False)
    return live.step.result()
