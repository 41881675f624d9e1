"""The bounded input of a thinking call (MEM-01..05, N-11)."""

import pytest
from opendev.context.episodic import (
    EXCLUDE_LAST_N,
    HISTORY_CHARS,
    SUMMARY_CHARS,
    EpisodicSummary,
    thinking_context,
    working_memory,
)
from opendev.core.chat import AssistantMessage, MessageClass, ToolCall, ToolMessage, UserMessage
from support.conversations import conversation


@pytest.mark.req("MEM-01")
def test_the_thinking_context_is_summary_recent_exchanges_and_query() -> None:
    history = [*conversation(20), UserMessage(content="now B"), AssistantMessage(content="ok")]
    history.append(UserMessage(content="<system-reminder>x</system-reminder>", msg_class=MessageClass.NUDGE))
    text = thinking_context(history, "we fixed A")
    order = [text.index(part) for part in ("we fixed A", "<recent>", "<query>\nnow B")]
    assert order == sorted(order)
    assert "<earlier>" not in thinking_context(history, "")


@pytest.mark.req("MEM-04")
def test_the_last_six_exchanges_are_verbatim() -> None:
    text = working_memory(conversation(20, chars=200))
    assert EXCLUDE_LAST_N == 6
    assert [n for n in range(20) if f"result {n} " + "x" * 200 in text] == list(range(14, 20))
    long = working_memory(conversation(20, chars=50_000))
    assert "short 19" in long  # a long result as its summary (TOR-08, C-17)
    assert len(long) < 6 * 2_500


@pytest.mark.req("MEM-05")
def test_the_input_is_as_long_at_turn_200_as_at_turn_20() -> None:
    lengths = {turns: len(thinking_context(conversation(turns), "s" * 500)) for turns in (20, 50, 100, 200)}
    assert max(lengths.values()) <= 1.05 * min(lengths.values())


def test_an_exchange_of_many_parallel_calls_is_cut() -> None:
    calls = tuple(ToolCall(id=f"r{n}", name="read_file") for n in range(500))
    results = [ToolMessage(call_id=c.id, name=c.name, content="y" * 5_000) for c in calls]
    history = [UserMessage(content="go"), AssistantMessage(tool_calls=calls), *results]
    assert len(working_memory(history)) < 20_000


@pytest.mark.req("MEM-03")
def test_the_summary_is_due_every_five_messages_and_always_made_of_the_full_history() -> None:
    summary = EpisodicSummary()
    history = conversation(2)
    assert len(history) == 5
    assert summary.due(history)
    assert "THE TASK" in summary.begin(history)
    summary.take("SECRET SUMMARY")
    assert not summary.due(conversation(4)[:9])
    longer = conversation(200)
    assert summary.due(longer)
    told = summary.begin(longer)
    assert "THE TASK" in told
    assert "SECRET SUMMARY" not in told
    assert [n for n in range(200) if f"step {n}" not in told] == []


@pytest.mark.req("MEM-02")
def test_a_summary_has_at_most_500_characters_and_a_failure_changes_nothing() -> None:
    summary = EpisodicSummary()
    summary.take("fact " * 400)
    assert len(summary.text) == SUMMARY_CHARS == 500
    kept = summary.text
    summary.take("  \n")
    assert summary.text == kept
    assert len(summary.begin(conversation(2_000))) <= HISTORY_CHARS
