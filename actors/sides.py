"""Where agents may run: in this process, and under Ray once processes are needed; picks a side for each agent (rule 5)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..core.agent import AgentSpec, AgentTask
from ..core.chat import MESSAGES
from ..core.clock import Clock
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event, Notice
from ..core.hooks import HookSet
from ..core.mail import Compact, Down, Summary
from ..core.model import Frozen
from ..core.permissions import Rule
from ..core.ports import Ref, Runtime
from .isolation import Desk
from .local_runtime import DirectRef, LocalRuntime
from .notices import NoticeRelay
from .pool import HostPool, PoolPlan
from .postroom import Postroom

RAY_WAIT_S = 0.5
LOCAL_HOSTS = 1000  # objects, not processes


class HubSettings(Frozen):
    """``max_concurrent`` agents work at once in the whole tree; ``tiers`` maps haiku, sonnet and opus to models (SUB-10)."""

    run_id: str
    runtime: Literal["auto", "ray", "local"] = "auto"
    max_concurrent: int = Field(default=4, ge=1)
    max_depth: int = Field(default=2, ge=0)
    max_total: int = Field(default=200, ge=0)
    max_children: int = Field(default=16, ge=1)
    approval_timeout_s: float = Field(default=300.0, gt=0)
    cores: int = Field(default=2, ge=1)
    warm_hosts: int = Field(default=2, ge=0)  # idle processes kept ready under Ray, at most one a core
    tiers: dict[str, str] = {}
    hooks: HookSet = HookSet()
    startup: str = "startup"  # what SessionStart hooks are told: startup, resume or swarm
    worker: str = "opendev.actors.worker:Worker"
    model_service: str = "opendev.actors.model_service:ModelService"


@dataclass(frozen=True)
class HubPorts:
    """The hub's world. ``worker`` and ``model``: JSON-able settings of the two actor classes. ``make_ray`` builds the Ray
    runtime; it gets a function that is told the session folder. No ``desk``, or one whose function gives none = no agent that writes can be spawned."""

    clock: Clock
    run_dir: Path
    worker: dict[str, Any]
    model: dict[str, Any]
    specs: Mapping[str, AgentSpec] = field(default_factory=dict[str, AgentSpec])
    desk: Desk = None
    make_ray: Callable[[Callable[[Path], None]], Runtime] | None = None
    local: Runtime = field(default_factory=LocalRuntime)
    history: Path | None = None  # the folder in which decisions about calls are noted
    remember: Callable[[tuple[Rule, ...]], None] | None = None  # saves what a person always allows; blocking


@dataclass(eq=False)
class Side:
    """One runtime with its mail, its hosts and its compactor."""

    runtime: Runtime
    post: Ref
    pool: HostPool
    model: Ref | None
    drain: asyncio.Task[None] | None = None
    compactor: Ref | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class SidesPorts:
    """What the sides need of the hub: events out, deaths of hosts, the session folder, and whether an agent works by itself."""

    emit: Callable[[Event], None]
    on_down: Callable[[Down], Awaitable[None]]
    on_session: Callable[[Path], None]
    working: Callable[[str], bool]


class Sides:
    """The local side always stands; the Ray side is started at the first need, and its failure is told, not hidden."""

    def __init__(self, settings: HubSettings, ports: HubPorts, postroom: Postroom, hub: SidesPorts) -> None:
        self._settings, self._ports, self._postroom, self._hub = settings, ports, postroom, hub
        self._local: Side | None = None
        self._ray: Side | None = None
        self._runtime: Runtime | None = None
        self._starting: asyncio.Task[Side] | None = None
        self._failed = ""
        self._model: Ref | None = None
        self._notices: NoticeRelay | None = None
        self.pids_seen: set[int] = set()

    @property
    def model(self) -> Ref:
        """The model service of the run. Raises ``OpenDevError`` (internal) before ``start``."""
        if self._model is None:
            raise OpenDevError(ErrorKind.INTERNAL, "The hub was not started.")
        return self._model

    async def start(self) -> None:
        """Bring the local side up, and Ray when it was asked for by name. Raises ``OpenDevError`` (infra)."""
        if self._settings.runtime == "ray":
            self._ray = await self._start_ray()
        else:
            self._model = await self._spawn_model(self._ports.local)
        post = DirectRef("mail", self._postroom)
        settings = {**self._ports.worker, "window_s": 0.0}
        plan = PoolPlan(self._settings.worker, (settings, post, self._model), cap=LOCAL_HOSTS)
        pool = HostPool(self._ports.local, plan, self._hub.on_down, self._hub.working)
        self._local = Side(self._ports.local, post, pool, self._model)

    async def ensure_ray(self) -> bool:
        """Start Ray if it does not run. False when it cannot be had; a notice has said why."""
        try:
            await self._ray_side()
        except OpenDevError as error:
            if not self._failed:
                self._failed = error.info.sentence()
                self._hub.emit(
                    Notice(level="warning", text=f"{self._failed} All agents run in this process instead.")
                )
            return False
        return True

    def stir(self) -> None:
        """An agent began to wait for others: who waits for a host may now have to share one."""
        for side in (self._local, self._ray):
            if side is not None:
                side.pool.stir()

    async def choose(self, task: AgentTask, *, parallel: bool) -> Side:
        """The side for an agent: processes for parallel and writing sub-agents, this process for the rest."""
        if self._settings.runtime == "ray":
            return await self._ray_side()
        local = self._here()
        if self._settings.runtime == "local" or self._failed or task.stream or self._ports.make_ray is None:
            return local
        if self._ray is None:
            if not (task.depth and (parallel or task.spec.writes)):
                return local
            start = asyncio.ensure_future(self.ensure_ray())
            await asyncio.wait({start}, timeout=None if task.spec.writes else RAY_WAIT_S)
        return self._ray or local

    async def compact(self, letter: Compact) -> Summary:
        """Have the compactor actor summarise. Raises ``OpenDevError``; the asking agent prunes instead (ACT-13)."""
        side = self._ray or self._here()
        async with side.lock:
            if side.compactor is None:
                side.compactor = await self._spawn_compactor(side)
        messages = MESSAGES.dump_json(letter.messages, by_alias=True).decode()
        ask = side.compactor.ask("summarise", messages, letter.artifacts, letter.model, list(letter.scopes))
        return Summary(text=await ask)

    async def close(self) -> None:
        """End every actor and Ray itself."""
        if self._starting is not None:
            await asyncio.wait({self._starting})
        for side in (self._ray, self._local):
            if side is not None:
                await side.pool.close()
                if side.drain is not None:
                    side.drain.cancel()
        if self._notices is not None:
            await self._notices.close()
        if self._model is not None:
            await _quietly(self._model, "close")
        if self._runtime is not None:
            await self._runtime.stop()
        await self._ports.local.stop()
        self._ray = None

    async def refit(self, worker: dict[str, Any]) -> None:
        """Hosts build their next agents from these settings."""
        self._ports = replace(self._ports, worker=worker)
        for side in filter(None, (self._local, self._ray)):
            await side.pool.refit({**worker, "window_s": 0.0} if side is self._local else worker)

    def _here(self) -> Side:
        if self._local is None:
            raise OpenDevError(ErrorKind.INTERNAL, "The hub was not started.")
        return self._local

    async def _ray_side(self) -> Side:
        if self._ray is not None:
            return self._ray
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start_ray())
        starting = self._starting
        try:
            side = await asyncio.shield(starting)
        finally:
            if starting.done() and self._starting is starting:
                self._starting = None
        self._ray = side
        return side

    async def _start_ray(self) -> Side:
        if self._ports.make_ray is None:
            raise OpenDevError(
                ErrorKind.CONFIG, "This run has no Ray runtime.", "Use --runtime auto or local."
            )
        if self._runtime is None:
            self._runtime = self._ports.make_ray(self._hub.on_session)
        runtime = self._runtime
        await runtime.start()
        mailbox = await runtime.spawn("opendev.actors.main:Mailbox", name="main")
        model = None
        if self._settings.runtime == "ray":
            model = self._model = self._model or await self._spawn_model(runtime)
        cap = max(2 * self._settings.cores, self._settings.max_concurrent)
        plan = PoolPlan(
            self._settings.worker,
            (self._ports.worker, mailbox, model),
            cap=cap,
            warm=min(self._settings.warm_hosts, self._settings.cores),
            share_from=self._settings.cores,
        )
        side = Side(runtime, mailbox, HostPool(runtime, plan, self._hub.on_down, self._hub.working), model)
        side.drain = asyncio.get_running_loop().create_task(self._postroom.drain(mailbox))
        runtime.watch(mailbox, lambda down: self._mailbox_died(side, down))
        side.pool.warm()
        return side

    async def _mailbox_died(self, side: Side, down: Down) -> None:
        """Without mail no worker of that side can go on: end them, so that every call of theirs fails at once."""
        if self._ray is side:
            self._ray = None
        self._hub.emit(
            Notice(level="error", text=f"The main actor died ({down.reason}); its agents are ended.")
        )
        await side.pool.close()
        if side.compactor is not None:
            await side.runtime.kill(side.compactor)

    async def _spawn_model(self, runtime: Runtime) -> Ref:
        model = await runtime.spawn(self._settings.model_service, self._ports.model, name="model")
        self._notices = NoticeRelay(model, self._hub.emit)
        return model

    async def _spawn_compactor(self, side: Side) -> Ref:
        settings = {"run_id": self._settings.run_id}
        ref = await side.runtime.spawn(
            "opendev.actors.compactor:Compactor", settings, side.post, side.model, name="compactor"
        )

        async def died(_down: Down) -> None:
            side.compactor = None

        side.runtime.watch(ref, died)
        return ref


async def _quietly(ref: Ref, method: str) -> None:
    try:
        async with asyncio.timeout(2.0):
            await ref.ask(method)
    except (OpenDevError, TimeoutError):
        return
