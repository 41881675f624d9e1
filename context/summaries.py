"""Conversations made short: bounded text for the summariser, and a summary without a model when that fails (CMP-12, T-05)."""

from collections.abc import Iterable

from ..core.chat import AssistantMessage, Message, MessageClass, ToolMessage, UserMessage, canonical
from .pressure import CHARS_PER_TOKEN

RESULT_TOKENS = 300  # TOR-08
SUMMARY_WORDS = 800  # CMP-12
_LINE_CHARS = 300
_CALL_CHARS = 300  # of the arguments of one call, as the summariser sees them
_ECHO_WORDS = 4 * SUMMARY_WORDS  # an answer this long is an echo of the input
_LOOP_LINES = 20
_USER_CHARS = 4_000  # of one user message that the summary stands for
_USER_LINES = 50


def condensed(messages: Iterable[Message]) -> tuple[Message, ...]:
    """``messages`` as the summariser gets them: no thinking blocks, long results replaced by their summary (TOR-07, M21)."""
    short: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            said = _halves(message.content, RESULT_TOKENS * CHARS_PER_TOKEN)
            short.append(message.model_copy(update={"thinking": (), "content": said}))
        elif isinstance(message, ToolMessage):
            short.append(message.model_copy(update={"content": _result(message)}))
        else:
            short.append(unseen(message))
    return tuple(short)


def unseen(message: Message) -> Message:
    """``message`` for a model that sees no pictures: a line says how many there are."""
    if not isinstance(message, UserMessage) or not message.images:
        return message
    note = f"[{len(message.images)} picture(s), which this model cannot see]"
    return message.model_copy(update={"images": (), "content": f"{message.content}\n{note}"})


def told(message: Message, call_chars: int | None = _CALL_CHARS) -> str:
    """One message as text, its calls with arguments of at most ``call_chars`` (None: whole); empty for a system prompt."""
    if isinstance(message, AssistantMessage):
        calls = [f"→ {call.name} {canonical(call.arguments)[:call_chars]}" for call in message.tool_calls]
        return "\n".join(["[assistant] " + message.content, *calls])
    if isinstance(message, ToolMessage):
        return f"[{message.name}{', failed' if message.is_error else ''}] {message.content}"
    return f"[user] {message.content}" if isinstance(message, UserMessage) else ""


def archived(messages: Iterable[Message]) -> str:
    """The whole conversation as text with its own line breaks, so that read_file and search work on it (CMP-11)."""
    return "\n\n".join(f"### {n}\n{told(message, None)}" for n, message in enumerate(messages, 1))


def is_summary(answer: str) -> bool:
    """Whether the compactor's answer can be one: not blank, no echo of its input, not one line over and over."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    words = len(answer.split())
    looping = len(lines) > _LOOP_LINES and len(set(lines)) * 3 < len(lines)
    return 0 < words <= _ECHO_WORDS and not looping


def user_words(messages: Iterable[Message], tokens: int) -> str:
    """What the user said, oldest first, verbatim from the newest back within ``tokens``; older ones as one line each (CMP-13, C07)."""
    said = [m.content for m in messages if isinstance(m, UserMessage) and m.msg_class is MessageClass.USER]
    room = tokens * CHARS_PER_TOKEN
    parts: list[str] = []
    for text in reversed(said[-_USER_LINES:]):
        cut = text if len(text) <= _USER_CHARS else f"{text[:_USER_CHARS]} [… the rest is in the archive]"
        room -= len(cut)
        parts.append(cut if room >= 0 else _line(text))
    if left_out := len(said) - len(parts):
        parts.append(f"({left_out} earlier messages are in the archive)")
    return "\n---\n".join(reversed(parts))


def pruned_summary(messages: Iterable[Message]) -> str:
    """A summary by rule, one line per step, newest kept when there are too many; used when the compactor gives none."""
    lines: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            if message.content.strip():
                lines.append(f"- said: {_line(message.content)}")
        elif isinstance(message, ToolMessage):
            state = "failed" if message.is_error else "ok"
            lines.append(f"- {message.name} ({state}): {_line(message.summary or message.content)}")
        elif isinstance(message, UserMessage) and message.msg_class is MessageClass.USER:
            lines.append(f"- the user said: {_line(message.content)}")
    kept: list[str] = []
    words = 0
    for line in reversed(lines):
        words += len(line.split())
        if words > SUMMARY_WORDS:
            kept.append("- (earlier steps left out)")
            break
        kept.append(line)
    return "\n".join(reversed(kept))


def bounded(summary: str) -> str:
    """At most ``SUMMARY_WORDS`` words of ``summary``, line breaks kept."""
    words = 0
    kept: list[str] = []
    for line in summary.strip().splitlines():
        parts = line.split()
        if words + len(parts) > SUMMARY_WORDS:
            kept.append(" ".join(parts[: SUMMARY_WORDS - words]) + " […]")
            break
        words += len(parts)
        kept.append(line)
    return "\n".join(kept)


def _result(message: ToolMessage) -> str:
    limit = RESULT_TOKENS * CHARS_PER_TOKEN
    if len(message.content) <= limit:
        return message.content
    return message.summary or _halves(message.content, limit)


def _halves(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}\n[…]\n{text[-half:]}"


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE_CHARS else f"{flat[:_LINE_CHARS]}…"
