"""Conversations made short: bounded text for the summariser, and a summary without a model when that fails (CMP-12, T-05)."""

from collections.abc import Iterable

from ..core.chat import AssistantMessage, Message, MessageClass, ToolMessage, UserMessage
from .pressure import CHARS_PER_TOKEN

RESULT_TOKENS = 300  # TOR-08
SUMMARY_WORDS = 800  # CMP-12
_LINE_CHARS = 300


def condensed(messages: Iterable[Message]) -> tuple[Message, ...]:
    """``messages`` as the summariser gets them: no thinking blocks, long results replaced by their summary (TOR-07, M21)."""
    short: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and message.thinking:
            short.append(message.model_copy(update={"thinking": ()}))
        elif isinstance(message, ToolMessage):
            short.append(message.model_copy(update={"content": _result(message)}))
        else:
            short.append(message)
    return tuple(short)


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
    half = limit // 2
    return message.summary or f"{message.content[:half]}\n[…]\n{message.content[-half:]}"


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE_CHARS else f"{flat[:_LINE_CHARS]}…"
