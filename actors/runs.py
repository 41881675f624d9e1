"""One agent's run: permit, host, call, time-out, and the honest report of however it ended (ACT-10, ACT-12)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ..core.agent import AgentReport, AgentStatus, AgentTask
from ..core.clock import Clock
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import AgentStarted, Event, Notice
from ..tools.shell.reap import HAS_PROC, kill_marked
from .permits import Permits
from .pool import Host, HostPool
from .sides import Sides

GRACE_S = 2.0  # an agent ends its own time-out with more to tell; only one that does not is ended here


@dataclass(eq=False)
class Live:
    """A living agent. ``stopping`` and ``died`` are reasons; ``broken``: its host is not to be used again."""

    task: AgentTask
    parallel: bool
    since: float
    call: asyncio.Task[AgentReport] | None = None
    host: Host | None = None
    pool: HostPool | None = None
    stopping: str = ""
    died: str = ""
    late: bool = False
    broken: bool = False
    early: AgentReport | None = None  # came by mail, before the call returned
    done: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class RunPorts:
    """What a run needs of the hub."""

    permits: Permits
    sides: Sides
    emit: Callable[[Event], None]
    placed: Callable[[Live], None]
    above: Callable[[str], frozenset[str]]


async def work(live: Live, ports: RunPorts) -> AgentReport:
    """Take a permit and a host, and run the agent in it. Raises ``OpenDevError``; the hub gives everything back."""
    task = live.task
    await ports.permits.take(task.id)
    side = await ports.sides.choose(task, parallel=live.parallel)
    live.pool = side.pool
    exclusive = task.spec.writes or not task.depth
    live.host = await side.pool.acquire(
        task.id, exclusive=exclusive, kind=task.spec.name, above=ports.above(task.id)
    )
    ports.placed(live)
    ports.emit(
        AgentStarted(
            agent=task.id, name=task.spec.name, parent=task.parent, task=_ticket(task), pid=live.host.pid
        )
    )
    limit = task.budget.timeout_s
    try:
        async with asyncio.timeout(limit + GRACE_S if limit else None):
            answer = await live.host.ref.ask("run", task.to_json())
    except TimeoutError:
        live.late = live.broken = True
        raise
    return AgentReport.model_validate_json(answer)


async def reap(marker: dict[str, str], emit: Callable[[Event], None]) -> None:
    """End every process that bears the marks; what would not die is told."""
    if not HAS_PROC:
        return
    try:
        await kill_marked(marker)
    except OpenDevError as error:
        emit(Notice(level="error", text=error.info.sentence()))


def verdict(live: Live, clock: Clock) -> AgentReport:
    """The report of a call that is over. A stop wins over "done": what was cancelled is never told as finished."""
    task, call = live.task, live.call
    known = live.early
    if call is not None and call.done() and not call.cancelled() and call.exception() is None:
        known = call.result()
    error = _error(live)
    if error is None and known is not None:
        return known
    base = known or AgentReport(id=task.id, agent=task.spec.name, status=AgentStatus.INFRA)
    kind = error.kind if error else ErrorKind.INTERNAL
    update = {
        "status": _STATUS.get(kind, AgentStatus.FAILED),
        "error": error,
        "pid": base.pid or (live.host.pid if live.host else 0),
        "wall_s": base.wall_s or clock.monotonic() - live.since,
    }
    return base.model_copy(update=update)


def failure(task: AgentTask, kind: ErrorKind, message: str) -> AgentReport:
    """The report of an agent that did not start."""
    info = ErrorInfo(kind=kind, message=message)
    status = _STATUS.get(kind, AgentStatus.FAILED)
    return AgentReport(id=task.id, agent=task.spec.name, status=status, error=info)


_STATUS = {
    ErrorKind.CANCELLED: AgentStatus.CANCELLED,
    ErrorKind.TIMEOUT: AgentStatus.TIMEOUT,
    ErrorKind.INFRA: AgentStatus.INFRA,
}


def _error(live: Live) -> ErrorInfo | None:
    """Why the run did not end by itself; None when it did."""
    name, call = live.task.spec.name, live.call
    if live.stopping:
        return ErrorInfo(kind=ErrorKind.CANCELLED, message=f"{name} was stopped: {live.stopping}.")
    if live.late:
        text = f"{name} was ended after its limit of {live.task.budget.timeout_s:.0f} s."
        return ErrorInfo(kind=ErrorKind.TIMEOUT, message=text, hint="Raise timeout_s or split the task.")
    if live.died:
        text = f"The process of {name} died: {live.died}."
        return ErrorInfo(kind=ErrorKind.INFRA, message=text, hint="Start the task again.")
    if call is None or not call.done() or call.cancelled():
        return ErrorInfo(kind=ErrorKind.CANCELLED, message=f"{name} was cancelled.")
    error = call.exception()
    if error is None or isinstance(error, OpenDevError):
        return error.info if error else None
    return ErrorInfo(
        kind=ErrorKind.INTERNAL, message=f"Running {name} failed with {type(error).__name__}: {error}."
    )


def _ticket(task: AgentTask) -> str:
    return next((s.removeprefix("task:") for s in task.scopes if s.startswith("task:")), "")
