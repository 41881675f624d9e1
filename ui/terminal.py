"""The terminal: a live view of a batch, and plain lines where there is no terminal, NO_COLOR or CI, or for one prompt."""

from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..core.events import Event
from ..core.ticket import SwarmPlan
from .board import Board
from .lines import line_of

REFRESH_HZ = 8
ONE_AGENT = frozenset(
    {"assistant_text", "tool_started", "tool_finished", "compacted"}
)  # noise among many agents


class PromptLines:
    """Prints what an agent does, a line an event. Plain text: no mark-up of a model or a tool is obeyed."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False, soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """Print the event's line, if it has one."""
        text = line_of(event)
        if text is not None:
            self._console.print(Text(text, style="bold red" if text.startswith(("!", "error")) else ""))


class SwarmView:
    """The view of a batch: redrawn in place on a terminal, lines elsewhere. Use with ``with``; the terminal is put back."""

    def __init__(self, stream: TextIO, plan: SwarmPlan | None, *, live: bool | None = None) -> None:
        """``live`` None: as the stream says (a terminal that can move its cursor)."""
        self._board = Board(plan)
        self._console = Console(file=stream, highlight=False)
        wanted = self._console.is_terminal and not self._console.is_dumb_terminal
        self._lines = PromptLines(stream)
        self._live: Live | None = None
        if wanted if live is None else live:
            self._live = Live(
                console=self._console,
                get_renderable=self._board.draw,
                refresh_per_second=REFRESH_HZ,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def __enter__(self) -> "SwarmView":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._board.take(event)
        if self._live is None and event.kind not in ONE_AGENT:
            self._lines(event)
