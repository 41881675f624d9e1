"""Markdown of a model for the terminal: nothing of it is swallowed, no link hides where it leads, headings stay quiet."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

# HTML is text here: `List<String>` must not vanish. Pictures have no place in a terminal; their address stays readable.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table").disable("image")


class _Heading(Heading):
    """Left, bold, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        text: Text = self.text
        text.justify = "left"
        text.stylize("bold")
        yield text


class _Table(TableElement):
    """Without empty lines above and below."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class _Code(CodeBlock):
    """Indented, without a frame and empty lines around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        code = str(self.text).rstrip()
        yield Padding(Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True), (0, 0, 0, 2))


class Answer(Markdown):
    """One block of an answer."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "table_open": _Table,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = text
        self.parsed = _PARSER.parse(text)
