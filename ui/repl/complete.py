"""Completion while typing: slash commands at the start of a line, files of the project after ``@`` (TUI-03)."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ...policy.visible import visible
from .ports import Conversation

_COMMAND = re.compile(r"/\S*\Z")
_FILE = re.compile(r"(?:^|(?<=\s))@(\S*)\Z")


def wanted(text: str) -> bool:
    """Whether the text before the cursor ends in something that is completed while it is typed."""
    return bool(_COMMAND.match(text) or _FILE.search(text))


class LineCompleter(Completer):
    """``get_completions`` may block for some milliseconds: use it in a thread."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Commands by prefix, else by any part of the name; files as the conversation finds them."""
        del complete_event
        text = document.text_before_cursor
        if _COMMAND.match(text):
            yield from self._commands(text[1:])
        elif found := _FILE.search(text):
            for path in self._conversation.files(found[1]):
                yield Completion(f"@{path}", -len(found[0]), display=visible(path))

    def _commands(self, typed: str) -> Iterable[Completion]:
        commands = self._conversation.commands()
        first = [one for one in commands if one.name.startswith(typed)]
        rest = [one for one in commands if typed in one.name and one not in first]
        for one in (*first, *rest):
            told = visible(f"{one.summary} {one.usage}".rstrip())
            name = visible(f"/{one.name}")
            yield Completion(f"/{one.name}", -len(typed) - 1, display=name, display_meta=told)
