"""Whatever the conversation, the window and the order of events: a view can be sent, is no longer than before, and keeps the user."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.context.compaction import Compaction, Window
from opendev.context.messages import repair
from opendev.context.pressure import estimate
from opendev.core.chat import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from support.conversations import SYSTEM, Summariser

TURN = st.tuples(
    st.sampled_from(["tools", "user", "text"]),
    st.lists(st.integers(0, 30_000), min_size=1, max_size=4),
    st.booleans(),
)
REPLIES = st.sampled_from(["## Goal\nGo on.", "", "w " * 9_000, RuntimeError])


def turn_of(number: int, kind: str, sizes: list[int], failed: bool) -> list[Message]:
    if kind == "user":
        return [UserMessage(content=f"RULE {number} " + "u" * min(sizes[0], 500))]
    if kind == "text":
        return [AssistantMessage(content=f"I say {number} " + "t" * min(sizes[0], 4_000))]
    asked = tuple(ToolCall(id=f"{number}-{n}", name="read_file") for n in range(len(sizes)))
    results = [
        ToolMessage(call_id=c.id, name=c.name, content="r" * (size + 1), is_error=failed)
        for c, size in zip(asked, sizes, strict=True)
    ]
    return [AssistantMessage(tool_calls=asked), *results]


@pytest.mark.req("CMP-14")
@settings(max_examples=60, deadline=None)
@given(st.lists(TURN, min_size=1, max_size=25), st.integers(5_000, 60_000), REPLIES, st.integers(0, 24))
def test_every_view_can_be_sent(
    turns: list[tuple[str, list[int], bool]], limit: int, reply: object, forced: int
) -> None:
    async def play(folder: Path) -> None:
        summariser = Summariser(TimeoutError() if reply is RuntimeError else reply)
        subject = Compaction(Window(limit, reserve=500), summariser, folder)
        messages: list[Message] = [UserMessage(content="THE TASK")]
        for number, turn in enumerate(turns):
            messages += turn_of(number, *turn)
            stored = tuple(messages)
            before = estimate((SYSTEM, *subject.view(messages)))
            step = await subject.check(messages, SYSTEM, ())
            if number == forced:
                step = await subject.force(messages, SYSTEM, ())
            view = subject.view(messages)
            assert repair(view) == view
            if step is not None and before > limit:
                assert estimate((SYSTEM, *view)) < before
            said = "\n".join(m.content for m in view if isinstance(m, UserMessage))
            users = [m for m in messages if isinstance(m, UserMessage)]
            assert [m for m in users if m.content[:8].strip() not in said] == []
            assert tuple(messages) == stored

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))
