"""The conversation: lines in, events out. Text goes to the query processor, a line that begins with a slash to its handler (REPL-01)."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

from ...core.agent import AgentReport, AgentStatus
from ...core.approval import Mode
from ...core.chat import Role
from ...core.errors import ErrorInfo, ErrorKind, OpenDevError
from ...core.events import Event, Notice, RunFinished, RunStarted
from ...core.exits import Exit
from ...core.ops import COMPACT, Interrupt, Op, Prompt
from ...ui.repl.ports import Command, CommandResult, Status
from ..task import PromptOptions
from .fan import Fan
from .managers import ApprovalManager, ConfigManager, ModeManager, SessionManager
from .room import Room, for_turn

WAITING_MAX = 100  # prompts that wait for the agent to end
FILES_MAX = 50


class Controller:
    """Implements ``ui.repl.ports.Conversation``. One turn at a time; what comes meanwhile is injected or waits for its own turn."""

    def __init__(
        self, config: ConfigManager, sessions: SessionManager, options: PromptOptions, fan: Fan
    ) -> None:
        self.config, self.sessions, self.options = config, sessions, options
        self.modes = ModeManager(options.mode, sessions.held.mode())
        self.approvals = ApprovalManager(config)
        self._fan = fan
        self.room = self._new_room()
        self._waiting: deque[str] = deque(maxlen=WAITING_MAX)
        self._turn: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._interrupted = False
        self._dispatcher = Dispatcher(self)

    # --- the port ---

    async def submit(self, text: str) -> CommandResult:
        """See the port."""
        if not text.strip():
            return CommandResult(success=True)
        if (command := self._dispatcher.parse(text)) is not None:
            result = await self._dispatcher.run(command)
            if result.prompt:
                self.prompt(result.prompt)
            return result
        return self.prompt(text)
