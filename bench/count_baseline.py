"""The simplest compaction there is, for comparison: by the number of messages (BLG-11)."""

from collections.abc import Sequence

from opendev.context.artifacts import artifact_index
from opendev.core.chat import AssistantMessage, Message, MessageClass, ToolMessage, UserMessage

ABOVE, FIRST, LAST = 24, 2, 8
_COMMAND_CHARS, _RESULT_CHARS = 120, 160


def count_based(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Above 24 messages: the first 2, a list of changed files and of command results, and the last 8.

    A border that would part a call from its result moves so that both stay.
    """
    if len(messages) <= ABOVE:
        return tuple(messages)
    first, last = FIRST, len(messages) - LAST
    while isinstance(messages[first], ToolMessage):
        first += 1
    while isinstance(messages[last], ToolMessage):
        last -= 1
    if first >= last:
        return tuple(messages)
    middle = messages[first:last]
    text = f"## Files\n{artifact_index(middle)}\n\n## Commands\n{_commands(middle)}"
    summary = UserMessage(
        content=f"<system-reminder>\n{text}\n</system-reminder>", msg_class=MessageClass.INTERNAL
    )
    return (*messages[:first], summary, *messages[last:])


def _commands(messages: Sequence[Message]) -> str:
    lines: list[str] = []
    asked: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked |= {c.id: str(c.arguments.get("command", "")) for c in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.name == "run_command":
            last = message.content.strip().splitlines()[-1:] or [""]
            lines.append(
                f"- {asked.get(message.call_id, '')[:_COMMAND_CHARS]}: {message.summary or last[0][:_RESULT_CHARS]}"
            )
    return "\n".join(lines)
