"""The line REPL where the cursor cannot be moved (TERM=dumb, CI): whole lines in, whole lines out, no animation (U11)."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Generator
from typing import TextIO

from ...core.errors import OpenDevError
from ...core.events import Event
from ...core.ops import Interrupt, Op
from ...policy.grants import PLAN
from ...policy.visible import visible
from .dialogs import Answer, ApprovalDialog, Dialog, QuestionDialog, Waiting
from .feed import Block, Feed
from .paint import Painter
from .ports import CommandResult, Conversation
from .state import Key, State, Stop, stop
from .terminal import size_of

STDIN = 0
CHUNK = 65_536
LINE_MAX = 1_000_000  # bytes; a longer line is cut there


async def talk_plainly(conversation: Conversation, out: TextIO, *, unicode: bool) -> None:
    """Until the user leaves: ``/exit``, the end of the input, or Ctrl-C twice."""
    repl = _Plain(conversation, out, Painter(plain=True, unicode=unicode))
    reading = asyncio.create_task(repl.read())
    try:
        with _lines(repl.line), _interrupts(lambda: repl.stop(Key.CTRL_C)):
            repl.prompt()
            await repl.left.wait()
    finally:
        reading.cancel()
        await asyncio.wait({reading, *repl.tasks})


class _Plain:
    def __init__(self, conversation: Conversation, out: TextIO, painter: Painter) -> None:
        self._conversation, self._out, self._painter = conversation, out, painter
        self._feed, self._waiting = Feed(), Waiting()
        self._stopping = self._warned = False
        self._order = asyncio.Lock()  # lines are taken one after the other
        self.left = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    async def read(self) -> None:
        """Print what happens."""
        async for event in self._conversation.events():
            self._take(event)

    def line(self, line: str | None) -> None:
        """One line that was typed; None at the end of the input."""
        self._warned = False
        dialog = self._waiting.first
        if line is None:
            self.left.set()
        elif dialog is None:
            self._spawn(self._submit(line))
        elif dialog.entry is not None:
            self._answered(dialog, dialog.write(line))
        else:
            self._answered(dialog, dialog.press(line.strip() or "enter"))

    def stop(self, key: Key) -> None:
        """Ctrl-C."""
        dialog = self._waiting.first
        busy = self._conversation.status().busy
        what = stop(
            State(question=dialog is not None, busy=busy, stopping=self._stopping, warned=self._warned), key
        )
        self._warned = what is Stop.WARN
        match what:
            case Stop.CANCEL_QUESTION if dialog is not None:
                self._answered(dialog, dialog.back())
            case Stop.INTERRUPT:
                self._stopping = True
                self._spawn(self._act(Interrupt()))
            case Stop.WARN:
                self._show(Block("note", "Press Ctrl-C again to leave."))
            case Stop.LEAVE:
                self.left.set()
            case _:
                pass

    def prompt(self) -> None:
        """What is waited for."""
        dialog = self._waiting.first
        if dialog is None:
            status = self._conversation.status()
            self._write(f"[{status.mode.value} {status.model} ${status.usage.cost_usd:.4f}] > ")
        elif dialog.entry is not None:
            start = f" (now: {visible(dialog.entry.start)})" if dialog.entry.start else ""
            self._write(f"{dialog.problem or dialog.entry.label}{start}: ")
        else:
            self._write(f"{dialog.problem or 'answer'} ({' '.join(row.key for row in dialog.rows)}): ")

    def _take(self, event: Event) -> None:
        if event.kind in ("run_started", "run_finished"):
            self._stopping = False
        self._show(*self._feed.take(event))
        if self._waiting.take(event, self._feed.name_of):
            self._ask()
        elif event.kind == "run_finished":
            self.prompt()

    def _ask(self) -> None:
        dialog = self._waiting.first
        if dialog is None:
            return
        if isinstance(dialog, ApprovalDialog) and dialog.request.tool == PLAN:
            self._show(Block("plan", visible(dialog.request.card)))
        ticks = {None: "", True: "[x] ", False: "[ ] "}
        rows = (f"{ticks[row.on]}{row.key}  {row.label}" + (f": {row.meaning}" if row.meaning else "") for row in dialog.rows)  # fmt: skip
        self._show(Block("card", "\n".join((*dialog.card, *rows))))
        self.prompt()

    def _answered(self, dialog: Dialog, after: Dialog | Answer) -> None:
        if isinstance(after, ApprovalDialog | QuestionDialog):
            self._waiting.change(after)
            if after.entry is None:
                self._ask()
                return
        else:
            self._waiting.drop(dialog.id)
            self._spawn(self._act(after))
            self._ask()
            return
        self.prompt()

    async def _act(self, op: Op) -> None:
        try:
            await self._conversation.act(op)
        except OpenDevError as error:
            self._show(Block("warn", visible(error.info.sentence())))

    async def _submit(self, line: str) -> None:
        async with self._order:
            try:
                result = await self._conversation.submit(line)
            except OpenDevError as error:
                result = CommandResult(success=False, message=error.info.sentence())
        if result.message:
            self._show(
                Block("text" if result.success else "warn", visible(result.message), ok=result.success)
            )
        if result.leave:
            self.left.set()
        elif not self._conversation.status().busy:
            self.prompt()

    def _show(self, *blocks: Block) -> None:
        self._write(self._painter.paint(list(blocks), size_of(self._out).columns))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


@contextlib.contextmanager
def _lines(take: Callable[[str | None], None]) -> Generator[None]:
    """Hand every line of standard input to ``take`` as it comes."""
    loop, rest = asyncio.get_running_loop(), bytearray()

    def read() -> None:
        data = os.read(STDIN, CHUNK)
        if not data:
            loop.remove_reader(STDIN)
            take(None)
            return
        rest.extend(data)
        while (at := rest.find(b"\n")) >= 0 or len(rest) > LINE_MAX:
            end = at if at >= 0 else LINE_MAX
            line = bytes(rest[:end]).decode("utf-8", "replace")
            del rest[: end + 1]
            take(line)

    loop.add_reader(STDIN, read)
    try:
        yield
    finally:
        loop.remove_reader(STDIN)


@contextlib.contextmanager
def _interrupts(act: Callable[[], None]) -> Generator[None]:
    """Ctrl-C calls ``act`` meanwhile."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, act)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
