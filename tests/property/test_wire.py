"""Events, mail, tasks, reports and conversations are the same after a trip as JSON (ACT-04, ACT-05)."""

import json
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opendev.core.agent import AgentReport, AgentTask
from opendev.core.chat import MESSAGES, AssistantMessage, ModelReply, ModelRequest, ToolMessage, UserMessage
from opendev.core.events import EVENT, Event
from opendev.core.mail import ENVELOPE, Body, Envelope
from opendev.core.session import SessionMeta
from support.values import values_of

EVENTS: tuple[Any, ...] = get_args(get_args(Event)[0])
BODIES: tuple[Any, ...] = get_args(get_args(Body)[0])
slowly = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@pytest.mark.req("ACT-05")
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@slowly
@given(data=st.data())
def test_every_event_survives_json(kind: Any, data: st.DataObject) -> None:
    event = data.draw(values_of(kind))
    line = EVENT.dump_json(event, by_alias=True)
    assert b"\n" not in line
    assert EVENT.validate_json(line) == event
    assert json.loads(line)["schema"] == 1


@pytest.mark.req("ACT-04")
@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
@slowly
@given(data=st.data())
def test_every_letter_survives_json(kind: Any, data: st.DataObject) -> None:
    letter = Envelope(id="1", session="s", sender="a", seq=3, body=data.draw(values_of(kind)))
    assert ENVELOPE.validate_json(ENVELOPE.dump_json(letter, by_alias=True)) == letter


@pytest.mark.parametrize("kind", [AgentTask, AgentReport, SessionMeta, ModelRequest, ModelReply])
@slowly
@given(data=st.data())
def test_what_crosses_processes_survives_json(kind: Any, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    assert kind.model_validate_json(value.model_dump_json(by_alias=True)) == value


@slowly
@given(
    st.lists(
        st.one_of([values_of(kind) for kind in (UserMessage, AssistantMessage, ToolMessage)]), max_size=4
    )
)
def test_a_conversation_survives_json(messages: list[Any]) -> None:
    assert MESSAGES.validate_json(MESSAGES.dump_json(tuple(messages), by_alias=True)) == tuple(messages)
