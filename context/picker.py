"""Puts every request together from six ordered sources, and makes it fit the window (RET-03, RET-04, RET-06, RET-09)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ..core.chat import (
    AssistantMessage,
    Message,
    MessageClass,
    SystemMessage,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from .mentions import REFERENCES_HEAD
from .pressure import CHARS_PER_TOKEN, estimate, message_tokens

OPENING_SHARE = 0.25  # of the window: quality begins to fall there, so an opening never takes more (RET-09)
_MAX_RESERVE_SHARE = 0.25
_NEWEST = 3  # messages at the end that are never touched
LEFT_OUT = "(left out to save room: read again what you still need)"


class Source(IntEnum):
    """Where a piece comes from, in the order of RET-03."""

    SYSTEM = 1  # the composed prompt with the selected playbook bullets
    RULES = 2  # of the project and of the user
    REFERENCES = 3  # files the user mentioned, the map of the repository
    HISTORY = 4
    REMINDERS = 5
    QUERY = 6


_PRIORITY = {  # the higher goes first when the budget is tight; 0 never goes
    Source.SYSTEM: 0,
    Source.QUERY: 0,
    Source.RULES: 10,
    Source.HISTORY: 20,
    Source.REFERENCES: 30,
    Source.REMINDERS: 40,
}


@dataclass(frozen=True, slots=True)
class ContextPiece:
    """One block of a request: its source, how soon it goes when the budget is tight (0 = never), its cost in tokens.

    ``index`` is its place among the messages of the request; -1 for a part of the system message.
    """

    source: Source
    priority: int
    tokens: int
    index: int = -1


class ContextPicker:
    """Assembles the requests of one run. ``limit`` is the model's window in tokens, 0 = it has none; ``reserve`` is for the answer."""

    def __init__(self, limit: int, reserve: int) -> None:
        self._room = limit - min(reserve, int(limit * _MAX_RESERVE_SHARE))
        self._limit = limit
        self._rules = 0
        self.pieces: tuple[ContextPiece, ...] = ()  # of the latest request, in order of source

    @property
    def opening_chars(self) -> int:
        """How much references may weigh in all, in characters."""
        return int(self._limit * OPENING_SHARE) * CHARS_PER_TOKEN if self._limit > 0 else 0

    def system(self, composed: SystemMessage, rules: Sequence[str], playbook: str = "") -> SystemMessage:
        """Sources one and two as the system message. Rules that do not fit into a quarter of the window are cut, the last first."""
        room = self.opening_chars if self._limit > 0 else sum(map(len, rules))
        kept: list[str] = []
        for text in rules:
            if text and room > 0:
                kept.append(
                    text if len(text) <= room else f"{text[:room]}\n[cut: the window of the model is small]"
                )
                room -= len(text)
        self._rules = sum(map(len, kept)) // CHARS_PER_TOKEN
        parts = [composed.dynamic, playbook, *kept]
        return composed.model_copy(update={"dynamic": "\n\n".join(part for part in parts if part)})

    def request(
        self,
        system: SystemMessage,
        view: Sequence[Message],
        tools: Sequence[ToolSchema],
        measure: Callable[[int], int],
    ) -> tuple[Message, ...]:
        """The messages of one request. ``view`` keeps its order, so that each request begins with the one before.

        ``measure`` turns estimated tokens into calibrated ones. What is too large loses reminders, then references, then
        the text of old results (their summaries stay, TOR-07), then whole old turns; never the system message, the query
        or the newest messages.
        """
        messages = list(view)
        self.pieces = self._pieces(system, messages)
        if self._limit > 0:
            for loosen in (_without_reminders, _without_references, _with_summaries, _without_old_turns):
                if measure(estimate((system, *messages), tools)) <= self._room:
                    break
                messages = loosen(
                    messages, lambda kept: measure(estimate((system, *kept), tools)) <= self._room
                )
        return (system, *messages)

    def _pieces(self, system: SystemMessage, messages: list[Message]) -> tuple[ContextPiece, ...]:
        whole = message_tokens(system)
        found = [
            ContextPiece(Source.SYSTEM, _PRIORITY[Source.SYSTEM], whole - self._rules),
            ContextPiece(Source.RULES, _PRIORITY[Source.RULES], self._rules),
        ]
        query = _query(messages)
        for index, message in enumerate(messages):
            source = Source.QUERY if index == query else source_of(message)
            found.append(ContextPiece(source, _PRIORITY[source], message_tokens(message), index))
        return tuple(sorted(found, key=lambda piece: (piece.source, piece.index)))


def source_of(message: Message) -> Source:
    """The source of a message of a conversation; the query is the last one of the user."""
    if isinstance(message, UserMessage):
        if message.msg_class in (MessageClass.NUDGE, MessageClass.DIRECTIVE):
            return Source.REMINDERS
        if message.msg_class is MessageClass.INTERNAL and message.content.startswith(REFERENCES_HEAD):
            return Source.REFERENCES
    return Source.HISTORY


def _query(messages: Sequence[Message]) -> int:
    users = [
        index
        for index, message in enumerate(messages)
        if isinstance(message, UserMessage) and message.msg_class is MessageClass.USER
    ]
    return users[-1] if users else -1


Fits = Callable[[Sequence[Message]], bool]


def _without_reminders(messages: list[Message], _fits: Fits) -> list[Message]:
    last = len(messages) - _NEWEST
    return [m for index, m in enumerate(messages) if index >= last or source_of(m) is not Source.REMINDERS]


def _without_references(messages: list[Message], _fits: Fits) -> list[Message]:
    return [
        m.model_copy(update={"content": f"{REFERENCES_HEAD}\n{LEFT_OUT}\n</system-reminder>", "images": ()})
        if source_of(m) is Source.REFERENCES
        else m
        for m in messages
    ]


def _with_summaries(messages: list[Message], fits: Fits) -> list[Message]:
    """Results give way to their summaries, the oldest first."""
    shorter = list(messages)
    for index, message in enumerate(messages):
        if fits(shorter):
            break
        if (
            isinstance(message, ToolMessage)
            and len(message.content) > len(LEFT_OUT) + len(message.summary) + 1
        ):
            content = f"{message.summary}\n{LEFT_OUT}" if message.summary else LEFT_OUT
            shorter[index] = message.model_copy(update={"content": content})
    return shorter


def _without_old_turns(messages: list[Message], fits: Fits) -> list[Message]:
    """Answers go together with their results, the oldest first; what the user said stays."""
    kept = list(messages)
    while not fits(kept):
        start = next((i for i, m in enumerate(kept[:-_NEWEST]) if isinstance(m, AssistantMessage)), None)
        if start is None:
            break
        end = start + 1
        while end < len(kept) and isinstance(kept[end], ToolMessage):
            end += 1
        if end > len(kept) - 1:
            break  # the newest answer: its results have not been read yet
        del kept[start:end]
    return kept
