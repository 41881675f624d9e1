"""Slash commands: which line is one, which handler runs it, and what is said when there is none of that name (REPL-01)."""

import difflib
import time
from pathlib import Path

from ...core.errors import OpenDevError
from ...ui.repl.ports import Command, CommandResult
from ..border import border
from .base import Handler, Repl, split
from .commands.agents import AgentsHandler
from .commands.config import ConfigHandler
from .commands.help import HelpHandler
from .commands.mcp import McpHandler
from .commands.mode import ModeHandler
from .commands.plugins import PluginsHandler
from .commands.session import SessionHandler
from .commands.skills import SkillsHandler
from .commands.tools import ToolsHandler
from .custom import CustomCommands

HANDLERS: tuple[type[Handler], ...] = (
    SessionHandler,
    ModeHandler,
    ConfigHandler,
    McpHandler,
    AgentsHandler,
    SkillsHandler,
    PluginsHandler,
    ToolsHandler,
    HelpHandler,
)
_NEAR = 3
FRESH_S = 2.0


class Dispatcher:
    """No command passes a model, a hook or an approval on its own, nor is it undone; what it asks an agent to do does."""

    def __init__(self, repl: Repl) -> None:
        self._repl = repl
        handlers = tuple(kind(repl) for kind in HANDLERS)
        self._handlers = {command.name: handler for handler in handlers for command in handler.commands}
        self._listed: tuple[Command, ...] = ()
        self._until = 0.0
        self._built = tuple(command for handler in handlers for command in handler.commands)

    def commands(self) -> tuple[Command, ...]:
        """All of them, the user's own too, by name; files are looked at again every other second: it is asked for at each key."""
        now = time.monotonic()
        if now >= self._until:
            own = self._custom().commands
            self._listed = tuple(sorted((*self._built, *own), key=lambda command: command.name))
            self._until = now + FRESH_S
        return self._listed

    def is_command(self, text: str) -> bool:
        """Whether the line is for a handler: it begins with a slash and no path of this machine is meant.

        A known name always is; else ``/etc/hosts is …`` and ``//…`` are text for the agent.
        """
        word = split(text[1:])[0]
        return word in self._handlers or not ("/" in word or (word and Path(f"/{word}").exists()))

    async def run(self, line: str) -> CommandResult:
        """Run one line. Whatever fails is a result with a sentence."""
        name, args = split(line[1:])
        try:
            with border():
                if handler := self._handlers.get(name or "help"):
                    return await handler.handle(f"{name or 'help'} {args}")
                custom = self._custom()
                if (prompt := custom.prompt(name, args)) is not None:
                    return CommandResult(success=True, prompt=prompt)
                return CommandResult(success=False, message=self._unknown(name, custom))
        except OpenDevError as error:
            return CommandResult(success=False, message=error.info.sentence())

    def _custom(self) -> CustomCommands:
        project = self._repl.config.project
        return CustomCommands(project.layout.home, project.path, frozenset(self._handlers))

    def _unknown(self, name: str, custom: CustomCommands) -> str:
        if why := custom.refused(name):
            return why
        names = [command.name for command in (*self._built, *custom.commands)]
        near = difflib.get_close_matches(name, names, n=_NEAR, cutoff=0.5)
        meant = f" Did you mean {' or '.join(f'/{one}' for one in near)}?" if near else ""
        return f"There is no command /{name}.{meant} /help lists them."
