"""The screen of the line REPL: events are printed above a prompt that stays usable, questions take its place until they are answered."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any, TextIO

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import Input, create_input

from ... import __version__
from ...core.errors import OpenDevError
from ...core.events import Event, RunFinished, RunStarted
from ...core.ops import Interrupt, Op
from ...policy.grants import PLAN
from ...policy.visible import visible
from ...store.typed import HistoryFile
from .complete import LineCompleter
from .dialogs import Answer, ApprovalDialog, Dialog, QuestionDialog, Waiting
from .feed import Block, Feed
from .keys import bindings
from .layout import Bottom
from .live import Fragment, Rows, View, above, card_fits, toolbar
from .plain import talk_plainly
from .ports import CommandResult, Conversation
from .printer import Printer
from .state import Key, State, Stop, stop
from .terminal import Abilities, size_of

TICK_S = 1.0
WARNED_S = 3.0
BOUNCE_S = 0.25  # a key held or pressed twice does not answer the next question
PAUSE_S = 0.7  # without a key, before a menu that appeared under typing hands takes answers
LINES_MAX = 100  # typed lines that wait for a command
KEPT_ROWS = 4  # for a line or two of input, the figures and a little air
HINTS = {
    Key.CTRL_C: "Press Ctrl-C again to leave.",
    Key.CTRL_D: "The agent is at work. Press Ctrl-D again to leave.",
}


async def talk(conversation: Conversation, *, history: Path, out: TextIO) -> None:
    """Draw the conversation on the terminal behind ``out``, take keys from standard input, return when the user leaves.

    The terminal is put back however it ends, also when the task is cancelled.
    """
    abilities = Abilities.of(out)
    if not abilities.moves:
        await talk_plainly(conversation, out, unicode=abilities.unicode)
        return
    screen = Screen(conversation, HistoryFile(history), out, create_input(), abilities)
    await screen.run()


class Screen:
    """Implements ``keys.Keyboard`` and ``layout.Shown``. One task reads events, one prints, one sends what was typed."""

    def __init__(
        self, conversation: Conversation, history: HistoryFile, out: TextIO, keys: Input, abilities: Abilities
    ) -> None:
        self._conversation, self._history, self._out = conversation, history, out
        self.feed, self.waiting = Feed(), Waiting()
        self.printer = Printer(out, abilities)
        self.show = self.printer.show
        self.lines: asyncio.Queue[str] = asyncio.Queue(LINES_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._began = 0.0
        self._stopping = False
        self._command = ""
        self._warned: tuple[Key, float] | None = None
        self._guarded_until = self._deaf_until = 0.0
        self._printed_card = ""
        self.bottom = Bottom(
            self,
            completer=LineCompleter(conversation),
            keys=bindings(self),
            input=keys,
            output=self.printer.terminal,
        )

    async def run(self) -> None:
        """Until the user leaves, or a task of the screen fails."""
        app = self.bottom.app
        self.show(
            Block(
                "text", f"OpenDev {__version__}", "/ commands · @ files · Alt-Enter new line · Ctrl-D leaves"
            )
        )
        for entry in await asyncio.to_thread(self._history.load):
            self.bottom.history.append_string(entry)
        async with self._working():
            await app.run_async(handle_sigint=False)
        self.printer.last()

    @contextlib.asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        events = self._conversation.events()  # from before the first key on
        for work in (self._read(events), self.printer.run(self.bottom.app), self._send(), self._tick()):
            self._spawn(work)
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    # --- what comes in ---

    async def _read(self, events: Any) -> None:
        async for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        now = asyncio.get_running_loop().time()
        if isinstance(event, RunStarted):
            self._began = now
        if isinstance(event, RunStarted | RunFinished):
            self._stopping = False
        before = self.waiting.first
        self.show(*self.feed.take(event))
        if self.waiting.take(event, self.feed.name_of):
            self._turned(before)
        self.printer.redraw(self.bottom.app)

    def _turned(self, before: Dialog | None) -> None:
        """Another question is the first one, or none is left."""
        now = asyncio.get_running_loop().time()
        if before is not None:
            self._deaf_until = now + BOUNCE_S
        elif self.bottom.draft.text:
            self._guarded_until = now + PAUSE_S
        self._print_plan()
        self._prepare()

    def _print_plan(self) -> None:
        dialog = self.waiting.first
        if isinstance(dialog, ApprovalDialog) and dialog.request.tool == PLAN:
            self.show(Block("plan", visible(dialog.request.card)))

    def _prepare(self, *, typed: bool = False) -> None:
        """Fit the screen to the dialog: its card in full, the keys to it, its line as it is (``typed``) or begins."""
        dialog = self.waiting.first
        if (
            dialog is not None
            and dialog.id != self._printed_card
            and not card_fits(dialog, self._width, self._height)
        ):
            self._printed_card = dialog.id
            told = (
                f"[{row.key}] {row.label}" + (f": {row.meaning}" if row.meaning else "")
                for row in dialog.rows
            )
            self.show(Block("card", "\n".join((*dialog.card, *told))))
        if not typed:
            self.bottom.answer.text = dialog.entry.start if dialog is not None and dialog.entry else ""
            self.bottom.answer.cursor_position = len(self.bottom.answer.text)
        self.bottom.focus()
        self.bottom.app.invalidate()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.bottom.app.invalidate()

    # --- keys (``keys.Keyboard``) ---

    @property
    def menu(self) -> bool:
        """A menu takes the keys."""
        dialog = self.waiting.first
        return dialog is not None and dialog.entry is None

    def press(self, key: str) -> None:
        """A key of the menu. Just after it appeared under typing hands, text goes on into the draft."""
        dialog, now = self.waiting.first, asyncio.get_running_loop().time()
        if dialog is None or now < self._deaf_until:
            return
        if now < self._guarded_until:
            self._guarded_until = now + PAUSE_S
            if len(key) == 1:
                self.bottom.draft.insert_text(key)
            return
        self._answered(dialog, dialog.press(key))

    def typed_into_menu(self, text: str) -> None:
        """A paste is no answer."""
        self.bottom.draft.insert_text(text)

    def send(self, buffer: Buffer) -> None:
        """Enter."""
        dialog, text = self.waiting.first, buffer.text
        if buffer is self.bottom.answer:
            if dialog is not None:
                self._answered(dialog, dialog.write(text))
            return
        if not text.strip():
            return
        if self.lines.full():
            return  # it stays in the input until the command that runs has ended
        buffer.reset(append_to_history=True)
        self.lines.put_nowait(text)

    def toggle(self) -> None:
        """Shift-Tab."""
        self._conversation.toggle_mode()
        self.bottom.app.invalidate()

    def clear(self) -> None:
        """Ctrl-L: an empty screen, and what waits for an answer again."""
        self.printer.write(self.bottom.app, "", clear=True)
        self._printed_card = ""
        self._print_plan()
        self._prepare()

    def stop(self, key: Key) -> None:
        """Esc, Ctrl-C, Ctrl-D."""
        now, draft = asyncio.get_running_loop().time(), self.bottom.draft
        state = State(
            question=self.waiting.first is not None,
            listing=draft.complete_state is not None,
            busy=self._conversation.status().busy,
            stopping=self._stopping,
            draft=bool(draft.text),
            warned=self._warned is not None and self._warned[0] is key and now - self._warned[1] < WARNED_S,
        )
        self._warned = None
        match stop(state, key):
            case Stop.CANCEL_QUESTION if (dialog := self.waiting.first) is not None:
                self._answered(dialog, dialog.back())
            case Stop.CLOSE_LIST:
                draft.cancel_completion()
            case Stop.INTERRUPT:
                self._stopping = True
                self._spawn(self._act(Interrupt()))
            case Stop.CLEAR:
                draft.reset()
            case Stop.WARN:
                self._warned = (key, now)
            case Stop.LEAVE:
                self._leave()
            case _:
                pass
        self.bottom.app.invalidate()

    # --- what goes to the conversation ---

    def _answered(self, dialog: Dialog, after: Dialog | Answer) -> None:
        """The dialog moved on, or is answered: then the next one is shown at once, and no second answer can be given."""
        if isinstance(after, ApprovalDialog | QuestionDialog):
            self.waiting.change(after)
        else:
            self.waiting.drop(dialog.id)
            self._spawn(self._act(after))
            self._turned(dialog)
            return
        self._prepare(typed=bool(after.problem))

    async def _act(self, op: Op) -> None:
        try:
            await self._conversation.act(op)
        except OpenDevError as error:  # answered elsewhere, or it ended meanwhile
            self.show(Block("warn", visible(error.info.sentence())))

    async def _send(self) -> None:
        while True:
            text = await self.lines.get()
            await asyncio.to_thread(self._history.add, text)
            await self._submit(text)

    async def _submit(self, text: str) -> None:
        is_command = text.startswith("/")
        if is_command:
            self.show(Block("you", visible(text)))
            self._command = text.split()[0]
        try:
            result = await self._conversation.submit(text)
        except OpenDevError as error:
            result = CommandResult(success=False, message=error.info.sentence())
        finally:
            self._command = ""
        if not is_command:
            told = "queued: the agent reads it at its next step" if result.data.get("queued") else ""
            self.show(Block("you", visible(text), told))
        self._tell(result)
        self.bottom.app.invalidate()

    def _tell(self, result: CommandResult) -> None:
        if result.data.get("clear"):
            self.feed.forget()
            self.printer.blocks.clear()
            self.printer.write(self.bottom.app, "", clear=True)
        if result.message:
            kind = "text" if result.success else "warn"
            self.show(Block(kind, visible(result.message), ok=result.success))
        if result.leave:
            self._leave()

    def _leave(self) -> None:
        if self.bottom.app.is_running and not self.bottom.app.is_done:
            self.bottom.app.exit()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A task of the screen; when one fails the screen ends, so that nobody sits before a dead prompt."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        if task.exception() is not None:
            self._leave()
        else:
            self._tasks.discard(task)

    # --- what is drawn (``layout.Shown``) ---

    @property
    def _width(self) -> int:
        return size_of(self._out).columns

    @property
    def _height(self) -> int:
        """Rows for what moves: the rest is for the input and the figures."""
        return max(size_of(self._out).rows - KEPT_ROWS, 3)

    def rows(self) -> Rows:
        """Above the input."""
        return above(self._view(), self._width, self._height)

    def figures(self) -> list[Fragment]:
        """Below it."""
        return toolbar(self._view(), self._width)

    def label(self) -> str | None:
        """Before the answer line; None while there is none."""
        dialog = self.waiting.first
        entry = dialog.entry if dialog is not None else None
        return entry.label if entry is not None else None

    def _view(self) -> View:
        now = asyncio.get_running_loop().time()
        warned = self._warned
        return View(
            feed=self.feed,
            status=self._conversation.status(),
            dialog=self.waiting.first,
            waiting=max(len(self.waiting.items) - 1, 0),
            seconds=now - self._began if self._began else 0.0,
            stopping=self._stopping,
            command=self._command,
            hint=HINTS[warned[0]] if warned is not None and now - warned[1] < WARNED_S else "",
            guarded=now < self._guarded_until,
        )
