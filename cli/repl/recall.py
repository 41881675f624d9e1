"""What was said last in a session that goes on, for the one who comes back to it."""

from ...core.chat import AssistantMessage, MessageClass, UserMessage
from ...store.sessions import OpenSession

_SHOWN = 4  # of both sides together
_CHARS = 400


def unread(held: OpenSession) -> tuple[str, ...]:
    """What the user said after the agent's last answer or result. Blocking."""
    said: list[str] = []
    for message in reversed(held.files.history()):
        if not isinstance(message, UserMessage):
            break
        if message.msg_class is MessageClass.USER:
            said.append(message.content)
    return tuple(reversed(said))


def recalled(held: OpenSession) -> str:
    """The session's title and its last words. Blocking."""
    said: list[str] = []
    for message in held.files.history():
        if isinstance(message, UserMessage) and message.msg_class is MessageClass.USER:
            said.append(f"> {message.content}")
        elif isinstance(message, AssistantMessage) and message.content.strip():
            said.append(message.content.strip())
    short = [text[:_CHARS] + ("…" if len(text) > _CHARS else "") for text in said[-_SHOWN:]]
    return "\n".join([f"Session {held.id}: {held.meta().title}".rstrip(": "), *short])
