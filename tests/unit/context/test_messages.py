"""The validated message list: pairs, ids, blanks (cases M01, M03, M06, M29)."""

import pytest
from opendev.context.messages import INTERRUPTED, NO_OUTPUT, ValidatedMessageList, repair
from opendev.core.chat import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage


def call(id: str, name: str = "read_file") -> ToolCall:
    return ToolCall(id=id, name=name)


def result(id: str, content: str = "ok", *, is_error: bool = False) -> ToolMessage:
    return ToolMessage(call_id=id, name="read_file", content=content, is_error=is_error)


def said(messages: ValidatedMessageList) -> list[str]:
    return [message.content for message in messages if not isinstance(message, SystemMessage)]


@pytest.mark.req("RET-05")
def test_a_missing_result_is_filled_in_behind_its_answer() -> None:  # M01
    given = (
        UserMessage(content="go"),
        AssistantMessage(tool_calls=(call("a"), call("b"))),
        result("a"),
        UserMessage(content="stop, do X"),
    )
    repaired = repair(given)
    assert [m.role for m in repaired] == ["user", "assistant", "tool", "tool", "user"]
    filled = repaired[3]
    assert isinstance(filled, ToolMessage)
    assert (filled.call_id, filled.content, filled.is_error) == ("b", INTERRUPTED, True)
    assert repair(repaired) == repaired


def test_double_ids_in_one_answer_become_one_call_with_the_completed_result() -> None:  # M03
    given = (
        AssistantMessage(tool_calls=(call("todo:1", "todo"), call("todo:1", "unknown"))),
        result("todo:1", "aborted", is_error=True),
        result("todo:1", "ok"),
    )
    answer, only = repair(given)
    assert isinstance(answer, AssistantMessage)
    assert answer.tool_calls == (call("todo:1", "todo"),)
    assert only == result("todo:1", "ok")


def test_ids_that_come_again_in_a_later_answer_are_told_apart() -> None:
    messages = ValidatedMessageList()
    for _ in range(2):
        stored = messages.add_assistant(AssistantMessage(tool_calls=(call("c"), call(""))))
        assert stored is not None
        messages.add_results([result(item.id) for item in stored.tool_calls])
    ids = [item.id for m in messages if isinstance(m, AssistantMessage) for item in m.tool_calls]
    assert ids == ["c", "call", "c-2", "call-2"]
    assert messages.open_calls() == ()


def test_blank_results_are_said_to_be_empty_and_blank_messages_go() -> None:  # M06, M29
    messages = ValidatedMessageList([UserMessage(content=" "), result("orphan")])
    assert len(messages) == 0
    assert messages.add_assistant(AssistantMessage(content=" \n")) is None
    messages.add_user(UserMessage(content=""))
    messages.add_assistant(AssistantMessage(tool_calls=(call("a"),)))
    messages.add_results([result("a", " "), result("a", "second"), result("zzz")])
    assert said(messages) == ["", NO_OUTPUT]


def test_results_are_kept_in_call_order_and_a_user_message_closes_open_calls() -> None:  # M20
    seen: list[Message] = []
    messages = ValidatedMessageList(on_append=seen.append)
    messages.add_assistant(AssistantMessage(tool_calls=(call("a"), call("b"), call("c"))))
    messages.add_results([result("c", "3"), result("a", "1")])
    assert said(messages) == ["", "1", INTERRUPTED, "3"]
    messages.add_assistant(AssistantMessage(tool_calls=(call("d"),)))
    messages.add_user(UserMessage(content="next"))
    assert [m.role for m in messages][-3:] == ["assistant", "tool", "user"]
    assert tuple(seen) == messages.snapshot()


def test_thinking_blocks_stay_identical() -> None:  # M21
    blocks = (
        {"type": "thinking", "thinking": "abc", "signature": "sig1"},
        {"type": "redacted", "data": "zz"},
    )
    given = AssistantMessage(content="x", thinking=blocks)
    assert repair((given,)) == (given,)


@pytest.mark.req("RET-05")
def test_a_late_result_is_moved_to_its_answer() -> None:  # M01: the user spoke while tools ran
    given = (
        AssistantMessage(tool_calls=(call("a"), call("b"))),
        result("b"),
        UserMessage(content="stop"),
        result("a", "late"),
        result("zzz", "of no call"),
        AssistantMessage(content="well"),
    )
    answer, first, second, user, last = repair(given)
    assert answer == given[0]
    assert (first, second) == (result("a", "late"), result("b"))
    assert (user, last) == (given[2], given[5])
