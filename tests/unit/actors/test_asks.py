"""Questions to people through the hub's desk: time-out, two at once, interrupts, wrong kinds (ACT-08, LOOP-18)."""

import asyncio
from typing import Any

import pytest
from opendev.actors.asks import AskDesk
from opendev.core.approval import ApprovalAnswer, ApprovalRequest
from opendev.core.chat import Question
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import ApprovalAnswered, ApprovalAsked, Event, Notice, QuestionAnswered
from opendev.core.permissions import Rule


def request(command: str, **fields: Any) -> ApprovalRequest:
    base: dict[str, Any] = {
        "id": "x",
        "agent_id": "a",
        "agent": "Coder",
        "tool": "run_command",
        "reason": "r",
    }
    return ApprovalRequest.model_validate(
        {**base, "arguments": {"command": command}, "card": command, **fields}
    )


def desk(events: list[Event], timeout_s: float = 60.0, **more: Any) -> AskDesk:
    return AskDesk(events.append, SystemClock(), timeout_s, **more)


def shown(events: list[Event]) -> list[ApprovalRequest]:
    return [event.request for event in events if isinstance(event, ApprovalAsked)]


async def asking(asks: AskDesk, *requests: ApprovalRequest) -> list[asyncio.Task[ApprovalAnswer]]:
    """One agent for each request."""
    tasks = [asyncio.create_task(asks.approve(f"agent-{n}", one)) for n, one in enumerate(requests)]
    await asyncio.sleep(0)
    return tasks


def say(asks: AskDesk, asked: ApprovalRequest, decision: str, **fields: Any) -> None:
    asks.answer(
        asked.id,
        ApprovalAnswer.model_validate({"decision": decision, "digest": asked.digest, "by": "me", **fields}),
    )


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
    asked = shown(events)
    assert asks.pending == tuple(r.id for r in asked[:2])
    with pytest.raises(OpenDevError, match="not of the kind"):
        asks.answer(asked[1].id, ("text",))
    say(asks, asked[1], "deny")
    assert (await two).decision == "deny"
    detach()
    detach()  # leaving twice is leaving once
    assert (await one).decision == "no_answer"
    answered = [e.request_id for e in events if isinstance(e, ApprovalAnswered)]
    assert answered == [asked[1].id, asked[0].id]


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


@pytest.mark.req("APR-06", "APR-08")
async def test_the_same_question_is_shown_once_and_once_allows_one_call() -> None:
    events: list[Event] = []
    asks = desk(events)
    asks.attach()
    tasks = await asking(asks, *(request("make", keep="always") for _ in range(3)), request("other"))
    assert [r.arguments["command"] for r in shown(events)] == ["make", "other"]
    assert len(asks.pending) == 4
    say(asks, shown(events)[0], "once")
    await asyncio.sleep(0)
    assert [task.done() for task in tasks] == [True, False, False, False]  # "once" ran one call
    assert [(r.agent_id, r.arguments["command"]) for r in shown(events)[2:]] == [("agent-1", "make")]
    say(asks, shown(events)[2], "deny")
    assert [(await tasks[n]).decision for n in (1, 2)] == ["deny", "deny"]  # the same refusal is said once
    say(asks, shown(events)[1], "once")
    assert (await tasks[3]).allowed
    assert len(shown(events)) == 3


async def test_a_question_that_stood_for_others_hands_over_when_its_agent_ends() -> None:
    events: list[Event] = []
    asks = desk(events)
    asks.attach()
    one, two = await asking(asks, request("make"), request("make"))
    asks.abandon("agent-0")
    assert (await one).decision == "no_answer"
    assert [r.agent_id for r in shown(events)] == ["agent-0", "agent-1"]
    say(asks, shown(events)[1], "once")
    assert (await two).decision == "once"


@pytest.mark.req("APR-06")
async def test_an_answer_for_the_session_is_not_asked_again() -> None:
    events: list[Event] = []
    asks = desk(events)
    asks.attach()
    made = [request(f"npm install {name}", keep="always") for name in "abc"]
    tasks = await asking(asks, *made, request("npm publish", keep="always"))
    say(asks, shown(events)[0], "session")
    assert [(await task).decision for task in tasks[:3]] == ["session"] * 3  # open ones that it covers, too
    assert len(asks.pending) == 1
    later = await asks.approve("agent-9", request("npm install d", keep="always"))
    assert (later.decision, later.by) == ("session", "an earlier answer")
    assert len(shown(events)) == 4
    exact = await asking(asks, request("rm -rf build", keep="session"))
    say(asks, shown(events)[4], "session")
    assert (await exact[0]).allowed
    assert (await asks.approve("b", request("rm -rf build", keep="session"))).by == "an earlier answer"
    other = await asking(asks, request("rm -rf dist", keep="session"))
    assert not other[0].done()
    asks.close()
    assert (await other[0]).decision == "no_answer"
    assert (await tasks[3]).decision == "no_answer"


@pytest.mark.req("APR-05", "APR-06")
async def test_always_is_saved_and_a_full_disk_makes_it_a_session() -> None:
    events: list[Event] = []
    saved: list[tuple[Rule, ...]] = []

    def keep(rules: tuple[Rule, ...]) -> None:
        saved.append(rules)
        if len(saved) > 1:
            raise OpenDevError(ErrorKind.INFRA, "No space left.")

    asks = desk(events, remember=keep)
    asks.attach()
    for command in ("npm install a", "cargo build"):
        (task,) = await asking(asks, request(command, keep="always"))
        say(asks, shown(events)[-1], "always")
        assert (await task).decision == "always"
    assert [[rule.pattern for rule in rules] for rules in saved] == [["npm install"], ["cargo build"]]
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "this session only" in notices[0]
    assert (await asks.approve("b", request("cargo build --release", keep="always"))).allowed
    assert len(saved) == 2


@pytest.mark.parametrize(
    ("fields", "given", "why"),
    [
        ({"keep": "session"}, {"decision": "always"}, "not offered"),
        ({}, {"decision": "session"}, "not offered"),
        ({"must_edit": True}, {"decision": "once"}, "must be changed"),
        ({"must_edit": True}, {"decision": "once", "arguments": {"command": "make"}}, "must be changed"),
        ({"keep": "always"}, {"decision": "always", "arguments": {"command": "ls"}}, "once only"),
    ],
)
async def test_an_answer_that_was_not_offered_does_not_count(
    fields: dict[str, Any], given: dict[str, Any], why: str
) -> None:
    events: list[Event] = []
    asks = desk(events)
    asks.attach()
    (task,) = await asking(asks, request("make", **fields))
    with pytest.raises(OpenDevError, match=why):
        say(asks, shown(events)[0], **given)
    assert not task.done()
    say(asks, shown(events)[0], "once", arguments={"command": "make -n"})
    assert (await task).arguments == {"command": "make -n"}
    assert [e.subject for e in events if isinstance(e, ApprovalAnswered)] == ["make -n"]


@pytest.mark.req("APR-08")
async def test_with_nobody_there_the_question_is_told_and_answered_nobody() -> None:
    events: list[Event] = []
    said = await desk(events).approve("a", request("make"))
    assert (said.decision, said.note) == ("no_answer", "no interface is attached that could ask a person")
    assert [event.kind for event in events] == ["approval_asked", "approval_answered"]
