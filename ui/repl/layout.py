"""The few rows at the bottom of the terminal: what moves, the input line, completions, the figures. Built of prompt_toolkit."""

from collections.abc import Callable
from typing import Any, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.filters import Condition, has_completions, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from .complete import wanted
from .live import Fragment, Rows

INPUT_ROWS, MENU_ROWS = 8, 6
ESCAPE_S, COMBINATION_S = (
    0.12,
    0.05,
)  # how long a lone Esc waits for the rest of a sequence, and for the other key of Alt
STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "plan": "ansiyellow",
        "work": "ansicyan",
        "question": "bold ansiyellow",
        "marked": "bold ansicyan",
        "warn": "ansired",
        "hint": "ansiyellow",
        "dim": "dim",
        "toolbar": "dim",
        "completion-menu": "bg:default",
        "completion-menu.completion": "bg:default",
        "completion-menu.completion.current": "noreverse bold ansicyan bg:default",
        "completion-menu.meta.completion": "dim bg:default",
        "completion-menu.meta.completion.current": "bg:default",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:default",
    }
)


class Shown(Protocol):
    """What is drawn, asked anew for every picture."""

    def rows(self) -> Rows:
        """Above the input."""
        ...

    def figures(self) -> list[Fragment]:
        """The line below it."""
        ...

    def label(self) -> str | None:
        """Before the answer line; None while there is none."""
        ...

    @property
    def menu(self) -> bool:
        """Keys go to the menu."""
        ...


class Bottom:
    """The application and its two input lines: ``draft`` for prompts, ``answer`` for what a question wants typed."""

    def __init__(
        self, shown: Shown, *, completer: Completer, keys: KeyBindings, input: Input, output: Output
    ) -> None:
        self._shown = shown
        self.history = InMemoryHistory()
        self.draft = Buffer(
            completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: wanted(self.draft.document.text_before_cursor)),
            history=self.history,
            multiline=True,
            name="draft",
        )
        self.answer = Buffer(multiline=True, name="answer")
        self._live = Window(
            FormattedTextControl(lambda: _joined(shown.rows()), focusable=True, show_cursor=False),
            dont_extend_height=True,
            always_hide_cursor=True,
        )
        self._draft_line = self._line(self.draft, lambda: "› ")
        self._answer_line = self._line(self.answer, lambda: f"{shown.label() or ''} › ")
        self.app: Application[None] = Application(
            layout=Layout(self._body(), focused_element=self._draft_line),
            key_bindings=keys,
            style=STYLE,
            input=input,
            output=output,
            erase_when_done=True,
            mouse_support=False,
        )
        self.app.ttimeoutlen, self.app.timeoutlen = ESCAPE_S, COMBINATION_S

    def focus(self) -> None:
        """Give the keys to what is asked for now."""
        wanted_line: Any = self._draft_line if self._shown.label() is None else self._answer_line
        self.app.layout.focus(self._live if self._shown.menu else wanted_line)

    def _body(self) -> HSplit:
        live = Condition(lambda: bool(self.app.output.get_size().rows > 4))
        drafting = Condition(
            lambda: self._shown.label() is None and (not self._shown.menu or bool(self.draft.text))
        )
        return HSplit(
            [
                ConditionalContainer(self._live, live),
                ConditionalContainer(self._draft_line, drafting),
                ConditionalContainer(self._answer_line, Condition(lambda: self._shown.label() is not None)),
                ConditionalContainer(
                    Window(
                        CompletionsMenuControl(),
                        height=Dimension(min=1, max=MENU_ROWS),
                        dont_extend_height=True,
                        dont_extend_width=True,
                        style="class:completion-menu",
                    ),
                    has_completions & ~is_done,
                ),
                Window(
                    FormattedTextControl(lambda: [*self._shown.figures()]),
                    height=1,
                    style="class:toolbar",
                    dont_extend_height=True,
                ),
            ]
        )

    def _line(self, buffer: Buffer, label: Callable[[], str]) -> Window:
        def prefix(number: int, wrapped: int) -> StyleAndTextTuples:
            return [("class:prompt", label())] if number == 0 and wrapped == 0 else [("", "  ")]

        return Window(
            BufferControl(buffer),
            get_line_prefix=prefix,
            wrap_lines=True,
            height=Dimension(min=1, max=INPUT_ROWS),
            dont_extend_height=True,
        )


def _joined(rows: Rows) -> StyleAndTextTuples:
    found: StyleAndTextTuples = []
    for number, row in enumerate(rows):
        found.extend([("", "\n")] if number else [])
        found.extend(row)
    return found
