"""Questions to people through the hub's desk: time-out, two at once, interrupts, wrong kinds (ACT-08, LOOP-18)."""

import asyncio

import pytest
from opendev.actors.asks import AskDesk
from opendev.core.approval import ApprovalAnswer, ApprovalRequest
from opendev.core.chat import Question
from opendev.core.clock import SystemClock
from opendev.core.errors import OpenDevError
from opendev.core.events import ApprovalAnswered, ApprovalAsked, Event, QuestionAnswered


def request(command: str) -> ApprovalRequest:
    return ApprovalRequest(
        id="x",
        agent_id="a",
        agent="Coder",
        tool="run_command",
        arguments={"c": command},
        reason="r",
        card=command,
    )


def desk(events: list[Event], timeout_s: float = 60.0) -> AskDesk:
    return AskDesk(emit=events.append, clock=SystemClock(), timeout_s=timeout_s)


async def test_nobody_answers_in_time() -> None:
    events: list[Event] = []
    asks = desk(events, timeout_s=0.05)
    asks.attach()
    said = await asks.approve("a", request("ls"))
    assert (said.decision, said.allowed, said.note) == ("no_answer", False, "nobody answered in time")
    assert await asks.question("a", (Question(text="?"),)) is None
    assert [e.kind for e in events] == [
        "approval_asked", "approval_answered", "question_asked", "question_answered",
    ]  # fmt: skip
    assert asks.pending == ()


async def test_two_at_once_are_told_apart_and_a_withdrawn_one_disturbs_no_other() -> None:
    events: list[Event] = []
    asks = desk(events)
    detach = asks.attach()
    one, two = (asyncio.create_task(asks.approve(a, request(a))) for a in "ab")
    late = asyncio.create_task(asks.approve("c", request("c")))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.sleep(0.01)
    shown = [e.request for e in events if isinstance(e, ApprovalAsked)]
    assert asks.pending == tuple(r.id for r in shown[:2])
    with pytest.raises(OpenDevError, match="not of the kind"):
        asks.answer(shown[1].id, ("text",))
    asks.answer(shown[1].id, ApprovalAnswer(decision="deny", digest=shown[1].digest, by="me"))
    assert (await two).decision == "deny"
    detach()
    detach()  # leaving twice is leaving once
    assert (await one).decision == "no_answer"
    answered = [e.request_id for e in events if isinstance(e, ApprovalAnswered)]
    assert answered == [shown[1].id, shown[0].id]


async def test_a_question_gets_its_texts_and_an_ended_agent_is_not_waited_for() -> None:
    events: list[Event] = []
    asks = desk(events)
    asks.attach()
    ask = asyncio.create_task(asks.question("a", (Question(text="which?"),)))
    gone = asyncio.create_task(asks.approve("b", request("ls")))
    await asyncio.sleep(0)
    asks.answer(asks.pending[0], ("this",))
    assert await ask == ("this",)
    asks.abandon("b")
    assert (await gone).note == "the agent that asked has ended"
    assert [e.answers for e in events if isinstance(e, QuestionAnswered)] == [("this",)]
