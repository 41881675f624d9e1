"""Every request from six ordered sources, within the window (RET-03, RET-04, RET-06, RET-09)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.context.mentions import references
from opendev.context.messages import repair
from opendev.context.picker import LEFT_OUT, ContextPicker, Source
from opendev.context.pressure import estimate
from opendev.core.chat import (
    AssistantMessage,
    Message,
    MessageClass,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

SYSTEM = SystemMessage(stable="Role and sections.", dynamic="# Environment")


def same(tokens: int) -> int:
    return tokens


def turn(n: int, chars: int = 4_000) -> tuple[Message, ...]:
    return (
        AssistantMessage(content=f"step {n}", tool_calls=(ToolCall(id=f"c{n}", name="read_file"),)),
        ToolMessage(
            call_id=f"c{n}", name="read_file", content="x" * chars, summary=f"✓ Read file ({n} lines)"
        ),
    )


def reference(chars: int = 4_000) -> UserMessage:
    return UserMessage(content=references([("a.py", "y" * chars)], ()), msg_class=MessageClass.INTERNAL)


NUDGE = UserMessage(content="<system-reminder>\n" + "n" * 2_000, msg_class=MessageClass.NUDGE)
HISTORY: tuple[Message, ...] = (
    UserMessage(content="earlier question"),
    *turn(1),
    NUDGE,
    *turn(2),
    reference(),
    UserMessage(content="THE QUERY"),
    *turn(3, 400),
)


@pytest.mark.req("RET-03", "RET-04")
def test_pieces_stand_in_the_order_of_the_six_sources() -> None:
    picker = ContextPicker(100_000, 4_000)
    system = picker.system(
        SYSTEM, ("# Rules of this project\nR", "# Rules of the user\nU"), "# Playbook\n- bullet"
    )
    assert system.stable == SYSTEM.stable
    parts = ("# Environment", "# Playbook", "# Rules of this project", "# Rules of the user")
    assert [system.dynamic.index(part) for part in parts] == sorted(
        system.dynamic.index(part) for part in parts
    )
    sent = picker.request(system, HISTORY, (), same)
    assert sent == (system, *HISTORY)
    sources = [piece.source for piece in picker.pieces]
    assert sources == sorted(sources)
    assert set(sources) == set(Source)
    by_source = {piece.source: piece for piece in picker.pieces}
    assert by_source[Source.QUERY].index == HISTORY.index(UserMessage(content="THE QUERY"))
    assert by_source[Source.REFERENCES].tokens > 1_000
    assert (by_source[Source.SYSTEM].priority, by_source[Source.QUERY].priority) == (0, 0)
    assert (
        by_source[Source.REMINDERS].priority
        > by_source[Source.REFERENCES].priority
        > by_source[Source.HISTORY].priority
    )
    assert sum(piece.tokens for piece in picker.pieces) == pytest.approx(estimate(sent), abs=2)


@pytest.mark.req("RET-04", "RET-06")
@pytest.mark.parametrize(
    ("limit", "gone", "kept"),
    [
        (3_600, "n" * 2_000, "y" * 4_000),  # a reminder goes first
        (2_900, "y" * 4_000, "x" * 4_000),  # then the references
        (1_000, "x" * 4_000, "x" * 400),  # then old results give way to their summaries
    ],
)
def test_what_goes_first_when_the_budget_is_tight(limit: int, gone: str, kept: str) -> None:
    picker = ContextPicker(limit, 0)
    sent = picker.request(SYSTEM, HISTORY, (), same)
    assert estimate(sent) <= limit
    texts = [m.content for m in sent if not isinstance(m, SystemMessage)]
    assert not any(gone in text for text in texts)
    assert any(kept in text for text in texts)
    assert {"earlier question", "THE QUERY", "x" * 400} <= set(texts)
    if limit < 2_000:
        assert f"✓ Read file (1 lines)\n{LEFT_OUT}" in texts


@pytest.mark.req("RET-05", "RET-06")
@given(
    st.lists(
        st.tuples(st.sampled_from(["turn", "user", "nudge", "reference"]), st.integers(1, 9_000)), max_size=25
    ),
    st.integers(2_500, 20_000),
)
def test_a_request_always_fits_and_stays_valid(plan: list[tuple[str, int]], limit: int) -> None:
    messages: list[Message] = []
    for n, (kind, chars) in enumerate(plan):
        match kind:
            case "turn":
                messages.extend(turn(n, chars))
            case "user":
                messages.append(UserMessage(content=f"said {n}"))
            case "nudge":
                messages.append(NUDGE)
            case _:
                messages.append(reference(chars))
    messages.append(UserMessage(content="last"))
    sent = ContextPicker(limit, 100).request(SYSTEM, messages, (), same)
    assert estimate(sent) <= limit
    assert repair(sent[1:]) == sent[1:]
    assert sent[-1] == messages[-1]
    said = [m for m in messages if isinstance(m, UserMessage) and m.msg_class is MessageClass.USER]
    assert [m for m in sent if isinstance(m, UserMessage) and m.msg_class is MessageClass.USER] == said


@pytest.mark.req("RET-06")
def test_a_model_without_a_window_gets_everything() -> None:
    picker = ContextPicker(0, 4_000)
    assert picker.opening_chars == 0
    assert picker.system(SYSTEM, ("r" * 50_000,)).dynamic.endswith("r")
    assert picker.request(SYSTEM, HISTORY, (), same) == (SYSTEM, *HISTORY)


@pytest.mark.req("RET-09")
def test_an_opening_takes_at_most_a_quarter_of_the_window() -> None:
    picker = ContextPicker(10_000, 1_000)
    assert picker.opening_chars == 10_000
    dynamic = picker.system(SYSTEM, ("a" * 9_000, "b" * 9_000)).dynamic
    assert ("a" * 9_000 in dynamic, dynamic.count("b")) == (True, 1_000)
    assert "[cut: the window of the model is small]" in dynamic


def test_the_newest_results_are_never_touched() -> None:
    messages = (UserMessage(content="q"), *turn(1, 40_000))
    assert ContextPicker(2_000, 0).request(SYSTEM, messages, (), same)[-1] != messages[-1]
    assert [m.role for m in ContextPicker(2_000, 0).request(SYSTEM, messages, (), same)] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]


@pytest.mark.req("RET-06")
def test_whole_old_turns_go_last_and_what_the_user_said_stays() -> None:
    messages = (
        UserMessage(content="first"),
        *(m for n in range(60) for m in turn(n, 100)),
        UserMessage(content="query"),
    )
    sent = ContextPicker(1_500, 0).request(SYSTEM, messages, (), same)
    assert estimate(sent) <= 1_500
    assert sent[1:2] + sent[-1:] == (messages[0], messages[-1])
    assert repair(sent[1:]) == sent[1:]
    kept = [m.call_id for m in sent if isinstance(m, ToolMessage)]
    assert kept == [f"c{n}" for n in range(60 - len(kept), 60)]
