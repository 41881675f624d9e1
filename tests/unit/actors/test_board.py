"""The board: claims by compare-and-swap that end by themselves, notes to those they concern, no twins in the background."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.actors.board import Board, BoardPorts
from opendev.actors.local_runtime import LocalRuntime
from opendev.actors.state import board
from opendev.actors.state.board import NOTES, Claim, Give, Held, Note, Take, Taken
from opendev.core.agent import AgentTask
from opendev.core.scope import Scope
from support.fixed_clock import FixedClock
from support.runtimes import SPECS, hub_on, script, task_of
from support.waiting import until


def test_a_claim_is_taken_once_given_back_once_and_ends_by_itself() -> None:
    state, mine = board.step(board.Board(), Take("k", "a", at=0.0, ttl=10.0))
    assert mine == Taken(1)
    assert board.step(state, Take("k", "b", at=5.0, ttl=10.0))[1] == Held("a", 1)
    state, longer = board.step(state, Take("k", "a", at=5.0, ttl=10.0))  # its owner prolongs it
    assert longer == Taken(2)
    assert board.step(state, Take("k", "b", at=14.9, ttl=1.0))[1] == Held("a", 2)
    state, late = board.step(state, Take("k", "b", at=15.0, ttl=10.0))
    assert late == Taken(3)
    assert board.step(state, Give("k", "a", 2))[0] == state  # who overslept takes nothing away
    state, _ = board.step(state, Give("k", "b", 3))
    assert state.claims == {}


def test_who_saw_an_older_version_loses() -> None:
    state, _ = board.step(board.Board(), Take("k", "a", at=0.0, ttl=1.0, expected=0))
    assert state.claims == {"k": Claim("a", 1, 1.0)}
    assert board.step(state, Take("k", "b", at=5.0, ttl=1.0, expected=0))[1] == Held("a", 1)
    assert board.step(state, Take("k", "b", at=5.0, ttl=1.0, expected=1))[1] == Taken(2)


@pytest.mark.req("ACT-04")
def test_a_full_board_refuses_and_drops_no_claim_that_holds() -> None:
    state = board.Board()
    for number in range(board.CLAIMS):
        state, _ = board.step(state, Take(str(number), "a", at=0.0, ttl=10.0))
    full, refused = board.step(state, Take("more", "b", at=1.0, ttl=10.0))
    assert (full, refused) == (state, Held("", 0))
    assert board.step(state, Take("0", "b", at=1.0, ttl=1.0))[1] == Held("a", 1)
    assert isinstance(board.step(state, Take("0", "a", at=1.0, ttl=1.0))[1], Taken)  # its owner prolongs it
    later, taken = board.step(state, Take("more", "b", at=11.0, ttl=1.0))
    assert (taken, set(later.claims)) == (Taken(board.CLAIMS + 1), {"more"})


@pytest.mark.req("ACT-04")
def test_a_version_seen_once_never_comes_back_for_another_claim() -> None:
    state, first = board.step(board.Board(), Take("k", "a", at=0.0, ttl=1.0))
    state, _ = board.step(state, Take("other", "x", at=5.0, ttl=1.0))  # the claim of k is forgotten
    state, second = board.step(state, Take("k", "b", at=6.0, ttl=1.0, expected=0))
    assert isinstance(first, Taken)
    assert isinstance(second, Taken)
    assert second.version > first.version
    assert isinstance(board.step(state, Take("k", "c", at=9.0, ttl=1.0, expected=first.version))[1], Held)


events = st.lists(
    st.one_of(
        st.builds(
            Take,
            st.sampled_from("xy"),
            st.sampled_from("abc"),
            at=st.just(0.0),
            ttl=st.integers(1, 5).map(float),
            expected=st.none() | st.integers(0, 4),
        ),
        st.builds(Give, st.sampled_from("xy"), st.sampled_from("abc"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(events)
def test_no_two_ever_hold_a_key_at_once(happenings: list[Take | Give]) -> None:
    state = board.Board()
    holder: dict[str, tuple[str, float]] = {}
    for now, event in enumerate(happenings):
        before = holder.get(event.key)
        if isinstance(event, Give):
            state, _ = board.step(state, event)
            if event.key not in state.claims:
                holder.pop(event.key, None)
            continue
        wish = Take(event.key, event.owner, float(now), event.ttl, event.expected)
        state, answer = board.step(state, wish)
        if isinstance(answer, Taken):
            assert before is None or before[0] == event.owner or before[1] <= now
            holder[event.key] = (event.owner, now + event.ttl)


async def test_a_note_reaches_writers_in_whose_scope_it_falls(tmp_path: Path) -> None:
    def task(id: str, agent: str, may: str, ticket: str) -> AgentTask:
        scope = Scope(may=(may,))
        return task_of(
            "r", tmp_path, id=id, spec=SPECS[agent], scope=scope, scopes=("run:r", f"task:{ticket}")
        )

    living = (
        task("mine", "Writer", "src/**", "one"),
        task("near", "Writer", "src/**", "two"),
        task("far", "Writer", "docs/**", "three"),
        task("reader", "Leaf", "src/**", "four"),
        task("deaf", "Writer", "src/**", "five"),
    )
    told: list[tuple[str, str]] = []

    async def deliver(agent: str, text: str) -> bool:
        told.append((agent, text))
        return agent != "deaf"

    made = Board(BoardPorts(lambda: living, deliver, FixedClock()))
    assert await made.post("one", "It landed.", ("src/a.py",)) == ("near",)
    assert told == [("near", "It landed."), ("deaf", "It landed.")]
    for number in range(NOTES + 3):
        await made.post("one", str(number), ())
    assert len(made.notes) == NOTES
    assert made.notes[-1] == Note("one", str(NOTES + 2), ())


async def test_the_same_task_is_not_started_twice_beside_itself(tmp_path: Path) -> None:
    """A parent that forgot its child, after a compaction for example, is told of it (openclaw#116015)."""
    twin = {"agent": "Leaf", "prompt": script(["sleep", 0.4], ["say", "x"])}
    async with hub_on(LocalRuntime(), tmp_path) as hub:
        steps = (["spawn", {**twin, "background": True}], ["spawn", twin], ["sleep", 0.6], ["spawn", twin])
        run = asyncio.create_task(hub.run_agent(task_of("r", tmp_path, *steps)))
        await until(lambda: any(task.depth for task in hub.living))
        report = await run
    started, refused, _, again = report.text.splitlines()[:1] + report.text.splitlines()[1:4]
    assert f"Your sub-agent {started} works on exactly this task already." in refused
    assert again.startswith("done:slept")
    assert hub.counts.spawned == 3
