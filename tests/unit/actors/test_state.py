"""The state machines, case by case (SUB-18, W05, flow "An approval")."""

import pytest
from opendev.actors.state import approvals, fanout, supervision
from opendev.actors.state.approvals import (
    AgentGone,
    Answered,
    Asked,
    Attached,
    Desk,
    Pending,
    Refuse,
    Settle,
    Show,
    Tick,
)
from opendev.actors.state.fanout import Caps, Ended, Fanout, Grant, Refusal, Wish
from opendev.actors.state.supervision import Bury, HostDown, Node, Over, Stop, StopAsked, Tree


def question(id: str, deadline: float = 300.0) -> Pending:
    return Pending(id, agent=f"agent-{id}", digest=f"digest-{id}", deadline=deadline)


def test_two_questions_at_once_are_both_answered() -> None:
    desk, one = approvals.step(Desk(attached=1), Asked(question("a")))
    desk, two = approvals.step(desk, Asked(question("b")))
    assert (one, two) == ((Show("a"),), (Show("b"),))
    desk, said_b = approvals.step(desk, Answered("b", "digest-b"))
    desk, said_a = approvals.step(desk, Answered("a", "digest-a"))
    assert (said_b, said_a, desk.pending) == (
        (Settle("b", answered=True),),
        (Settle("a", answered=True),),
        (),
    )
    _, again = approvals.step(desk, Answered("a", "digest-a"))
    assert isinstance(again[0], Refuse)


def test_a_stale_digest_is_refused_and_the_question_stays_open() -> None:
    desk, _ = approvals.step(Desk(attached=1), Asked(question("a")))
    after, commands = approvals.step(desk, Answered("a", "other"))
    assert after == desk
    assert isinstance(commands[0], Refuse)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (Tick(300.0), "nobody answered in time"),
        (AgentGone("agent-a"), "the agent that asked has ended"),
        (Attached(-1), "no interface is attached any more"),
        (approvals.HubLost(), "the run is being stopped"),
    ],
)
def test_silence_is_no_answer(event: approvals.Happening, why: str) -> None:
    desk, _ = approvals.step(Desk(attached=1), Asked(question("a")))
    _, commands = approvals.step(desk, event)
    assert commands == (Settle("a", answered=False, why=why),)


def test_with_nobody_attached_or_too_many_open_the_answer_is_immediate() -> None:
    desk, commands = approvals.step(Desk(), Asked(question("a")))
    assert (desk.pending, isinstance(commands[0], Settle)) == ((), True)
    full = Desk(pending=(question("a"),), attached=1, limit=1)
    after, commands = approvals.step(full, Asked(question("b")))
    assert (after, isinstance(commands[0], Settle)) == (full, True)


@pytest.mark.req("SUB-18")
def test_depth_total_and_children_are_capped_with_a_sentence() -> None:
    state = Fanout(Caps(depth=2, total=3, children=2))
    state, (one,) = fanout.step(state, Wish("m", 0, "a"))
    assert one == Grant("a", 1)
    _, (deep,) = fanout.step(state, Wish("x", 2, "b"))
    assert isinstance(deep, Refusal)
    assert (deep.cap, "2 deep" in deep.why) == ("depth", True)
    state, _ = fanout.step(state, Wish("m", 0, "b"))
    _, (wide,) = fanout.step(state, Wish("m", 0, "c"))
    assert isinstance(wide, Refusal)
    assert wide.cap == "children"
    state, _ = fanout.step(state, Ended("a"))
    state, (third,) = fanout.step(state, Wish("m", 0, "c"))
    assert isinstance(third, Grant)
    _, (spent,) = fanout.step(state, Wish("z", 0, "d"))
    assert isinstance(spent, Refusal)
    assert spent.cap == "total"
    _, (right,) = fanout.step(state, Wish("z", 0, "d", may_spawn=False))
    assert isinstance(right, Refusal)
    assert right.cap == "rights"


def test_children_stop_before_their_parents_and_orphans_are_stopped() -> None:
    tree = Tree((Node("m", "", "h1"), Node("a", "m", "h2"), Node("b", "a", "h2")))
    stopped, commands = supervision.step(tree, StopAsked("m", "why"))
    assert commands == (Stop("b", "why"), Stop("a", "why"), Stop("m", "why"))
    assert supervision.step(stopped, StopAsked("m", "again"))[1] == ()
    after, commands = supervision.step(tree, Over("m"))
    assert [c.agent for c in commands] == ["b", "a"]
    assert after.find("m") is None


def test_a_host_takes_only_its_own_agents_along() -> None:
    tree = Tree((Node("m", "", "h1"), Node("a", "m", "h2"), Node("b", "a", "h2")))
    assert supervision.step(tree, HostDown("h2", "killed"))[1] == (Bury("a", "killed"), Bury("b", "killed"))


def test_the_breaker_opens_after_ends_in_a_row_without_progress_and_closes_with_the_first_that_has_some() -> (
    None
):
    state = Fanout(Caps(barren=3, cool_s=60.0))

    def one(progress: bool | None, at: float) -> None:
        nonlocal state
        state, (grant,) = fanout.step(state, Wish("m", 0, "a", at=at))
        assert isinstance(grant, Grant), grant
        state, _ = fanout.step(state, Ended("a", progress, at))

    def refused(at: float) -> bool:
        _, (decision,) = fanout.step(state, Wish("m", 0, "a", at=at))
        return isinstance(decision, Refusal) and decision.cap == "progress"

    for progress in (False, False, True, False, False, None):  # one that got somewhere starts the count again
        one(progress, 0.0)
    one(progress=False, at=10.0)
    assert [refused(at) for at in (10.0, 69.9)] == [True, True]
    tried, (probe,) = fanout.step(state, Wish("m", 0, "p", at=70.0))
    assert isinstance(probe, Grant)
    _, (second,) = fanout.step(tried, Wish("m", 0, "q", at=70.0))
    assert isinstance(second, Refusal)  # one at a time
    state, _ = fanout.step(tried, Ended("p", progress=False, at=80.0))
    assert [refused(at) for at in (100.0, 139.0, 140.0)] == [True, True, False]
    one(progress=True, at=140.0)
    assert not refused(140.0)
