"""Properties of the hub's pure state machines, over random histories."""

from hypothesis import given
from hypothesis import strategies as st
from opendev.actors.state import approvals, fanout, supervision
from opendev.actors.state.approvals import (
    AgentGone,
    Answered,
    Asked,
    Attached,
    Desk,
    HubLost,
    Pending,
    Settle,
    Show,
    Tick,
)
from opendev.actors.state.fanout import Caps, Ended, Fanout, Grant, Wish
from opendev.actors.state.supervision import HostDown, Over, Placed, Started, StopAsked, Tree

IDS = st.sampled_from("abcde")
ASKS = st.one_of(
    st.builds(
        Asked,
        st.builds(
            Pending,
            id=IDS,
            agent=st.sampled_from("xy"),
            digest=st.sampled_from("12"),
            deadline=st.floats(0, 9),
        ),
    ),
    st.builds(Answered, id=IDS, digest=st.sampled_from("12"), wide=st.booleans()),
    st.builds(AgentGone, agent=st.sampled_from("xy")),
    st.builds(Tick, now=st.floats(0, 9)),
    st.builds(Attached, change=st.sampled_from((-1, 1))),
    st.just(HubLost()),
)


@given(st.lists(ASKS, max_size=40))
def test_every_question_is_settled_at_most_once_and_answers_fit(history: list[approvals.Happening]) -> None:
    desk = Desk(attached=1)
    for event in history:
        before = desk
        desk, commands = approvals.step(desk, event)
        settled = [c for c in commands if isinstance(c, Settle)]
        assert len({c.id for c in settled}) == len(settled)
        for command in settled:
            assert desk.find(command.id) is None
            if command.answered:
                question = before.find(command.id)
                assert isinstance(event, Answered)
                assert question is not None
                assert question.digest == event.digest
        order = [p.id for p in before.pending if desk.find(p.id)]
        assert [p.id for p in desk.pending][: len(order)] == order  # first in, first out
        if not desk.attached:
            assert desk.pending == ()  # fail closed


@given(st.lists(ASKS, max_size=40))
def test_of_questions_that_are_the_same_people_see_one(history: list[approvals.Happening]) -> None:
    desk, shown = Desk(attached=1), set[str]()
    for event in history:
        desk, commands = approvals.step(desk, event)
        shown = {id for id in shown if desk.find(id)}
        for command in commands:
            if isinstance(command, Show):
                assert command.id not in shown
                shown.add(command.id)
        digests = [p.digest for p in desk.pending if p.id in shown]
        assert sorted(digests) == sorted({p.digest for p in desk.pending})


@given(st.lists(st.tuples(st.booleans(), IDS, IDS, st.integers(0, 4)), max_size=60))
def test_fanout_never_passes_its_caps(history: list[tuple[bool, str, str, int]]) -> None:
    caps = Caps(depth=2, total=20, children=4)
    state, granted = Fanout(caps), 0
    for number, (end, parent, child, depth) in enumerate(history):
        event = Ended(child) if end else Wish(parent, depth, f"{child}{number}")
        state, decisions = fanout.step(state, event)
        for decision in decisions:
            if isinstance(decision, Grant):
                granted += 1
                assert decision.depth <= caps.depth
        assert granted == state.spawned <= caps.total
        assert all(state.children(p) <= caps.children for p in "abcde")


@given(
    st.lists(st.tuples(st.sampled_from(("start", "stop", "over", "down", "place")), IDS, IDS), max_size=40)
)
def test_nobody_outlives_its_parent_unasked_and_stops_come_once(history: list[tuple[str, str, str]]) -> None:
    tree = Tree()
    stopped: dict[str, int] = {}
    for kind, one, other in history:
        if kind == "start" and (tree.find(one) or one == other or (tree.nodes and not tree.find(other))):
            continue  # a parent lives and a child is new, as the broker sees to
        event: supervision.Happening = {
            "start": Started(one, other if tree.find(other) else ""),
            "stop": StopAsked(one, "why"),
            "over": Over(one),
            "down": HostDown(other, "died"),
            "place": Placed(one, other),
        }[kind]
        if kind == "start":
            stopped.pop(one, None)
        below = [n.agent for n in tree.subtree(one)]
        tree, commands = supervision.step(tree, event)
        for command in commands:
            if isinstance(command, supervision.Stop):
                stopped[command.agent] = stopped.get(command.agent, 0) + 1
                assert stopped[command.agent] == 1
        if kind == "over":
            orphans = [a for a in below if a != one]
            assert all((n := tree.find(a)) is None or n.stopping for a in orphans)
        if kind == "stop":
            assert all(n.stopping for n in tree.subtree(one))
