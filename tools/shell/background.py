"""Background tasks of one agent on pseudo-terminals: their states, their output files, and their certain end (SHL-05, SHL-10 to SHL-14)."""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import ErrorKind, OpenDevError
from ...core.ports import Processes, ProcessInfo, ProcessState
from .environment import command_env, find_shell
from .output import OutputBuffer, clean
from .process import COMMAND_MARK, DRAIN_S
from .pump import Pump
from .reap import HAS_PROC, end, family
from .rolling import RollingFile, task_folder, task_folders
from .sandbox import Sandbox

BASE = Path("/tmp/opendev")  # noqa: S108 - the place SHL-10 names; its folders are private and checked
GRACE_S = 5.0  # K25
CLOSE_GRACE_S = 0.5  # of all together at the end of the agent's run
RUNNING_MAX = 16
KNOWN_MAX = 50  # tasks that are remembered; of more, the oldest ended one is forgotten
_ROWS, _COLUMNS = 24, 200
_UNBOUNDED = 1 << 62  # the rolling file bounds itself


@dataclass(slots=True)
class _Task:
    info: ProcessInfo
    process: subprocess.Popen[bytes]
    pump: Pump
    log: RollingFile
    mark: dict[str, str]
    killing: bool = False
    told: bool = False
    over: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)  # set in the loop, a moment after ``over``


class BackgroundTasks(Processes):
    """The tasks of one agent, at most 16 at once. ``marker`` stands in each child's environment, so that none outlives the run.

    ``on_change`` is told each start and each end, in the event loop in which the task was started (SHL-11).
    """

    def __init__(
        self,
        *,
        root: Path,
        marker: Mapping[str, str],
        on_change: Callable[[ProcessInfo], None] | None = None,
        base: Path = BASE,
        grace_s: float = GRACE_S,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._root, self._marker = root, dict(marker)
        self.on_change = on_change  # of the agent's present run
        self._base, self._grace_s = base, grace_s
        self._tasks: dict[str, _Task] = {}
        self._closed = False

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders in which its output files may lie."""
        return task_folders(self._base, self._root)

    async def start(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> ProcessInfo:
        """Start ``bash -c command`` in a session and on a terminal of its own; its input is empty.

        Raises ``OpenDevError``: ``NOT_FOUND`` when ``cwd`` is gone, ``TOOL`` when 16 run already or it cannot be started.
        """
        running = [task.info.id for task in self._tasks.values() if not task.over]
        if self._closed or len(running) >= RUNNING_MAX:
            why = "the run has ended" if self._closed else f"{len(running)} background tasks run already"
            hint = f"End one by kill_process: {', '.join(running)}." if running else ""
            raise OpenDevError(ErrorKind.TOOL, f"The command was not started: {why}.", hint)
        loop = asyncio.get_running_loop()
        # Not a call of two halves: when this one is cancelled the task is known and watched all the same.
        task = await asyncio.to_thread(self._spawn, command, cwd, env, loop)
        return task.info

    async def wait(self, id: str, seconds: float) -> ProcessInfo:
        """How it is when it ended, or after ``seconds``."""
        task = self._get(id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await task.ended.wait()
        return self._now(task)

    def first_output(self, id: str) -> tuple[str, int]:
        """The cleaned text so far (head and tail) and the number of bytes left out; later output is in the file only."""
        return self._get(id).pump.freeze()

    def live(self, id: str) -> str:
        """What it wrote since the last look, at most the last 4,000 characters."""
        return self._get(id).pump.take_live()

    def tasks(self) -> tuple[ProcessInfo, ...]:
        """All that are known, oldest first."""
        return tuple(self._now(task) for task in self._tasks.values())

    async def tail(self, id: str, lines: int) -> str:
        """The last ``lines`` lines, cleaned; of progress lines the last state."""
        data = await asyncio.to_thread(self._get(id).log.tail)
        return "\n".join(clean(data.decode("utf-8", "replace")).splitlines()[-lines:])

    async def kill(self, id: str) -> ProcessInfo:
        """SIGTERM to the group, 5 s, SIGKILL; also what it left running after its own end. Raises ``OpenDevError`` (infra)."""
        task = self._get(id)
        task.told = True
        await self._end(task, self._grace_s)
        return self._now(task)

    def told(self, id: str) -> None:
        """The agent knows how this task ended."""
        self._get(id).told = True

    def take_ended(self) -> tuple[ProcessInfo, ...]:
        """Tasks whose end the agent does not know yet; each once (P17)."""
        fresh = [task for task in self._tasks.values() if task.over and not task.told]
        for task in fresh:
            task.told = True
        return tuple(self._now(task) for task in fresh)

    async def close(self) -> None:
        """End all tasks and what they left running; their output files stay."""
        self._closed = True
        tasks = tuple(self._tasks.values())
        try:
            await asyncio.gather(*(self._end(task, CLOSE_GRACE_S) for task in tasks))
        finally:
            for task in tasks:
                task.log.release()

    def _get(self, id: str) -> _Task:
        task = self._tasks.get(id)
        if task is None:
            known = ", ".join(self._tasks) or "none"
            raise OpenDevError(
                ErrorKind.NOT_FOUND, f"There is no background task {id[:80]}.", f"Yours are: {known}."
            )
        return task

    def _now(self, task: _Task) -> ProcessInfo:
        if task.over:
            return task.info
        return task.info.model_copy(update={"wall_s": time.monotonic() - task.info.started})

    def _spawn(
        self, command: str, cwd: Path, env: Mapping[str, str], loop: asyncio.AbstractEventLoop
    ) -> _Task:
        if not cwd.is_dir():
            message = f"The folder {cwd} does not exist (any more); the command was not run."
            raise OpenDevError(ErrorKind.NOT_FOUND, message, "Name a folder that exists.")
        id, log = self._output_file()
        mark = {**self._marker, COMMAND_MARK: uuid.uuid4().hex}
        env = command_env(env, mark)
        argv = [find_shell(env), "-c", command]
        if self._sandbox is not None:
            argv = self._sandbox.argv(argv, cwd)
        process, master = _on_terminal(argv, cwd, env, log)
        pump = Pump(master, OutputBuffer(), log, _UNBOUNDED)
        pump.start()
        info = ProcessInfo(
            id=id, command=command, pid=process.pid, started=time.monotonic(), output=str(log.path)
        )
        task = self._tasks[id] = _Task(info, process, pump, log, mark)
        with contextlib.suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(self._tell, info)
        name = f"task-{id}"
        threading.Thread(target=self._await_end, args=(task, loop), name=name, daemon=True).start()
        for old in [key for key, one in self._tasks.items() if one.over]:
            if len(self._tasks) > KNOWN_MAX:
                self._tasks.pop(old).log.release()
        return task

    def _output_file(self) -> tuple[str, RollingFile]:
        try:
            folder = task_folder(self._base, self._root)
            id = uuid.uuid4().hex[:7]
            return id, RollingFile(folder / f"{id}.output")
        except OSError as error:
            message = f"The output file of the task cannot be made: {error}."
            raise OpenDevError(ErrorKind.TOOL, message, "Run it without background.") from error

    def _await_end(self, task: _Task, loop: asyncio.AbstractEventLoop) -> None:
        code = task.process.wait()
        task.pump.ended.wait(DRAIN_S)
        left = () if task.killing else family(marker=task.mark)
        if not left:
            task.pump.stop()
        state = ProcessState.COMPLETED if code == 0 else ProcessState.FAILED
        task.info = task.info.model_copy(
            update={
                "state": ProcessState.KILLED if code < 0 or task.killing else state,
                "exit_code": code if code >= 0 else 128 - code,
                "signal": -code if code < 0 else None,
                "wall_s": time.monotonic() - task.info.started,
                "survivors": tuple(one.pid for one in left),
            }
        )
        task.over = True
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody listens any more
            loop.call_soon_threadsafe(self._tell_end, task)

    def _tell_end(self, task: _Task) -> None:
        task.ended.set()
        self._tell(task.info)

    def _tell(self, info: ProcessInfo) -> None:
        if self.on_change is not None:
            self.on_change(info)

    async def _end(self, task: _Task, grace_s: float) -> None:
        alive = not task.over
        task.killing = task.killing or alive
        # The number of an ended leader may be another process's by now: then only the marker counts.
        group = task.process.pid if alive else None
        if HAS_PROC:
            await end(lambda: family(marker=task.mark, group=group), grace_s)
        elif alive:
            await _end_group(task, grace_s)
        await task.ended.wait()
        await asyncio.to_thread(task.pump.stop)
        task.info = task.info.model_copy(update={"survivors": ()})


def _on_terminal(
    argv: list[str], cwd: Path, env: dict[str, str], log: RollingFile
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and the master end of its terminal. The terminal is nobody's controlling one, so nothing can ask on it (P07)."""
    master, slave = pty.openpty()
    try:
        settings = termios.tcgetattr(slave)
        settings[1] &= ~termios.OPOST  # no carriage return in front of each line break
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL byte or a lone surrogate in the command
        os.close(master)
        log.release()
        log.path.unlink(missing_ok=True)
        message = f"The command could not be started: {error}."
        raise OpenDevError(ErrorKind.TOOL, message, "Shorten it or put it into a script file.") from error
    finally:
        os.close(slave)
    return process, master


async def _end_group(task: _Task, grace_s: float) -> None:
    """Without ``/proc`` the group is all that can be found."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(task.process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await task.ended.wait()
