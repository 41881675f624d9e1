"""Prints above the prompt: blocks are gathered for a moment, painted beside the keys, and written once (U01)."""

import asyncio
from typing import TextIO

from prompt_toolkit.application import Application

from .feed import Block
from .paint import Painter
from .terminal import Abilities, Terminal, size_of

PRINT_S = 0.06  # prints are gathered this long: few bytes, no flicker
BLOCKS_MAX = 2_000  # blocks that wait for the terminal


class Printer:
    """``terminal`` is what the application writes to as well."""

    def __init__(self, out: TextIO, abilities: Abilities) -> None:
        self.terminal = Terminal(out, abilities)
        self.blocks: list[Block] = []
        self._out = out
        self._painter = Painter(plain=not abilities.colour, unicode=abilities.unicode)
        self._news = asyncio.Event()
        self._picture: asyncio.TimerHandle | None = None

    def show(self, *blocks: Block) -> None:
        """Print above the prompt, soon."""
        self.blocks.extend(blocks)
        del self.blocks[:-BLOCKS_MAX]
        if blocks:
            self._news.set()

    async def run(self, app: Application[None]) -> None:
        """Print what comes, for as long as the application runs."""
        while True:
            await self._news.wait()
            if app.is_running:
                self._news.clear()
                width = size_of(self._out).columns
                self.write(app, await asyncio.to_thread(self._painter.paint, self._taken(), width))
            await asyncio.sleep(PRINT_S)

    def write(self, app: Application[None], text: str, *, clear: bool = False) -> None:
        """Put finished text where the rows at the bottom stand; they are drawn again below it."""
        app.renderer.erase(leave_alternate_screen=False)
        if clear:
            self.terminal.erase_screen()
            self.terminal.cursor_goto(0, 0)
        self.terminal.write_raw(text)
        self.terminal.flush()
        app.invalidate()

    def redraw(self, app: Application[None]) -> None:
        """Draw the rows at the bottom again, soon. Streams change often; a person sees some pictures a second."""

        def draw() -> None:
            self._picture = None
            app.invalidate()

        if self._picture is None:
            self._picture = asyncio.get_running_loop().call_later(2 * PRINT_S, draw)

    def last(self) -> None:
        """The application has ended: what still waits is written."""
        self._out.write(self._painter.paint(self._taken(), size_of(self._out).columns))
        self._out.flush()

    def _taken(self) -> list[Block]:
        blocks, self.blocks = self.blocks, []
        return blocks
