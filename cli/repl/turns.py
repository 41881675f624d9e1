"""The query processor: one turn at a time; what is typed meanwhile is injected, or waits for a turn of its own (TUI-07, LOOP-19)."""

import asyncio
from collections import deque
from dataclasses import replace

from ...actors.hub import Hub
from ...core.agent import AgentReport, AgentStatus, AgentTask
from ...core.errors import ErrorInfo, ErrorKind, OpenDevError
from ...core.events import Notice, RunFinished, RunStarted
from ...core.ops import COMPACT, Interrupt, Prompt
from ...ui.repl.ports import CommandResult
from ..border import border
from ..task import PromptOptions, exit_of_report
from .managers import ModeManager
from .recall import unread
from .room import Room

WAITING_MAX = 100
_SHOWN = 80  # characters of a message


class Turns:
    """Of one room. ``on_end`` is called after each turn, when nothing waits."""

    def __init__(self, room: Room, modes: ModeManager, options: PromptOptions) -> None:
        self._room, self._modes, self._options = room, modes, options
        room.late = self.later
        self._waiting: deque[str] = deque()
        self._typed: deque[str] = deque()
        self._turn: asyncio.Task[None] | None = None
        self._sender: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[tuple[Hub, AgentTask]] | None = None  # until the hub has the agent
        self._closed = False
        self._injected: list[str] = []  # into the present turn

    @property
    def busy(self) -> bool:
        """Whether the main agent works, or is about to."""
        return self._turn is not None

    def prompt(self, text: str) -> CommandResult:
        """Start a turn; while one goes on, inject the text at its next boundary."""
        if self._closed:
            return CommandResult(success=False, message="The session is being closed.")
        if len(self._waiting) + len(self._typed) >= WAITING_MAX:
            return CommandResult(
                success=False, message=f"{WAITING_MAX} messages wait already; this one is not sent."
            )
        if not self.busy:
            self._begin(text)
            return CommandResult(success=True)
        self._typed.append(text)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return CommandResult(success=True, data={"queued": True})

    def later(self, text: str) -> None:
        """The agent ended just when the text came: it is a turn of its own, nothing is lost."""
        if self.busy or self._closed:
            self._waiting.append(text)
        else:
            self._begin(text)

    async def interrupt(self, op: Interrupt) -> None:
        """Stop what runs, also a turn that has not begun yet."""
        if self._preparing is not None and not op.agent_id:
            self._preparing.cancel()
        elif (hub := self._room.hub) is not None:
            await hub.submit(op)

    async def idle(self) -> None:
        """Wait until no turn goes on."""
        while self._turn is not None:
            await asyncio.wait({self._turn})
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop what runs; no turn begins any more."""
        self._closed = True
        await self.interrupt(Interrupt())
        if self._sender is not None:
            self._sender.cancel()
        await self.idle()

    def _begin(self, text: str) -> None:
        self._injected = []
        self._preparing = asyncio.create_task(self._prepare(text))
        self._turn = asyncio.create_task(self._work(text))
        self._turn.add_done_callback(self._over)

    def _over(self, _turn: asyncio.Task[None]) -> None:
        self._turn = None
        if self._waiting and not self._closed:
            self._begin(self._waiting.popleft())

    async def _send(self) -> None:
        """One after the other, in the order they were typed."""
        while self._typed:
            text, hub = self._typed.popleft(), self._room.hub
            if hub is None or not self.busy:
                self.later(text)
            else:
                self._injected.append(text)
                await hub.submit(Prompt(text=text))

    async def _work(self, text: str) -> None:
        room = self._room
        room.say(RunStarted(what="prompt", detail={"prompt": text, "root": str(room.root)}))
        try:
            with border():
                assert self._preparing is not None
                hub, task = await self._preparing
                self._preparing = None
                report = await room.run(hub, task)
                await self._after(text, report)
        except OpenDevError as error:
            report = self._unstarted(AgentStatus.FAILED, error.info)
        except asyncio.CancelledError:
            info = ErrorInfo(kind=ErrorKind.CANCELLED, message="Interrupted before the agent started.")
            report = self._unstarted(AgentStatus.CANCELLED, info)
        self._preparing = None
        if report.error is not None and not report.pid:  # no agent ran that would have told it
            room.say(Notice(level="error", text=report.error.sentence()))
        room.say(RunFinished(status=report.status, exit_code=exit_of_report(report)))

    async def _prepare(self, text: str) -> tuple[Hub, AgentTask]:
        """The hub and the task, which the mode wish is used up for. Raises ``OpenDevError``."""
        hub = await self._room.ready()
        return hub, await self._room.task(self._turn_options(text))

    def _turn_options(self, text: str) -> PromptOptions:
        mode = self._modes.shown if text == COMPACT else self._modes.take()
        return replace(self._options, prompt=text, mode=mode)

    async def _after(self, text: str, report: AgentReport) -> None:
        """An approved plan ended plan mode: the record knows. What was typed just before an interrupt is not lost, and it is told."""
        held, typed = self._room.held, self._injected
        if report.pid and text != COMPACT:
            self._modes.became(await asyncio.to_thread(held.mode))
        if report.status is AgentStatus.CANCELLED and typed:
            said = [line for line in await asyncio.to_thread(unread, held) if line.startswith(tuple(typed))]
            if said:
                shown = " · ".join(line[:_SHOWN] for line in said)
                self._room.say(
                    Notice(level="info", text=f"Not read yet, kept for your next message: {shown}")
                )

    def _unstarted(self, status: AgentStatus, info: ErrorInfo) -> AgentReport:
        return AgentReport(id=self._room.figures.main, agent=self._options.agent, status=status, error=info)
