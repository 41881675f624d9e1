"""Esc, Ctrl-C and Ctrl-D in every state there is: the innermost thing first, and leaving never by accident (TUI-03, U06)."""

from dataclasses import astuple, fields
from itertools import product

import pytest
from opendev.ui.repl.state import Key, State, Stop, stop

EVERY = [State(*flags) for flags in product((False, True), repeat=len(fields(State)))]


def expected(state: State, key: Key) -> Stop:
    """The table as the documentation tells it, said once more in another way."""
    question, listing, busy, stopping, draft, warned = astuple(state)
    leaves = Stop.LEAVE if warned else Stop.WARN
    if key is Key.CTRL_D:
        return Stop.NOTHING if question or draft else (leaves if busy else Stop.LEAVE)
    rows = (
        (question, Stop.CANCEL_QUESTION),
        (listing, Stop.CLOSE_LIST),
        (busy and not stopping, Stop.INTERRUPT),
        (draft, Stop.CLEAR),
        (True, Stop.NOTHING if key is Key.ESC else leaves),
    )
    return next(what for when, what in rows if when)


@pytest.mark.req("TUI-03")
@pytest.mark.parametrize("key", Key)
def test_every_state(key: Key) -> None:
    assert {state: stop(state, key) for state in EVERY} == {state: expected(state, key) for state in EVERY}


@pytest.mark.req("TUI-03")
def test_a_question_is_cancelled_before_the_agent() -> None:
    state = State(question=True, busy=True, draft=True, listing=True)
    assert stop(state, Key.ESC) is stop(state, Key.CTRL_C) is Stop.CANCEL_QUESTION


def test_esc_never_leaves_and_nothing_leaves_with_a_draft_or_a_question() -> None:
    assert all(stop(state, Key.ESC) not in (Stop.LEAVE, Stop.WARN) for state in EVERY)
    held = [state for state in EVERY if state.draft or state.question]
    assert all(stop(state, key) is not Stop.LEAVE for state in held for key in Key)


def test_work_is_never_cut_short_by_one_key() -> None:
    busy = [state for state in EVERY if state.busy and not state.warned]
    assert all(stop(state, key) is not Stop.LEAVE for state in busy for key in Key)


def test_an_agent_that_does_not_stop_can_be_left() -> None:
    stuck = State(busy=True, stopping=True)
    assert stop(stuck, Key.CTRL_C) is Stop.WARN
    assert stop(State(busy=True, stopping=True, warned=True), Key.CTRL_C) is Stop.LEAVE
