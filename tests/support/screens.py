"""A conversation that a test plays, and a real pseudo-terminal with the screen of the line REPL on it."""

import asyncio
import contextlib
import os
import re
import termios
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opendev.core.approval import ApprovalRequest, Mode
from opendev.core.chat import Usage
from opendev.core.events import ApprovalAsked, Event
from opendev.core.ops import Op
from opendev.store.typed import HistoryFile
from opendev.ui.repl.ports import Command, CommandResult, Status
from opendev.ui.repl.screen import Screen
from opendev.ui.repl.terminal import Abilities
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input.vt100 import Vt100Input

from .waiting import until

ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>78]|\r")
STATUS = Status(session_id="s", mode=Mode.NORMAL, model="test/m", usage=Usage(), context=0.0, busy=False)


@dataclass
class Talk:
    """Implements ``Conversation``: notes what it is told, says what the test puts in."""

    now: Status = STATUS
    sent: list[str] = field(default_factory=list[str])
    acts: list[Op] = field(default_factory=list[Op])
    results: dict[str, CommandResult] = field(default_factory=dict[str, CommandResult])
    held: asyncio.Event = field(default_factory=asyncio.Event)  # commands end while it is set
    broken: Exception | None = None  # what reading events raises
    _queue: "asyncio.Queue[Event | None]" = field(default_factory=lambda: asyncio.Queue[Event | None](10_000))

    def __post_init__(self) -> None:
        self.held.set()

    def put(self, *events: Event) -> None:
        for event in events:
            self._queue.put_nowait(event)

    def busy(self, yes: bool = True) -> None:
        self.now = self.now.model_copy(update={"busy": yes})

    def breaks(self, error: Exception) -> None:
        self.broken = error
        self._queue.put_nowait(None)

    async def submit(self, text: str) -> CommandResult:
        self.sent.append(text)
        await self.held.wait()
        return self.results.get(text, CommandResult(success=True, leave=text == "/exit"))

    async def act(self, op: Op) -> None:
        self.acts.append(op)

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._queue.get()) is not None:
            yield event
        assert self.broken is not None
        raise self.broken

    def status(self) -> Status:
        return self.now

    def commands(self) -> tuple[Command, ...]:
        names = ("clear", "compact", "cost", "exit", "help")
        return tuple(Command(name=name, usage="", summary=f"does {name}") for name in names)

    def files(self, prefix: str) -> tuple[str, ...]:
        return tuple(path for path in ("src/a.py", "src/b.py", "notes.md") if path.startswith(prefix))

    def toggle_mode(self) -> Mode:
        mode = Mode.NORMAL if self.now.mode is Mode.PLAN else Mode.PLAN
        self.now = self.now.model_copy(update={"mode": mode})
        return mode


@dataclass
class Pty:
    """The screen on a terminal. ``raw`` is every byte it wrote."""

    talk: Talk
    screen: Screen
    master: int
    task: "asyncio.Task[None]"
    before: list[Any]
    raw: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        """What was written, without control sequences."""
        return ESCAPES.sub("", self.raw.decode("utf-8", "replace"))

    @property
    def draft(self) -> str:
        return self.screen.bottom.draft.text

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def sees(self, text: str) -> None:
        """Wait until ``text`` was written since the last ``forget``."""
        await until(lambda: text in self.text, seconds=10)

    async def has(self, draft: str) -> None:
        """Wait until the draft is this."""
        await until(lambda: self.draft == draft, seconds=10)

    def forget(self) -> None:
        self.raw.clear()

    async def ends(self) -> None:
        async with asyncio.timeout(10):
            await asyncio.wait({self.task})
        await asyncio.sleep(0.02)

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.master)


PLAIN = Abilities(moves=True, colour=False, unicode=True)
COLOUR = replace(PLAIN, colour=True)


@contextlib.asynccontextmanager
async def on_terminal(
    folder: Path, *, rows: int = 24, columns: int = 80, abilities: Abilities = PLAIN
) -> AsyncGenerator[Pty]:
    """Start the screen on a terminal of this size; it is ended at the end."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (rows, columns))
    out, keys = os.fdopen(os.dup(slave), "w", encoding="utf-8"), os.fdopen(slave)
    before, loop, talk = termios.tcgetattr(master), asyncio.get_running_loop(), Talk()
    with create_app_session(), out, keys:
        screen = Screen(talk, HistoryFile(folder / "history"), out, Vt100Input(keys), abilities)
        pty = Pty(talk, screen, master, asyncio.create_task(screen.run()), before)
        loop.add_reader(master, lambda: pty.raw.extend(os.read(master, 65_536)))
        try:
            await until(lambda: screen.bottom.app.is_running and "normal" in pty.text, seconds=10)
            yield pty
        finally:
            pty.task.cancel()
            await asyncio.wait({pty.task})
            loop.remove_reader(master)
    os.close(master)


def asks(command: str = "rm a", *, id: str = "q1", agent: str = "Main", **fields: Any) -> ApprovalAsked:
    """A command that waits for a person."""
    base: dict[str, Any] = {"id": id, "agent_id": f"{agent}-1", "agent": agent, "tool": "run_command", "reason": "it writes"}  # fmt: skip
    request = {**base, "arguments": {"command": command}, "card": f"run_command\ncommand: {command}", "keep": "always", **fields}  # fmt: skip
    return ApprovalAsked(agent=f"{agent}-1", request=ApprovalRequest.model_validate(request))
