"""Worker hosts: warm ones are adopted in milliseconds; writers have one each, readers of one type share when each core has one (rule 12)."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.errors import ErrorKind, OpenDevError
from ..core.mail import Down
from ..core.ports import Ref, Runtime

IDLE_S = 60.0
CLOSE_S = 3.0


@dataclass(eq=False, slots=True)
class Host:
    """One worker. ``exclusive`` while a writer or a main agent has it; ``kind`` is the type of the agents it serves.

    ``kept``: the foreground agent whose next run it waits for, with its background tasks; nobody else gets it.
    """

    ref: Ref
    pid: int
    agents: set[str] = field(default_factory=set[str])
    exclusive: bool = False
    kind: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """``worker``: import path and constructor arguments; at most ``cap`` hosts, ``warm`` of them kept idle.

    Readers of one type share once ``share_from`` hosts serve it: a new process takes seconds, and more of them than cores
    make nothing faster for agents that wait for a model (bench/fanout.py). None = only at the cap. Different types are in
    different processes below the cap (ACT-02).
    """

    worker: str
    args: tuple[Any, ...]
    cap: int
    warm: int = 0
    share_from: int | None = None


class HostPool:
    """Starts, lends and ends hosts of one runtime. ``on_down`` hears of a host that died, with its agents.

    ``working`` says whether an agent goes on by itself now, or waits for its sub-agents; ``stir`` is called when that changes.
    """

    def __init__(
        self,
        runtime: Runtime,
        plan: PoolPlan,
        on_down: Callable[[Down], Awaitable[None]],
        working: Callable[[str], bool],
    ) -> None:
        self._runtime, self._plan, self._on_down, self._working = runtime, plan, on_down, working
        self._hosts: list[Host] = []
        self._starting = 0
        self._booting = Counter[
            str
        ]()  # of the starting hosts, those reserved for a type of agent; the others are warm ones
        self._count = 0
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._warm = 0
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the living hosts."""
        return tuple(h.pid for h in self._hosts)

    def warm(self) -> None:
        """Keep the plan's number of idle hosts from now on, started in the background."""
        self._warm = self._plan.warm
        self._refill(self._warm)

    async def acquire(
        self, agent: str, *, exclusive: bool, kind: str = "", above: frozenset[str] = frozenset()
    ) -> Host:
        """A host for an agent of type ``kind``: an idle one, else a new one (for a reader only below ``share_from``), else one
        to share, else it waits; see ``_shared``. ``above``: its ancestors. Raises ``OpenDevError`` (infra) when none can start.
        """
        while True:
            if self._closed:
                raise OpenDevError(ErrorKind.INFRA, f"Agent {agent} got no process: its runtime was ended.")
            role = f"{kind}, writing" if exclusive else kind
            more = exclusive or self._wants_more(kind)
            free = [h for h in self._hosts if more and not h.agents and h.kept in ("", agent)]
            host = max(free, key=lambda h: h.kept, default=None)
            if host is None and more and self._room(exclusive=exclusive):
                self._starting += 1
                self._booting[role] += 1
                try:
                    host = await self._start(reserve=agent)
                finally:
                    self._booting[role] -= 1
            if host is None:
                host = self._shared(kind, exclusive=exclusive, above=above)
            if host is not None:
                host.agents.add(agent)
                host.exclusive = host.exclusive or exclusive
                host.kind = kind
                self._refill()
                return host
            self._news.clear()
            await self._news.wait()

    def stir(self) -> None:
        """Let those who wait for a host look again."""
        self._news.set()

    def release(self, host: Host, agent: str, *, keep: bool = False) -> None:
        """The agent is done; an idle host is kept for the next one, for 60 s beyond the warm ones. ``keep``: it is the
        foreground agent, and what runs for it is there in its next turn."""
        host.agents.discard(agent)
        host.kept = agent if keep else host.kept
        if not host.agents:
            host.exclusive = False
            asyncio.get_running_loop().call_later(IDLE_S, self._expire, host)
        self._news.set()

    async def discard(self, host: Host) -> None:
        """End a host that cannot be trusted any more."""
        if host in self._hosts:
            self._hosts.remove(host)
        if host.kept and not host.agents:
            await _closed(host.ref)
        await self._runtime.kill(host.ref)
        self._news.set()

    async def refit(self, settings: dict[str, Any]) -> None:
        """Every host, and those to come, build their next agents from ``settings``."""
        self._plan = replace(self._plan, args=(settings, *self._plan.args[1:]))
        for host in tuple(self._hosts):
            try:
                await host.ref.ask("configure", settings)
            except OpenDevError:
                await self.discard(host)  # it died, or is none the settings can be told

    async def close(self) -> None:
        """End all hosts."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self.discard(h) for h in tuple(self._hosts)))

    def _room(self, *, exclusive: bool) -> bool:
        """Whether to start a process now: below the cap; a reader rather takes a warm one that is on its way."""
        return len(self._hosts) + self._starting < self._plan.cap and (exclusive or not self._coming)

    @property
    def _coming(self) -> int:
        """Hosts that are starting for nobody yet."""
        return self._starting - self._booting.total()

    def _wants_more(self, kind: str) -> bool:
        """Whether readers of this type may have one more host."""
        limit = self._plan.share_from
        return limit is None or len(self._alike(kind)) + self._booting[kind] < limit

    def _alike(self, kind: str) -> list[Host]:
        """The hosts that serve readers of this type."""
        return [h for h in self._hosts if h.agents and not h.exclusive and h.kind == kind]

    def _shared(self, kind: str, *, exclusive: bool, above: frozenset[str]) -> Host | None:
        """A busy host to share; None where waiting is better.

        Readers share with readers of their type, at the cap with any. Otherwise the agent waits as long as there is a host whose agents all go on by themselves:
        that host will be free, so nobody can wait for ever. When every host is held by an agent that waits for others (which
        may, in the end, wait for this one) it shares, best with its own ancestors: they do nothing until it has ended.
        """
        hosts = [h for h in self._hosts if h.agents or not h.kept]
        readers = self._alike(kind) or [h for h in hosts if not h.exclusive]
        if (
            not exclusive
            and readers
            and not self._booting[kind]
            and not (self._coming and self._wants_more(kind))
        ):
            return min(readers, key=lambda h: len(h.agents))
        if self._starting or any(all(map(self._working, h.agents)) for h in hosts):
            return None
        return min(hosts, key=lambda h: (not h.agents <= above, len(h.agents)), default=None)

    async def _start(self, reserve: str = "") -> Host:
        """The caller has counted it in ``_starting``, at the moment of its decision: two calls must not start one too many."""
        self._count += 1
        ref: Ref | None = None
        try:
            name = f"{self._runtime.kind}-host-{self._count}"  # told apart: in auto mode there are two pools
            ref = await self._runtime.spawn(self._plan.worker, *self._plan.args, name=name)
            pid = int((await ref.ask("ping"))["pid"])
        except BaseException:
            if ref is not None:
                await self._runtime.kill(ref)
            raise
        finally:
            self._starting -= 1
            self._news.set()
        host = Host(ref, pid, {reserve} if reserve else set())
        self._hosts.append(host)
        self._runtime.watch(ref, lambda down: self._died(host, down))
        return host

    async def _died(self, host: Host, down: Down) -> None:
        if host in self._hosts:
            self._hosts.remove(host)
        self._news.set()
        await self._on_down(down.model_copy(update={"agents": tuple(sorted(host.agents))}))

    def _refill(self, at_once: int = 1) -> None:
        """Towards the warm number, one by one: agents that were just placed need the cores more."""
        idle = sum(1 for h in self._hosts if not h.agents and not h.kept) + self._starting
        room = self._plan.cap - len(self._hosts) - self._starting
        for _ in range(min(self._warm - idle, room, at_once - self._starting)):
            self._starting += 1
            self._background(self._start_quietly())

    async def _start_quietly(self) -> None:
        try:
            await self._start()
        except OpenDevError:
            self._warm = 0  # whoever needs a host next hears why
        else:
            self._refill()

    def _expire(self, host: Host) -> None:
        idle = [h for h in self._hosts if not h.agents and not h.kept]
        if host in idle and len(idle) > self._warm and not self._closed:
            self._background(self.discard(host))

    def _background(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _closed(ref: Ref) -> None:
    """Let a host end what it kept, in its own time; what it does not is ended with the run's marks."""
    with contextlib.suppress(OpenDevError, TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await ref.ask("close")
