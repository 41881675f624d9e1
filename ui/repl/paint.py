"""Blocks as text for a terminal, drawn by rich at a given width: markdown for answers, one calm line for everything else."""

import io
import re
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from .feed import Block

MARGIN = 2
_PADDING = re.compile(r" +\n")
NOTE_ROWS = 2
YOU_LINES = 12  # of a long message, when it is shown again
CALM = {"note": "dim", "agent": "cyan", "todo": "", "warn": "yellow"}  # the style of a line, by kind
MARKS = {"note": "·", "agent": "◆", "warn": "!", "todo": " "}


class Painter:
    """``paint`` gives the text of a block, whole lines. ``plain``: no control codes at all, markdown as it was written."""

    def __init__(self, *, plain: bool, unicode: bool = True) -> None:
        self._plain, self._unicode = plain, unicode

    def paint(self, blocks: list[Block], width: int) -> str:
        """Everything in ``blocks``, ending with a line break; empty for none."""
        file = io.StringIO()
        console = Console(
            file=file,
            width=max(width, 8),
            force_terminal=not self._plain,
            no_color=self._plain or None,
            color_system=None if self._plain else "auto",
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        for block in blocks:
            console.print(self._drawn(block))
        text = _PADDING.sub("\n", file.getvalue())
        return text if self._unicode else text.translate(ASCII).encode("ascii", "backslashreplace").decode()

    def _drawn(self, block: Block) -> RenderableType:
        if block.kind in ("answer", "plan"):
            return self._answer(block)
        return DRAWN.get(block.kind, _line)(block)

    def _answer(self, block: Block) -> RenderableType:
        if self._plain:
            return Padding(Text(block.text.strip("\n")), (1, MARGIN, 0, MARGIN))
        from .markdown import Answer

        return Padding(Answer(block.text), (1, MARGIN, 0, MARGIN))


ASCII = str.maketrans({"›": ">", "●": "*", "·": "-", "◆": "+", "─": "-", "✗": "x", "✓": "v", "…": "~", "│": "|", "☐": "o", "☑": "x", "▸": ">", "→": ">", "↑": "^", "↓": "v", "•": "*", "■": "#", "×": "x"})  # fmt: skip


class _Hanging:
    """Text behind a prefix; its further lines are indented by the prefix's width. ``lines``: at most so many, 0 = all."""

    def __init__(self, prefix: Text, body: Text, *, lines: int = 0, above: bool = False) -> None:
        self.prefix, self.body, self.lines, self.above = prefix, body, lines, above

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - self.prefix.cell_len, 4)
        rows = list(self.body.wrap(console, room))
        if self.lines and len(rows) > self.lines:
            rows = rows[: self.lines]
            rows[-1].append("…")
            rows[-1].truncate(room, overflow="ellipsis")
        if self.above:
            yield Text("")
        for number, row in enumerate(rows):
            row.rstrip()
            yield Text.assemble(self.prefix if number == 0 else " " * self.prefix.cell_len, row)


def _tool(block: Block) -> RenderableType:
    """The call in one row, what came of it behind it or, where there is no room, below it."""
    mark, style = ("●", "green") if block.ok else ("✗", "red")
    prefix = Text("  " * block.depth + f"{mark} ", style)
    title, note = Text(block.text, "" if block.ok else "red"), Text(block.note, "dim" if block.ok else "red")
    return _Call(prefix, title, note)


class _Call:
    """``NOTE_ROWS`` rows of what came of it at most."""

    def __init__(self, prefix: Text, title: Text, note: Text) -> None:
        self.prefix, self.title, self.note = prefix, title, note

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - self.prefix.cell_len, 4)
        if self.title.cell_len + self.note.cell_len + 2 <= room:
            yield Text.assemble(self.prefix, self.title, "  ", self.note)
            return
        self.title.truncate(room, overflow="ellipsis")
        yield Text.assemble(self.prefix, self.title)
        if not self.note:
            return
        yield from _Hanging(Text(" " * self.prefix.cell_len), self.note, lines=NOTE_ROWS).__rich_console__(
            console, options
        )


def _line(block: Block) -> RenderableType:
    style = CALM[block.kind] if block.ok else "red"
    body = Text(block.text, style)
    body.append(f"  {block.note}" if block.note else "", "dim")
    return _Hanging(Text("  " * block.depth + f"{MARKS[block.kind]} ", style), body)


def _text(block: Block) -> RenderableType:
    body = Text(block.text)
    body.append(f"\n{block.note}" if block.note else "", "dim")
    return _Hanging(Text("  "), body)


def _you(block: Block) -> RenderableType:
    lines = block.text.split("\n")
    text = Text("\n".join(lines[:YOU_LINES]), "bold")
    if len(lines) > YOU_LINES:
        text.append(f"\n… {len(lines) - YOU_LINES:,} more lines", "dim")
    if block.note:
        text.append(f"  ({block.note})", "dim")
    return _Hanging(Text("› ", "bold cyan"), text, above=True)


def _output(block: Block) -> RenderableType:
    text = Text(style="dim" if block.ok else "")
    if block.note:
        text.append(f"… {block.note}\n")
    text.append(block.text)
    text.no_wrap = True
    text.overflow = "ellipsis"
    return Padding(text, (0, 0, 0, 4))


def _end(block: Block) -> RenderableType:
    if block.text == "done":
        return _Hanging(Text("  ", "dim"), Text(block.note, "dim"), above=True)
    style = "yellow" if block.ok else "red"
    body = Text(block.text, style)
    body.append(f"  {block.note}", "dim")
    return _Hanging(Text("■ ", style), body, above=True)


DRAWN: dict[str, Callable[[Block], RenderableType]] = {
    "you": _you,
    "tool": _tool,
    "output": _output,
    "card": _text,
    "text": _text,
    "end": _end,
}
