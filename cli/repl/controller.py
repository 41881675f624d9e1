"""The conversation: lines in, events out. Text goes to the query processor, a line that begins with a slash to its handler (REPL-01)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.approval import Mode
from ...core.chat import Role
from ...core.errors import ErrorKind, OpenDevError
from ...core.events import Event, Notice
from ...core.ops import Interrupt, Op, Prompt
from ...ui.repl.ports import Command, CommandResult, Status
from ..border import border
from ..task import PromptOptions, check_options
from .fan import Fan
from .managers import ApprovalManager, ConfigManager, ModeManager, SessionManager
from .mentions import ProjectFiles
from .recall import recalled
from .room import Room
from .turns import Turns

if TYPE_CHECKING:
    from .dispatch import Dispatcher


class Controller:
    """Implements ``ui.repl.ports.Conversation``; to the command handlers it is the REPL they work on (REPL-02)."""

    def __init__(self, config: ConfigManager, sessions: SessionManager, options: PromptOptions) -> None:
        self.config, self.sessions, self.options = config, sessions, options
        self.modes = ModeManager(options.mode, sessions.held.mode())
        self.approvals = ApprovalManager(config)
        self._fan = Fan()
        self._files = ProjectFiles(config.project.path)
        self._opening: asyncio.Task[None] | None = None
        self.room, self.turns = self._enter()

    @cached_property
    def _dispatcher(self) -> "Dispatcher":
        from .dispatch import (
            Dispatcher,  # a quarter of a second with all it needs: the prompt is there before
        )

        return Dispatcher(self)

    async def submit(self, text: str) -> CommandResult:
        """See the port."""
        if not text.strip():
            return CommandResult(success=True)
        if not (text.startswith("/") and self._dispatcher.is_command(text)):
            return self.turns.prompt(text)
        result = await self._dispatcher.run(text)
        if not result.prompt:
            return result
        sent = self.turns.prompt(result.prompt)
        return result if sent.success else sent

    async def act(self, op: Op) -> None:
        """See the port."""
        match op:
            case Prompt(text=text):
                await self.submit(text)
            case Interrupt():
                await self.turns.interrupt(op)
            case _ if self.room.hub is not None:
                await self.room.hub.submit(op)
            case _:
                raise OpenDevError(ErrorKind.USAGE, "Nothing is asked: the session is not open.")

    def events(self) -> AsyncIterator[Event]:
        """See the port."""
        return self._fan.subscribe()

    def status(self) -> Status:
        """See the port."""
        figures = self.room.figures
        return Status(
            session_id=self.room.held.id,
            mode=self.modes.shown,
            model=self.config.project.config.models().get(Role.ACTION, ""),
            usage=figures.usage,
            context=figures.context,
            busy=self.turns.busy,
            agents=tuple(figures.agents.values()),
            tasks=len(figures.running),
        )

    def commands(self) -> tuple[Command, ...]:
        """See the port."""
        return self._dispatcher.commands()

    def files(self, prefix: str) -> tuple[str, ...]:
        """See the port."""
        return self._files.matching(prefix)

    def toggle_mode(self) -> Mode:
        """See the port."""
        return self.modes.toggle()

    def say(self, text: str) -> None:
        """Tell the person something beside a command's own message."""
        self.room.say(Notice(level="info", text=text))

    async def switch(self, resume: str | None) -> None:
        """Leave this session and work in a new one (None) or one of the project's.

        Raises:
            OpenDevError: usage while the agent works, or when the session cannot be had; then nothing has changed.
        """
        if self.turns.busy:
            raise OpenDevError(
                ErrorKind.USAGE, "The agent works.", "Interrupt it first, or wait until it is done."
            )
        taken = self.sessions.take(resume)
        await self._leave()
        self.sessions.switch(taken)
        self.modes = ModeManager(None, self.sessions.held.mode())
        self.room, self.turns = self._enter()
        self.open()

    def open(self) -> None:
        """Start the hub behind the prompt; a failure is told, and the next prompt tries again."""
        self._opening = asyncio.create_task(self._open(self.room))

    async def close(self) -> None:
        """End everything that was started; the costs are saved. Idempotent."""
        await self._leave()
        self.sessions.close()
        self._fan.close()

    async def _leave(self) -> None:
        await self.turns.close()
        if self._opening is not None:
            await asyncio.wait({self._opening})
        await self.room.close()

    def _enter(self) -> tuple[Room, Turns]:
        room = Room(self.config, self.approvals, self.sessions.held, self.options, self._fan.put)
        return room, Turns(room, self.modes, self.options)

    async def _open(self, room: Room) -> None:
        try:
            with border():
                await room.ready()
        except OpenDevError as error:
            room.say(Notice(level="error", text=error.info.sentence()))


@contextlib.asynccontextmanager
async def converse(
    working_dir: Path | None, overrides: Mapping[str, Any], options: PromptOptions
) -> AsyncGenerator[Controller]:
    """A conversation, at once; its hub starts behind it. Everything it started is dead when the block is left.

    Raises:
        OpenDevError: usage or config: the project, the settings, the session or an option.
    """
    config = ConfigManager(working_dir, overrides)
    check_options(config.project, options)
    controller = Controller(config, SessionManager(config.project, options.resume), options)
    controller.open()
    if options.resume is not None:
        controller.say(await asyncio.to_thread(recalled, controller.sessions.held))
    try:
        yield controller
    finally:
        await controller.close()
