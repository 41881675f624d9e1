"""Episodic and working memory: the bounded input of a thinking call (MEM-01..05, TOR-08, N-11)."""

from collections.abc import Sequence

from ..core.chat import AssistantMessage, Message, MessageClass, ToolMessage, UserMessage
from .pressure import CHARS_PER_TOKEN
from .summaries import RESULT_TOKENS, told

SUMMARY_CHARS = 500  # MEM-02
REGENERATE_THRESHOLD = 5  # new messages until the summary is made anew (MEM-03)
EXCLUDE_LAST_N = 6  # exchanges kept verbatim (MEM-04)
HISTORY_CHARS = 100_000  # of what the summariser reads
_LEAST_LINE = 80
_LINE = 600
_QUERY_CHARS = 4_000
_MESSAGE_CHARS = RESULT_TOKENS * CHARS_PER_TOKEN
_EXCHANGE_MESSAGES = 12  # of one exchange; a turn of many parallel calls is cut


class EpisodicSummary:
    """The latest summary and when the next is due. Whoever calls the model hands its answer in."""

    def __init__(self) -> None:
        self.text = ""
        self._covered = 0

    def due(self, history: Sequence[Message]) -> bool:
        """Whether five messages came since the last try."""
        return len(history) - self._covered >= REGENERATE_THRESHOLD

    def begin(self, history: Sequence[Message]) -> str:
        """Note that a summary of ``history`` is being made; what the summariser is to read.

        Always the full history, never the summary before: errors would add up (MEM-03). Long histories have shorter lines,
        so that every message is there.
        """
        self._covered = len(history)
        room = max(_LEAST_LINE, min(_LINE, HISTORY_CHARS // max(1, len(history))))
        return "\n".join(_flat(told(message), room) for message in history)[:HISTORY_CHARS]

    def take(self, answer: str) -> None:
        """The model's answer, cut to 500 characters; a blank one changes nothing."""
        if text := " ".join(answer.split()):
            self.text = text if len(text) <= SUMMARY_CHARS else f"{text[: SUMMARY_CHARS - 1]}…"


def thinking_context(history: Sequence[Message], summary: str) -> str:
    """Episodic summary, working memory and current query as one text, bounded whatever the length of ``history``."""
    query = _query(history)
    parts = (
        f"<earlier>\n{summary}\n</earlier>" if summary else "",
        f"<recent>\n{working_memory(history)}\n</recent>",
        f"<query>\n{query}\n</query>" if query else "",
    )
    return "\n\n".join(part for part in parts if part)


def working_memory(history: Sequence[Message]) -> str:
    """The last six exchanges; an exchange is an answer with its results, or a message of the user. Results are bounded (C-17)."""
    exchanges: list[list[Message]] = []
    for message in history:
        if isinstance(message, ToolMessage) and exchanges:
            exchanges[-1].append(message)
        else:
            exchanges.append([message])
    lines = [_halved(told(_short(m))) for group in exchanges[-EXCLUDE_LAST_N:] for m in _cut(group)]
    return "\n".join(lines)


def _query(history: Sequence[Message]) -> str:
    """What the user said last."""
    said = (
        m.content
        for m in reversed(history)
        if isinstance(m, UserMessage) and m.msg_class is MessageClass.USER
    )
    return next(said, "")[:_QUERY_CHARS]


def _short(message: Message) -> Message:
    """A result longer than the bound as its summary."""
    if isinstance(message, ToolMessage) and len(message.content) > _MESSAGE_CHARS and message.summary:
        return message.model_copy(update={"content": message.summary})
    return message


def _cut(group: list[Message]) -> list[Message]:
    head = group[:1] if isinstance(group[0], AssistantMessage) else []
    rest = group[len(head) :]
    return [*head, *rest[-(_EXCHANGE_MESSAGES - len(head)) :]]


def _halved(text: str) -> str:
    half = _MESSAGE_CHARS // 2
    return text if len(text) <= _MESSAGE_CHARS else f"{text[:half]}\n[…]\n{text[-half:]}"


def _flat(text: str, room: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= room else f"{line[: room - 1]}…"
