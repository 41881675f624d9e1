"""`opendev` on a pseudo-terminal of its own: no terminal, a dumb one, signals, a terminal that is closed (CLI-01, TUI-06; U08, U09, U11)."""

import asyncio
import contextlib
import os
import pty
import re
import select
import signal
import termios
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.command_line import OPENDEV, Sandbox
from support.model_server import ModelServer, call, text
from support.waiting import until

Serve = Callable[..., ModelServer]


@dataclass
class Terminal:
    """A process with a terminal."""

    pid: int
    master: int
    before: list[Any]
    raw: bytearray = field(default_factory=bytearray)

    async def sees(self, wanted: str, seconds: float = 40) -> None:
        def seen() -> bool:
            self.read()
            return wanted in self.raw.decode("utf-8", "replace")

        try:
            await until(seen, seconds)
        except TimeoutError:
            pytest.fail(f"{wanted!r} is not in {self.raw.decode('utf-8', 'replace')}")

    def read(self) -> None:
        with contextlib.suppress(OSError):
            while select.select([self.master], [], [], 0)[0] and (data := os.read(self.master, 65_536)):
                self.raw.extend(data)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def code(self) -> int:
        """Its exit code, once it has ended."""
        ended: list[int] = []

        def gone() -> bool:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                ended.append(os.waitstatus_to_exitcode(status))
            return bool(pid)

        await until(gone, 40)
        self.read()
        self.pid = 0
        return ended[0]


@contextlib.contextmanager
def terminal(sandbox: Sandbox, *arguments: str, **env: str) -> Generator[Terminal]:
    environment = {"TERM": "xterm", "LANG": "C.UTF-8"} | sandbox.environment() | env
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(sandbox.project)
        os.execve(OPENDEV, [str(OPENDEV), *arguments], environment)
    held = Terminal(pid, master, termios.tcgetattr(master))
    try:
        yield held
    finally:
        if held.pid:
            os.kill(held.pid, signal.SIGKILL)
            os.waitpid(held.pid, 0)
        os.close(held.master)


@pytest.mark.req("CLI-01", "TUI-06")
@pytest.mark.parametrize("arguments", [(), ("--plain",), ("--continue",)])
def test_without_a_terminal_it_says_so_and_names_the_option(
    sandbox: Sandbox, arguments: tuple[str, ...]
) -> None:
    outcome = sandbox.here(*arguments)
    assert outcome.code == 2
    assert " -p" in outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.slow
@pytest.mark.req("TUI-06", "TUI-02")
@pytest.mark.parametrize("env", [{"TERM": "dumb", "PYTHONIOENCODING": "ascii"}])
async def test_a_dumb_terminal_gets_whole_lines(sandbox: Sandbox, serve: Serve, env: dict[str, str]) -> None:
    serve(call("run_command", {"command": "echo made > made.txt"}), text("**Done** é"))
    with terminal(sandbox, "--plain", **env) as term:
        await term.sees("> ")
        term.type("make it\n")
        await term.sees("answer (y s n): ")
        assert "echo made > made.txt" in term.raw.decode()
        term.type("y\n")
        await term.sees("**Done**")
        term.type("/exit\n")
        assert await term.code() == 0
        assert (sandbox.project / "made.txt").exists()
        assert term.raw.isascii()
        assert b"\x1b" not in term.raw


@pytest.mark.soak
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGHUP, 130)])
async def test_a_signal_puts_the_terminal_back(
    sandbox: Sandbox, serve: Serve, number: signal.Signals, code: int
) -> None:
    serve(call("run_command", {"command": "sleep 98"}), text("no"))
    with terminal(sandbox, "--approve", "auto") as term:
        await term.sees("% context")
        term.type("sleep\r")
        await term.sees("sleep 98")
        await asyncio.sleep(0.5)
        os.kill(term.pid, number)
        assert await term.code() == code
        assert termios.tcgetattr(term.master) == term.before
        for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?25l", b"\x1b[?25h")):
            assert term.raw.rfind(off) >= term.raw.rfind(on)
        assert re.search(rb"\x1b\[\?(1049|1000|1006)h", term.raw) is None
        assert b"Traceback" not in term.raw


@pytest.mark.soak
async def test_a_terminal_that_is_closed_ends_it(sandbox: Sandbox, serve: Serve) -> None:
    serve(text("no"))
    with terminal(sandbox) as term:
        await term.sees("% context")
        master, term.master = term.master, os.open(os.devnull, os.O_RDWR)
        os.close(master)
        assert await term.code() in (0, 130)  # the end of the input, or SIGHUP: whichever is seen first
