"""The base of the command handlers: one class a subject, the REPL injected, arguments split once more for sub-commands (REPL-02)."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from typing import ClassVar, Protocol

from ...core.errors import ErrorKind, OpenDevError
from ...ui.repl.ports import Command, CommandResult
from ..task import PromptOptions
from .managers import ApprovalManager, ConfigManager, ModeManager, SessionManager
from .room import Room
from .turns import Turns

Run = (
    Callable[[str], Awaitable[CommandResult]] | Callable[[str], CommandResult]
)  # one that blocks runs in a thread


class Repl(Protocol):
    """What handlers work on: the managers, the present session and its turns."""

    config: ConfigManager
    sessions: SessionManager
    modes: ModeManager
    approvals: ApprovalManager
    options: PromptOptions
    room: Room
    turns: Turns

    async def switch(self, resume: str | None) -> None:
        """Work in a new session, or in one of the project's."""
        ...

    def commands(self) -> tuple[Command, ...]:
        """Every slash command."""
        ...


class Handler(ABC):
    """The commands of one subject."""

    commands: ClassVar[tuple[Command, ...]]

    def __init__(self, repl: Repl) -> None:
        self.repl = repl

    @abstractmethod
    async def handle(self, args: str) -> CommandResult:
        """Run one command; ``args`` begins with its name. Raises ``OpenDevError``, which becomes a failed result."""


def split(args: str) -> tuple[str, str]:
    """The first word and the rest."""
    word, *rest = args.split(maxsplit=1)[:2] or [""]
    return word, rest[0].strip() if rest else ""


async def choose(args: str, ways: Mapping[str, Run], default: str = "") -> CommandResult:
    """Run the sub-command that the first word names. Raises ``OpenDevError`` (usage) when there is none of that name."""
    word, rest = split(args)
    way = ways.get(word or default)
    if way is None:
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no sub-command `{word}`.", f"Known: {', '.join(ways)}."
        )
    return await run(way, rest)


async def run(way: Run, args: str) -> CommandResult:
    """Run a way of a command, in a thread unless it is a coroutine."""
    result = way(args) if iscoroutinefunction(way) else await asyncio.to_thread(way, args)
    return result if isinstance(result, CommandResult) else await result


def need(args: str, what: str) -> str:
    """The argument, which must be there. Raises ``OpenDevError`` (usage)."""
    if not args:
        raise OpenDevError(ErrorKind.USAGE, f"Say {what}.")
    return args


def told(message: str, **data: object) -> CommandResult:
    """A command that did what it was asked."""
    return CommandResult(success=True, message=message.rstrip(), data=data)
