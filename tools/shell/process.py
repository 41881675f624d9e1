"""The Shell port on real processes: own session, closed input, bounded output, and an end that leaves nothing behind."""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
import uuid
from asyncio.subprocess import Process
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import BinaryIO, Literal

from ...core.errors import ErrorKind, OpenDevError
from ...core.ports import CommandResult, Shell
from ...store.atomic import make_private
from .environment import command_env, find_shell
from .output import OutputBuffer
from .pump import Pump
from .reap import HAS_PROC, Proc, end, family, process_start
from .sandbox import Sandbox

COMMAND_MARK = (
    "OPENDEV_COMMAND"  # tells the processes of one command from those of the agent's other commands
)
TICK_S = 0.1  # K23: how often time limits are looked at and live text is passed on
DRAIN_S = 0.3  # how long output is awaited after the shell has ended while a background child holds the pipe
LOG_CAP = 20_000_000  # bytes of one log
LOGS_KEPT = 50
PUMPS_KEPT = 16  # background children whose output is still read; of more, the oldest one's pipe is closed

Ended = Literal["exit", "idle", "total"]


class ProcessShell(Shell):
    """Runs each command with ``bash -c`` (``sh -c`` without bash) in a session of its own (SHL-05 to SHL-09, C-37).

    A child's environment is the mapping given to ``run`` plus quiet settings and ``marker``, nothing of this process.
    ``on_group`` is told the process group before anything else happens. ``grace_s`` lies between SIGTERM and SIGKILL;
    it is shorter than the 5 s of K25 because a call has to return within its limit + 2 s (P01).
    """

    def __init__(
        self,
        *,
        log_dir: Path,
        marker: Mapping[str, str],
        on_group: Callable[[int], None] | None = None,
        keep: tuple[int, int, int] = (10_000, 10_000, 30_000),
        grace_s: float = 1.0,
        sandbox: Sandbox | None = None,
    ) -> None:
        """``keep``: characters of head, of tail, and up to which a text stays whole (K21). ``sandbox`` confines every command."""
        self._sandbox = sandbox
        self._log_dir, self._marker, self._on_group = log_dir, dict(marker), on_group
        self._keep, self._grace_s = keep, grace_s
        self._logs: OrderedDict[Path, None] = OrderedDict()
        self._pumps: list[Pump] = []

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        idle_s: float,
        total_s: float,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run to the end, to ``idle_s`` seconds without output or to ``total_s`` seconds in all, whichever is first.

        A limit ends the whole process group and every descendant, also those that left the group. Cancelling does the same
        and returns only when they are dead. When the shell ends by itself while a ``&`` child lives, that child is left
        alone and listed in ``survivors``; its output goes on to the log.

        Raises:
            OpenDevError: ``NOT_FOUND`` when ``cwd`` is gone, ``TOOL`` when the command cannot be started.
        """
        started = time.monotonic()
        mark = {**self._marker, COMMAND_MARK: uuid.uuid4().hex}
        process, pump, log = await self._start(command, cwd, command_env(env, mark), mark)
        began = process_start(process.pid) or 0
        try:
            ended = await _watch(process, pump, idle_s, started + total_s, on_output)
            if ended == "exit":
                await _drain(pump)
            else:
                await self._end(process, mark)
        except BaseException:
            await _in_any_case(self._end(process, mark))
            self._drop(pump, log)
            raise
        found: tuple[Proc, ...] = ()
        if ended == "exit":
            found = await asyncio.to_thread(family, marker=mark, group=process.pid, since=began)
        text, omitted = pump.freeze()
        _pass_on(pump, on_output)
        code = process.returncode
        if code and self._sandbox is not None:
            text += self._sandbox.hint(text)
        kept = bool(omitted or found)
        if found and not pump.ended.is_set():
            self._leave_running(pump)
        else:
            await asyncio.to_thread(pump.stop)
        if not kept:
            self._forget(log)
        return CommandResult(
            exit_code=None if ended != "exit" or code is None else code if code >= 0 else 128 - code,
            signal=-code if code is not None and code < 0 else None,
            text=text,
            omitted_bytes=omitted,
            log=str(log) if kept and log is not None else "",
            ended=ended,
            survivors=tuple(one.pid for one in found),
            wall_s=time.monotonic() - started,
        )

    async def close(self) -> None:
        """Stop reading what background children write. It ends no process: that is ``kill_marked``."""
        pumps, self._pumps = self._pumps, []
        for pump in pumps:
            await asyncio.to_thread(pump.stop)

    async def _start(
        self, command: str, cwd: Path, env: dict[str, str], mark: Mapping[str, str]
    ) -> tuple[Process, Pump, Path | None]:
        if not await asyncio.to_thread(cwd.is_dir):
            message = f"The folder {cwd} does not exist (any more); the command was not run."
            raise OpenDevError(ErrorKind.NOT_FOUND, message, "Name a folder that exists.")
        argv = [find_shell(env), "-c", command]
        if self._sandbox is not None:
            argv = await asyncio.to_thread(self._sandbox.argv, argv, cwd)
        reader, writer = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL byte or a lone surrogate in the command
            os.close(reader)
            message = f"The command could not be started: {error}."
            raise OpenDevError(ErrorKind.TOOL, message, "Shorten it or put it into a script file.") from error
        except asyncio.CancelledError:
            os.close(reader)
            await _in_any_case(end(lambda: family(marker=mark), self._grace_s))
            raise
        finally:
            os.close(writer)
        if self._on_group is not None:
            self._on_group(process.pid)
        path_of_log, log = self._open_log()
        head, tail, whole = self._keep
        pump = Pump(reader, OutputBuffer(head=head, tail=tail, whole=whole), log, LOG_CAP)
        pump.start()
        return process, pump, path_of_log

    async def _end(self, process: Process, mark: Mapping[str, str]) -> None:
        group = process.pid
        if not HAS_PROC:  # the group is all that can be found
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        await end(lambda: family(marker=mark, group=group), self._grace_s)
        await process.wait()

    def _open_log(self) -> tuple[Path | None, BinaryIO | None]:
        """A private file; none when the disk refuses, for the command matters more than its log."""
        try:
            make_private(self._log_dir)
            handle, name = tempfile.mkstemp(prefix="command-", suffix=".log", dir=self._log_dir)
        except OSError:
            return None, None
        path = Path(name)
        self._logs[path] = None
        while len(self._logs) > LOGS_KEPT:
            self._logs.popitem(last=False)[0].unlink(missing_ok=True)
        return path, os.fdopen(handle, "wb", buffering=0)

    def _forget(self, log: Path | None) -> None:
        if log is not None:
            self._logs.pop(log, None)
            log.unlink(missing_ok=True)

    def _drop(self, pump: Pump, log: Path | None) -> None:
        pump.stop()
        self._forget(log)

    def _leave_running(self, pump: Pump) -> None:
        self._pumps = [one for one in self._pumps if not one.ended.is_set()]
        self._pumps.append(pump)
        while len(self._pumps) > PUMPS_KEPT:
            self._pumps.pop(0).stop()


async def _watch(
    process: Process, pump: Pump, idle_s: float, deadline: float, on_output: Callable[[str], None] | None
) -> Ended:
    """Wait for the shell itself (not for the end of its output) or for a limit."""
    waiter = asyncio.ensure_future(process.wait())
    try:
        while True:
            done, _ = await asyncio.wait((waiter,), timeout=TICK_S)
            _pass_on(pump, on_output)
            now = time.monotonic()
            if done:
                return "exit"
            if now >= deadline:
                return "total"
            if now - pump.last_output >= idle_s:
                return "idle"
    finally:
        waiter.cancel()


async def _drain(pump: Pump) -> None:
    """Take what is still in the pipe; a background child may hold it open, so the wait is short."""
    await asyncio.to_thread(pump.ended.wait, DRAIN_S)


def _pass_on(pump: Pump, on_output: Callable[[str], None] | None) -> None:
    live = pump.take_live()
    if live and on_output is not None:
        on_output(live)


async def _in_any_case(work: Coroutine[None, None, object]) -> None:
    """Finish ``work`` even when this task is cancelled again meanwhile; the cancellation itself is the caller's."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
    task.result()
