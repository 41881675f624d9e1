"""Conversations of a given size, and a summariser that answers what it is told to."""

import asyncio
from pathlib import Path

from opendev.context.compaction import Compaction, Window
from opendev.core.chat import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from opendev.core.errors import ErrorInfo

SYSTEM = SystemMessage(stable="s" * 400)


class Summariser:
    """Answers with ``reply``, or raises it, and keeps what it was given."""

    def __init__(self, reply: object = "THE SUMMARY", delay: float = 0.0) -> None:
        self.reply = reply
        self.delay = delay
        self.given: list[tuple[tuple[Message, ...], str]] = []

    async def summarise(self, messages: tuple[Message, ...], artifacts: str) -> str | ErrorInfo:
        self.given.append((messages, artifacts))
        await asyncio.sleep(self.delay)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply if isinstance(self.reply, ErrorInfo) else str(self.reply)


def conversation(turns: int, chars: int = 4_000, prefix: str = "c") -> list[Message]:
    """A task and ``turns`` reads of files with results of ``chars`` characters; call ids begin with ``prefix``."""
    messages: list[Message] = [UserMessage(content="THE TASK")]
    for n in range(turns):
        call = ToolCall(id=f"{prefix}{n}", name="read_file", arguments={"file_path": f"src/f{n}.py"})
        messages.append(AssistantMessage(content=f"step {n}", tool_calls=(call,)))
        text = f"result {n} " + "x" * chars
        messages.append(
            ToolMessage(call_id=f"{prefix}{n}", name="read_file", content=text, summary=f"short {n}")
        )
    return messages


def compaction(folder: Path, limit: int, summariser: Summariser | None = None) -> Compaction:
    """A compaction whose window has ``limit`` tokens, none of them reserved."""
    return Compaction(Window(limit, reserve=0), summariser or Summariser(), folder)


def shown(view: tuple[Message, ...]) -> list[str]:
    """The contents of the results."""
    return [m.content for m in view if isinstance(m, ToolMessage)]
