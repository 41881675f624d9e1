"""One session of an agent, killed at a write: ``python -m support.session_crash FOLDER STEP``.

A child process is forked for every STEP-th write point (write: before, in the middle, after; fsync, rename, truncate: before and
after) and kills itself there with SIGKILL, in ``FOLDER/<point>/home``. ``acked`` beside it holds how many messages were said to
be on disk. The driver ends with the first child that lives to the end of its session.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opendev.core.chat import ModelReply
from opendev.store.session_files import SessionFiles
from support.agents import Bench
from support.scripted_model import call, calls, says

ID = "Crash123"
FIRST, SECOND = "The first prompt.", "The second prompt."
_write, _fsync, _truncate, _replace = os.write, os.fsync, os.ftruncate, Path.replace


def steps() -> list[ModelReply]:
    """Seven answers: todos, a batch of reads, a file, the end; and after a resume one more."""
    todo = call("write_todos", "t", todos=[{"title": "one"}])
    reads = (call("list_files", "l", path="."), call("read_file", "r", file_path="a.py"))
    write = call("write_file", "w", file_path="b.py", content="B = 1\n")
    done = call("complete_todo", "c", id="1")
    return [calls(todo), calls(*reads), calls(write), calls(done), says("First end."), says("Second end.")]


async def session(place: Path) -> None:
    """Two prompts to one session."""
    bench = Bench(place, *steps())
    (bench.root / "a.py").write_text("A = 1\n")
    await bench.run(prompt=FIRST, session=ID, run_id=ID)
    files = await asyncio.to_thread(where, place)
    await bench.run(prompt=SECOND, session=ID, run_id=ID, history=await asyncio.to_thread(files.history))


def where(place: Path) -> SessionFiles:
    """The files of the session of ``place``."""
    from opendev.store.layout import Layout
    from opendev.store.sessions import SessionStore

    return SessionStore(Layout(place / "home"), place / "project").files(ID)


class Faults:
    """Kills the process at write point number ``at`` below ``home``; 0 = never."""

    def __init__(self, place: Path, at: int) -> None:
        self._home, self._at, self._point = str(place / "home"), at, 0
        self._acked, self._ack = 0, os.open(place / "acked", os.O_WRONLY | os.O_CREAT, 0o600)

    def install(self) -> None:
        """Put the points around the functions that change files."""
        os.write = self.write
        os.fsync = self.around(_fsync)
        os.ftruncate = self.around(_truncate)
        Path.replace = self.around(_replace)
        append = SessionFiles.append

        def acked(self_: SessionFiles, lines: Sequence[str]) -> None:
            append(self_, lines)
            self._acked += len(lines)
            os.pwrite(self._ack, str(self._acked).encode(), 0)

        setattr(SessionFiles, "append", acked)  # noqa: B010 - a method is replaced on purpose

    def point(self) -> None:
        """One place where the process may die."""
        self._point += 1
        if self._point == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` with a point before and one after it."""

        def wrapped(*args: Any) -> Any:
            self.point()
            done = function(*args)
            self.point()
            return done

        return wrapped

    def write(self, fd: int, data: bytes) -> int:
        """Only files of the state root count; half of the data is a point too."""
        if not str(Path(f"/proc/self/fd/{fd}").readlink()).startswith(self._home):
            return _write(fd, data)
        self.point()
        half = _write(fd, data[: len(data) // 2])
        self.point()
        rest = _write(fd, data[half:])
        self.point()
        return half + rest


def main(folder: Path, step: int) -> None:
    """Fork, kill, next, until one lives."""
    asyncio.run(
        session(_made(folder / "whole"))
    )  # everything is imported, and the whole session is there to compare
    for at in range(1, 10_000, step):
        place = _made(folder / str(at))
        child = os.fork()
        if child == 0:
            Faults(place, at).install()
            asyncio.run(session(place))
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


def _made(place: Path) -> Path:
    place.mkdir(parents=True)
    return place


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
