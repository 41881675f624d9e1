"""What a front end needs of the interactive conversation; ``cli/repl`` implements it, the screens only draw and ask (TUI-01)."""

from collections.abc import AsyncIterator
from typing import Protocol

from ...core.approval import Mode
from ...core.chat import Usage
from ...core.events import Event
from ...core.model import Frozen, JsonObject
from ...core.ops import Op


class CommandResult(Frozen):
    """What a slash command did (REPL-02). ``prompt`` is text for the agent; ``leave`` ends the session.

    ``data``: ``queued`` when text was injected or waits, ``clear`` when the screen is to be emptied first; else the command's own.
    """

    success: bool
    message: str = ""
    data: JsonObject = {}
    prompt: str = ""
    leave: bool = False


class Command(Frozen):
    """One slash command, for completion and ``/help``: its name without the slash, its arguments, one sentence."""

    name: str
    usage: str
    summary: str


class Status(Frozen):
    """The figures of the prompt line. ``context`` is the share of the model's window in use, 0 to 1."""

    session_id: str
    mode: Mode
    model: str
    usage: Usage
    context: float
    busy: bool  # the main agent works
    agents: tuple[str, ...] = ()  # sub-agents at work, by name
    tasks: int = 0  # background commands that run


class Conversation(Protocol):
    """One interactive session with the main agent. Every method may be called while the agent works."""

    async def submit(self, text: str) -> CommandResult:
        """Take a line: ``/name …`` runs a command (REPL-01), other text starts the agent, or is injected while it works.

        Returns at once for a prompt; the answer comes as events.
        """
        ...

    async def act(self, op: Op) -> None:
        """Interrupt, or answer an approval or a question. Raises ``OpenDevError`` (usage) for an answer that does not count."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Everything that happens, from now on, across commands that start a new session."""
        ...

    def status(self) -> Status:
        """The present figures; never blocks."""
        ...

    def commands(self) -> tuple[Command, ...]:
        """Every slash command, the user's own among them, by name."""
        ...

    def files(self, prefix: str) -> tuple[str, ...]:
        """Paths of the project that ``@prefix`` may mean, at most 50. May block for some milliseconds."""
        ...

    def toggle_mode(self) -> Mode:
        """Switch between normal and plan mode for the next prompt (REPL-05); returns the new mode."""
        ...
