"""The process that keeps a private Ray warm: ``python -m opendev.actors.warm_keeper HOME IDLE_S``; see ``warm``."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from .. import __version__
from ..core.errors import OpenDevError
from ..core.ids import new_id
from ..store.atomic import write_atomic
from . import ray_session
from .janitor_pipe import Janitor
from .ray_runtime import RayRuntime
from .warm import Warm, in_use, record_path

POLL_S = 1.0


async def keep(home: Path, idle_s: float) -> None:
    """Start a private Ray, write the record, and end everything on a signal or after ``idle_s`` without a run.

    Raises:
        OpenDevError: infra when Ray cannot be started.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    run, janitor = f"warm-{new_id(8)}", Janitor()
    await asyncio.to_thread(janitor.start, {"OPENDEV_RUN": run}, ray_session.base_dir())
    runtime = RayRuntime(run_id=run, on_session=janitor.remove_on_exit)
    try:
        await runtime.start()
        _write(home, runtime, idle_s)
        await _until_idle(home, idle_s, stop)
        record_path(home).unlink(missing_ok=True)
    finally:
        await runtime.stop()
        await asyncio.to_thread(janitor.close, clean=True)


def _write(home: Path, runtime: RayRuntime, idle_s: float) -> None:
    pid = os.getpid()
    record = Warm(
        pid=pid,
        started=ray_session.started(pid),
        address=runtime.address,
        token=str(runtime.session / "token") if runtime.session else "",
        version=__version__,
        idle_s=idle_s,
    )
    write_atomic(record_path(home), record.model_dump_json().encode())


async def _until_idle(home: Path, idle_s: float, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    used = loop.time()
    while not stop.is_set() and loop.time() - used < idle_s:
        if await asyncio.to_thread(in_use, home):
            used = loop.time()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), min(POLL_S, idle_s))


def main() -> None:
    """The process that keeps it; what goes wrong is the last line of its standard error."""
    try:
        asyncio.run(keep(Path(sys.argv[1]), float(sys.argv[2])))
    except OpenDevError as error:
        sys.exit(error.info.sentence())


if __name__ == "__main__":
    main()
