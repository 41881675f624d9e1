"""The schedule as a pure state machine: events in, commands out; no waves, no clock, no I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..core.ticket import TaskStatus

# Retrying cannot mend these: the cause is outside of the attempt, or a verdict on the ticket itself.
PERMANENT = frozenset(
    {TaskStatus.BUDGET, TaskStatus.BLOCKED, TaskStatus.SETUP_FAILED, TaskStatus.CANCELLED, TaskStatus.SKIPPED}
)


class Stage(StrEnum):
    """Where a ticket stands."""

    WAITING = "waiting"
    WORKING = "working"
    CHECKING = "checking"
    REVIEWING = "reviewing"
    LANDING = "landing"
    ENDED = "ended"


_SLOT = frozenset({Stage.WORKING, Stage.CHECKING, Stage.REVIEWING})


@dataclass(frozen=True, slots=True)
class Worked:
    """The agent of an attempt ended with a commit inside its scope."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Checked:
    """The ticket's verification passed on that commit."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Every reviewer approved."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Landed:
    """The integration branch holds the attempt's change."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt is over. ``retry`` False: its cause is permanent (a key that was refused, an impossible ticket)."""

    task: str
    attempt: int
    status: TaskStatus
    detail: str = ""
    retry: bool = True


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing new may start: the run was interrupted (``cancelled``) or its money is spent (``budget``)."""

    status: TaskStatus
    detail: str = ""


Event = Worked | Checked | Reviewed | Landed | Failed | Stopped


@dataclass(frozen=True, slots=True)
class Work:
    """Start an attempt on the present head of the integration branch; ``feedback`` is what made the last one fail."""

    task: str
    attempt: int
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Run the ticket's verification on the attempt's commit."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Review:
    """Ask the reviewers."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Land:
    """Queue the attempt's commit for the merge train."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Abort:
    """End a live attempt; it answers with ``Failed``, or with ``Landed`` if that came first."""

    task: str
    attempt: int
    detail: str


@dataclass(frozen=True, slots=True)
class End:
    """A ticket has its final status."""

    task: str
    status: TaskStatus
    attempts: int
    detail: str = ""


Command = Work | Check | Review | Land | Abort | End


@dataclass(frozen=True, slots=True)
class Node:
    """A ticket as the schedule sees it. ``used`` counts attempts of earlier processes; ``worked`` = its commit is durable."""

    parents: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    attempts: int = 1
    used: int = 0
    worked: bool = False
    ended: TaskStatus | None = None


@dataclass(slots=True)
class _State:
    stage: Stage = Stage.WAITING
    attempt: int = 0
    tries: int = 0
    feedback: str = ""
    status: TaskStatus | None = None
    detail: str = ""


@dataclass(slots=True)
class Schedule:
    """The state of a batch. ``begin`` once, then ``handle`` each event; both return what to do now, in order."""

    nodes: Mapping[str, Node]
    concurrency: int
    _states: dict[str, _State] = field(init=False)
    _stop: Stopped | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._states = {name: _State(attempt=node.used) for name, node in self.nodes.items()}
        for name, node in self.nodes.items():
            if node.ended is not None:
                self._states[name] = _State(Stage.ENDED, node.used, status=node.ended)

    @property
    def done(self) -> bool:
        """Whether every ticket has its final status."""
        return all(state.stage is Stage.ENDED for state in self._states.values())

    def stage(self, task: str) -> Stage:
        """Where ``task`` stands."""
        return self._states[task].stage

    def status(self, task: str) -> TaskStatus | None:
        """The final status of ``task``; None while it has none."""
        return self._states[task].status

    def begin(self) -> tuple[Command, ...]:
        """What to start first."""
        return tuple(self._fill())

    def handle(self, event: Event) -> tuple[Command, ...]:
        """Take one event. An event of an attempt that is not the live one is stale and changes nothing."""
        if isinstance(event, Stopped):
            return tuple(self._halt(event))
        state = self._states.get(event.task)
        if state is None or state.stage in (Stage.WAITING, Stage.ENDED) or state.attempt != event.attempt:
            return ()
        return (*self._advance(event, state), *self._fill())

    def _advance(self, event: Worked | Checked | Reviewed | Landed | Failed, state: _State) -> list[Command]:
        match event, state.stage:
            case Worked(task, attempt), Stage.WORKING:
                return self._move(state, Stage.CHECKING, Check(task, attempt))
            case Checked(task, attempt), Stage.CHECKING:
                return self._move(state, Stage.REVIEWING, Review(task, attempt))
            case Reviewed(task, attempt), Stage.REVIEWING:
                return self._move(state, Stage.LANDING, Land(task, attempt))
            case Landed(task), Stage.LANDING:
                return [self._end(task, TaskStatus.MERGED, "")]
            case Failed(), _:
                return self._fail(event, state)
            case _:
                return []

    def _move(self, state: _State, stage: Stage, command: Command) -> list[Command]:
        if self._stop is not None:
            return []  # the abort is on its way; the attempt answers with its failure
        state.stage = stage
        return [command]

    def _fail(self, event: Failed, state: _State) -> list[Command]:
        if self._stop is not None:
            status = self._stop.status if event.status is TaskStatus.CANCELLED else event.status
            return [self._end(event.task, status, event.detail or self._stop.detail)]
        if event.retry and event.status not in PERMANENT and state.tries < self.nodes[event.task].attempts:
            state.stage = Stage.WAITING
            state.feedback = event.detail
            return []
        return [self._end(event.task, event.status, event.detail)]

    def _halt(self, stop: Stopped) -> Iterable[Command]:
        if self._stop is not None:
            return
        self._stop = stop
        for name, state in self._states.items():
            if state.stage is Stage.WAITING:
                yield self._end(name, stop.status, stop.detail)
            elif state.stage is not Stage.ENDED:
                yield Abort(name, state.attempt, stop.detail)

    def _fill(self) -> Iterable[Command]:
        yield from self._skip_dependants()
        if self._stop is not None:
            return
        live = sum(state.stage in _SLOT for state in self._states.values())
        for name, state in self._states.items():
            if live >= self.concurrency:
                return
            if state.stage is Stage.WAITING and self._ready(self.nodes[name]):
                live += 1
                yield self._start(name, state)

    def _start(self, name: str, state: _State) -> Command:
        node = self.nodes[name]
        state.tries += 1
        if node.worked and state.tries == 1:
            state.stage = Stage.CHECKING
            return Check(name, state.attempt)
        state.attempt += 1
        state.stage = Stage.WORKING
        return Work(name, state.attempt, state.feedback)

    def _ready(self, node: Node) -> bool:
        return all(self._states[parent].status is TaskStatus.MERGED for parent in node.parents) and all(
            self._states[other].stage is Stage.ENDED for other in node.waits
        )

    def _skip_dependants(self) -> Iterable[Command]:
        moved = True
        while moved:
            moved = False
            for name, state in self._states.items():
                lost = [p for p in self.nodes[name].parents if self._lost(p)]
                if state.stage is Stage.WAITING and lost:
                    moved = True
                    why = self._states[lost[0]].status
                    yield self._end(
                        name, TaskStatus.SKIPPED, f"It depends on {lost[0]}, which ended as {why}."
                    )

    def _lost(self, task: str) -> bool:
        state = self._states[task]
        return state.stage is Stage.ENDED and state.status is not TaskStatus.MERGED

    def _end(self, task: str, status: TaskStatus, detail: str) -> End:
        state = self._states[task]
        state.stage, state.status, state.detail = Stage.ENDED, status, detail
        return End(task, status, state.attempt, detail)
