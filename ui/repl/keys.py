"""Which key does what: editing, menus, and the keys that stop something (``state.py`` decides what)."""

import re
from collections.abc import Callable
from typing import Protocol

import regex
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from .state import Key

MENU_KEYS = {"up": "up", "down": "down", "enter": "enter", "c-p": "up", "c-n": "down"}
EAGER = frozenset({"c-c", "c-d", "c-l", *MENU_KEYS})  # not the beginning of anything longer
_LAST = regex.compile(r"\X\Z")
_FIRST = regex.compile(r"\X")
_BREAKS = re.compile(r"\r\n?")


class Keyboard(Protocol):
    """What the keys act on."""

    @property
    def menu(self) -> bool:
        """A menu takes the keys."""
        ...

    def press(self, key: str) -> None:
        """A key of the menu: a name of ``MENU_KEYS`` or one character."""
        ...

    def stop(self, key: Key) -> None:
        """Esc, Ctrl-C or Ctrl-D."""
        ...

    def send(self, buffer: Buffer) -> None:
        """Enter: what is typed is sent."""
        ...

    def typed_into_menu(self, text: str) -> None:
        """Text that is no answer: it was pasted, or typed on when the menu appeared."""
        ...

    def toggle(self) -> None:
        """Shift-Tab."""
        ...

    def clear(self) -> None:
        """Ctrl-L."""
        ...


Act = Callable[[KeyPressEvent], None]


def bindings(board: Keyboard) -> KeyBindings:
    """All keys beside the editing keys that prompt_toolkit knows."""
    keys = KeyBindings()
    line, menu = Condition(lambda: not board.menu), Condition(lambda: board.menu)
    for table, when in ((_everywhere(board), Always()), (_menu(board), menu), (_editing(board), line)):
        for names, act in table:
            keys.add(*names, filter=when, eager=names[0] in EAGER)(act)
    return keys


def _everywhere(board: Keyboard) -> list[tuple[tuple[str, ...], Act]]:
    def esc(event: KeyPressEvent) -> None:
        if len(event.key_processor.key_buffer) <= 1:  # else it is the beginning of Alt and another key
            board.stop(Key.ESC)

    def ctrl_d(event: KeyPressEvent) -> None:
        if event.current_buffer.text and not board.menu:
            event.current_buffer.delete()
        else:
            board.stop(Key.CTRL_D)

    def suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    return [
        (("escape",), esc),
        (("escape", Keys.Any), _nothing),  # Alt and a key that means nothing here
        (("c-c",), lambda _: board.stop(Key.CTRL_C)),
        (("<sigint>",), lambda _: board.stop(Key.CTRL_C)),
        (("c-d",), ctrl_d),
        (("s-tab",), lambda _: board.toggle()),
        (("c-l",), lambda _: board.clear()),
        (("c-z",), suspend),
    ]


def _menu(board: Keyboard) -> list[tuple[tuple[str, ...], Act]]:
    def named(meaning: str) -> Act:
        return lambda _: board.press(meaning)

    def any_key(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            board.press(event.data)

    def paste(event: KeyPressEvent) -> None:
        board.typed_into_menu(_BREAKS.sub("\n", event.data))

    named_keys = [((name,), named(meaning)) for name, meaning in MENU_KEYS.items()]
    return [((Keys.Any,), any_key), ((Keys.BracketedPaste,), paste), *named_keys]


def _editing(board: Keyboard) -> list[tuple[tuple[str, ...], Act]]:
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # it stands in the line already
        elif _pasted(event):
            buffer.insert_text("\n")
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            board.send(buffer)

    return [
        (("enter",), enter),
        (("tab",), _tab),
        (("escape", "enter"), _new_line),
        (("c-j",), _new_line),
        (("backspace",), _backspace),
        (("left",), _left),
        (("right",), _right),
    ]


def _nothing(_event: KeyPressEvent) -> None:
    """The key is swallowed."""


def _new_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def _tab(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if buffer.complete_state is not None:
        buffer.complete_next()
    else:
        buffer.start_completion(select_first=True)


def _backspace(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if before := buffer.document.text_before_cursor:
        buffer.delete_before_cursor(_seen(_LAST, before[-64:]))


def _left(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if before := buffer.document.current_line_before_cursor:
        buffer.cursor_position -= _seen(_LAST, before[-64:])


def _right(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if after := buffer.document.current_line_after_cursor:
        buffer.cursor_position += _seen(_FIRST, after[:64])


def _seen(pattern: "regex.Pattern[str]", text: str) -> int:
    """The length of one character as it is seen: marks and joined pictures belong to it (U05)."""
    found = pattern.search(text)
    return len(found.group()) if found else 1


def _pasted(event: KeyPressEvent) -> bool:
    """Whether more text came in the same read: a paste of a terminal that does not mark pastes (U03)."""
    after = event.key_processor.input_queue
    return bool(after) and (len(after[0].key) == 1 or after[0].key in (Keys.ControlM, Keys.ControlJ))
