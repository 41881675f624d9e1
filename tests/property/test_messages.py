"""Property: whatever list of messages comes in, what goes out can be sent (RET-05)."""

from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.context.messages import ValidatedMessageList, repair
from opendev.core.chat import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from support.scripted_model import pairs_are_whole

ids = st.sampled_from(["a", "b", "c", "", "a-2"])
words = st.sampled_from(["", " ", "text"])
users = st.builds(UserMessage, content=words)
answers = st.builds(
    AssistantMessage,
    content=words,
    tool_calls=st.lists(st.builds(ToolCall, id=ids, name=st.sampled_from(["x", "y"])), max_size=3).map(tuple),
)
results = st.builds(ToolMessage, call_id=ids, name=st.just("x"), content=words, is_error=st.booleans())
conversations = st.lists(st.one_of(users, answers, results), max_size=12)


def faults(messages: tuple[Message, ...]) -> list[str]:
    request = ModelRequest(id="r", agent_id="a", model="m/m", messages=(SystemMessage(stable="s"), *messages))
    return pairs_are_whole([request])


@given(conversations)
@settings(max_examples=100)
def test_repair_gives_a_list_that_can_be_sent_and_is_idempotent(given_messages: list[Message]) -> None:
    repaired = repair(given_messages)
    assert faults(repaired) == []
    assert repair(repaired) == repaired


@given(conversations, conversations)
@settings(max_examples=100)
def test_a_list_that_grows_can_be_sent_after_each_step(history: list[Message], later: list[Message]) -> None:
    messages = ValidatedMessageList(history)
    for message in later:
        if isinstance(message, UserMessage):
            messages.add_user(message)
        elif isinstance(message, AssistantMessage):
            messages.add_assistant(message)
        elif isinstance(message, ToolMessage):
            messages.add_results([message])
        if not messages.open_calls():
            assert faults(messages.snapshot()) == []
    messages.close_open_calls()
    assert faults(messages.snapshot()) == []


@given(conversations)
def test_every_cut_of_a_conversation_can_be_sent(given_messages: list[Message]) -> None:
    whole = repair(given_messages)
    for cut in range(len(whole) + 1):
        assert faults(repair(whole[:cut])) == []
