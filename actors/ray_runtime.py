"""The Ray door: starts a private local Ray (or joins a cluster), one process an actor, as ray.md's rules 1-3, 11 and 18 say."""

import asyncio
import contextlib
import os
import resource
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..core.clock import Clock, SystemClock
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.mail import Down
from ..tools.shell.reap import kill_marked
from . import cluster, ray_session, warm
from .runtime import Actor, dead, value_of

INIT_TIMEOUT_S = 25.0
RESTARTED = frozenset(
    {"opendev.actors.model_service:ModelService"}
)  # holds nothing but counters, which it journals
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class RayRef:
    """A handle of an actor in another process; it may be passed to actors."""

    name: str
    handle: Any
    pid: int = 0

    async def ask(self, method: str, *args: Any) -> Any:
        """Call and wait; cancelling the await cancels the remote call and returns at once. Raises ``OpenDevError``."""
        with _translated(self.name):
            call = self.handle.call.remote(method, *args)
            try:
                reply = await call
            except asyncio.CancelledError:
                _ray().cancel(call)
                raise
        return value_of(reply)

    async def stream(self, method: str, *args: Any) -> AsyncIterator[Any]:
        """Iterate an async-generator method; leaving the loop cancels the producer (or it would run, and cost, to its end)."""
        items = self.handle.stream.options(num_returns="streaming").remote(method, *args)
        ended = False
        try:
            with _translated(self.name):
                async for item in items:
                    yield value_of(await item)
            ended = True
        finally:
            if not ended:
                _ray().cancel(items)


class RayRuntime:
    """Actors as Ray actors. ``address`` joins an existing cluster, of which only this node is used; without it a private Ray
    on loopback is started, or the one that is kept warm for the state root ``home`` is used.

    ``on_session`` is told the session folder before anything runs in it (the janitor removes it should we be killed).
    ``run_id`` marks every process of the session (OPENDEV_RUN), so that none survives ``stop`` or, with the janitor, our death.
    """

    def __init__(
        self,
        *,
        run_id: str,
        address: str = "",
        home: Path | None = None,
        clock: Clock | None = None,
        spawn_timeout_s: float = 60.0,
        on_session: Callable[[Path], None] | None = None,
    ) -> None:
        self._run_id = run_id
        self._address, self._home = address, home
        self._borrowed = contextlib.ExitStack()
        self._warm = False
        self._clock = clock or SystemClock()
        self._spawn_timeout_s = spawn_timeout_s
        self._on_session = on_session
        self._session: ray_session.SessionDir | None = None
        self._refs: dict[str, RayRef] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._place: dict[str, Any] = {}
        self._up = False
        self._hold = threading.Event()

    @property
    def kind(self) -> Literal["local", "ray"]:
        """Which runtime this is."""
        return "ray"

    @property
    def session(self) -> Path | None:
        """The run's folder: the empty one Ray starts in, and all of a private Ray."""
        return self._session.path if self._session else None

    @property
    def address(self) -> str:
        """Where others may join; only after the start."""
        return str(_ray().get_runtime_context().gcs_address)

    async def start(self) -> None:
        """Bring Ray up (25 s, one retry) or join the cluster (30 s). Raises ``OpenDevError`` (infra). Idempotent."""
        if self._up:
            return
        await asyncio.to_thread(self._borrow)
        base = ray_session.base_dir()
        await asyncio.to_thread(ray_session.sweep, base, self._clock.now())
        session = self._session = ray_session.create(base)
        if self._on_session is not None:
            self._on_session(session.path)
        try:
            await (self._join() if self._address else self._start_local(session))
        except OpenDevError:
            await self.stop()
            raise

    async def spawn(self, cls: str, *args: Any, name: str) -> RayRef:
        """Start an actor in a process of its own and wait until it answers. Raises ``OpenDevError`` (infra)."""
        if not self._up or name in self._refs:
            raise OpenDevError(
                ErrorKind.INTERNAL, f"{name}: Ray is not started, or such an actor runs already."
            )
        remote: Any = _ray().remote(Actor)
        options = {"num_cpus": 0, "max_restarts": -1 if cls in RESTARTED else 0, "max_task_retries": 0}
        handle = remote.options(max_concurrency=1000, **options, **self._place).remote(cls, *args)
        try:
            with _translated(name):
                pid = value_of(await asyncio.wait_for(_get(handle.alive.remote()), self._spawn_timeout_s))
        except BaseException as error:
            _ray().kill(handle)
            if isinstance(error, TimeoutError):
                raise _never_answered(name, self._spawn_timeout_s) from None
            raise
        ref = self._refs[name] = RayRef(name, handle, pid)
        return ref

    def watch(self, ref: Any, on_down: Callable[[Down], Awaitable[None]]) -> None:
        """Call ``on_down`` once, when the process dies without ``kill``: a call that never returns fails in 14-31 ms."""
        task = asyncio.ensure_future(self._wait_down(ref, on_down))
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)

    async def kill(self, ref: Any) -> None:
        """End the actor and wait until its process is gone."""
        if self._refs.pop(ref.name, None) is None or not self._up:
            return
        _ray().kill(ref.handle)
        for _ in range(500):
            if not self._ours(ref.pid):
                return
            await asyncio.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.kill(ref.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Shut Ray down (3 s at most), end whatever still carries the run's mark and remove the session folder."""
        for task in tuple(self._watchers):
            task.cancel()
        if self._up:
            self._up = False
            if self._address:
                for ref in tuple(self._refs.values()):
                    _ray().kill(ref.handle)
            with contextlib.suppress(TimeoutError):
                await _in_thread(_ray().shutdown, timeout_s=3.0)
        self._borrowed.close()
        if self._warm:
            self._warm, self._address = False, ""
        self._refs.clear()
        self._hold.set()
        self._hold = threading.Event()
        if self._session is not None:
            await kill_marked({"OPENDEV_RUN": self._run_id})
            await asyncio.to_thread(self._session.remove)
            self._session = None

    def _borrow(self) -> None:
        """Take the Ray that is kept warm, if there is one."""
        found = warm.borrow(self._home, self._borrowed) if self._home and not self._address else None
        if found is None:
            self._borrowed.close()
            return
        self._warm, self._address = True, found.address
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=found.token)

    def _ours(self, pid: int) -> bool:
        """Whether the process lives and carries this run's mark: a number may be another's by now, or another container's."""
        try:
            marked = f"OPENDEV_RUN={self._run_id}".encode() in Path(
                f"/proc/{pid}/environ"
            ).read_bytes().split(b"\0")
        except OSError:
            return False
        return marked and ray_session.started(pid) != 0

    async def _wait_down(self, ref: RayRef, on_down: Callable[[Down], Awaitable[None]]) -> None:
        ray = _ray()
        try:
            await _get(ref.handle.wait_closed.remote())
        except ray.exceptions.RayError as error:
            if self._refs.pop(ref.name, None) is not None:
                await on_down(Down(name=ref.name, reason=_reason(error)))

    async def _start_local(self, session: ray_session.SessionDir) -> None:
        self._set_environment(session)
        options: dict[str, Any] = {
            "address": "local",
            "num_cpus": os.cpu_count(),
            "object_store_memory": 80 * _MB,
            "include_dashboard": False,
            "_temp_dir": str(session.path),
        }
        await self._init(options, tries=2)

    async def _join(self) -> None:
        """Its workers have the cluster's environment and folder, so what ours need is told; they stay on this node (T-15)."""
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_UV_RUN_RUNTIME_ENV="0")
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "5")  # not 20: a wrong token stays wrong
        if await cluster.knock(self._address):
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        paths = (os.environ.get("PYTHONPATH", ""), cluster.package_folder())
        variables = {
            "OPENDEV_RUN": self._run_id,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }
        await self._init({"address": self._address, "runtime_env": {"env_vars": variables}}, tries=1)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = _ray().get_runtime_context().get_node_id()
        self._place = {"scheduling_strategy": NodeAffinitySchedulingStrategy(here, soft=False)}

    async def _init(self, options: dict[str, Any], tries: int) -> None:
        told = ""
        for _ in range(tries):
            try:
                await _in_thread(
                    lambda: self._init_blocking(options), timeout_s=INIT_TIMEOUT_S, hold=self._hold
                )
            except TimeoutError:
                told = f"it was not up after {INIT_TIMEOUT_S:.0f} s"
            except (  # ray.init's own; ConnectionError is an OSError, and it exits where no node is found
                *(RuntimeError, OSError, ValueError, SystemExit),
                _ray().exceptions.RayError,
            ) as error:
                told = cluster.plain(error)
            else:
                self._up = True
                return
            with contextlib.suppress(TimeoutError):
                await _in_thread(_ray().shutdown, timeout_s=3.0)
        where = f"join the Ray cluster at {self._address}" if self._address else "start Ray"
        raise OpenDevError(
            ErrorKind.INFRA, f"Could not {where}: {told}.", "Use --runtime local to work in one process."
        )

    def _init_blocking(self, options: dict[str, Any]) -> None:
        here = Path.cwd()
        if self._session is not None:
            os.chdir(self._session.cwd)
        try:
            _ray().init(namespace=f"od-{new_id(6)}", log_to_driver=False, logging_level="error", **options)
        finally:
            os.chdir(here)

    def _set_environment(self, session: ray_session.SessionDir) -> None:
        """Ray reads these at import and passes them to its daemons and workers (rule 1)."""
        os.environ.pop("RAY_ADDRESS", None)
        os.environ.update(
            OPENDEV_RUN=self._run_id,
            RAY_USAGE_STATS_ENABLED="0",
            RAY_AUTH_MODE="token",
            RAY_AUTH_TOKEN_PATH=str(session.token),
            RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
            RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
            RAY_worker_niceness="0",
            RAY_prestart_worker_first_driver="0",
            RAY_memory_monitor_refresh_ms="0",
            RAY_DISABLE_FAILURE_SIGNAL_HANDLER="1",
            RAY_ROTATION_MAX_BYTES="5000000",
            RAY_ROTATION_BACKUP_COUNT="1",
            LITELLM_LOCAL_MODEL_COST_MAP="True",
        )
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _ray() -> Any:
    import ray

    return ray


async def _get(ref: Any) -> Any:
    return await ref


async def _in_thread(
    work: Callable[[], Any], *, timeout_s: float, hold: threading.Event | None = None
) -> Any:
    """Run blocking ``work`` in a daemon thread: one that hangs holds up neither the loop nor the end of the process.

    The thread stays until ``hold`` is set: Ray's daemons ask the kernel to die with the *thread* that started them.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(error: BaseException | None, value: Any) -> None:
        if not done.done():
            if error is None:
                done.set_result(value)
            else:
                done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        value: Any = None
        try:
            value = work()
        except BaseException as caught:  # noqa: BLE001 - handed to the awaiting side
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, error, value)
        if hold is not None:
            hold.wait()

    threading.Thread(target=run, daemon=True, name="ray-control").start()
    return await asyncio.wait_for(done, timeout_s)


@contextlib.contextmanager
def _translated(name: str) -> Generator[None]:
    """Turn Ray's exceptions into ours, in plain sentences."""
    errors = _ray().exceptions
    try:
        yield
    except errors.TaskCancelledError:
        raise OpenDevError(ErrorKind.CANCELLED, f"The call to {name} was cancelled.") from None
    except errors.RayError as error:
        if isinstance(getattr(error, "cause", None), errors.TaskCancelledError):
            raise OpenDevError(ErrorKind.CANCELLED, f"The call to {name} was cancelled.") from None
        raise dead(name, _reason(error)) from None


def _reason(error: BaseException) -> str:
    """One plain clause for one of Ray's exceptions."""
    errors = _ray().exceptions
    if isinstance(error, errors.OutOfMemoryError):
        return "the machine ran out of memory"
    if isinstance(error, errors.ActorUnavailableError):
        return "it cannot be reached at the moment"
    if isinstance(error, errors.ActorDiedError):
        return "it was killed or crashed"
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first[:200]}"


def _never_answered(name: str, after_s: float) -> OpenDevError:
    return OpenDevError(
        ErrorKind.INFRA,
        f"The process of {name} did not answer within {after_s:.0f} s.",
        "The machine may be overloaded; lower the number of agents, or use --runtime local.",
    )
