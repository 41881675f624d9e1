"""What Esc, Ctrl-C and Ctrl-D mean, as a pure table: the innermost thing is stopped first, and nothing typed is lost by accident."""

from dataclasses import dataclass
from enum import StrEnum


class Key(StrEnum):
    """The keys that stop something."""

    ESC = "esc"
    CTRL_C = "ctrl-c"
    CTRL_D = "ctrl-d"


class Stop(StrEnum):
    """What such a key does."""

    CANCEL_QUESTION = "cancel the question"
    CLOSE_LIST = "close the list of completions"
    INTERRUPT = "interrupt the agent"
    CLEAR = "clear the input"
    WARN = "say that the same key again leaves"
    LEAVE = "leave"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class State:
    """What is on the screen. ``warned``: the last key was this one too, and it was answered with ``WARN``."""

    question: bool = False  # a menu waits for an answer
    listing: bool = False  # completions are shown
    busy: bool = False  # the agent works
    stopping: bool = False  # it was interrupted and has not ended yet
    draft: bool = False  # something is typed
    warned: bool = False


def stop(state: State, key: Key) -> Stop:
    """The one thing that ``key`` stops (TUI-03). Esc never leaves; Ctrl-D deletes a character where something is typed."""
    inner = _innermost(state)
    match key:
        case Key.ESC:
            return inner
        case Key.CTRL_C:
            return inner if inner is not Stop.NOTHING else _leave(state)
        case Key.CTRL_D:
            return Stop.NOTHING if state.question or state.draft else _quit(state)


def _innermost(state: State) -> Stop:
    if state.question:
        return Stop.CANCEL_QUESTION
    if state.listing:
        return Stop.CLOSE_LIST
    if state.busy and not state.stopping:
        return Stop.INTERRUPT
    return Stop.CLEAR if state.draft else Stop.NOTHING


def _leave(state: State) -> Stop:
    return Stop.LEAVE if state.warned else Stop.WARN


def _quit(state: State) -> Stop:
    """Ctrl-D leaves at once, unless work would be cut short: then only the second time."""
    return _leave(state) if state.busy else Stop.LEAVE
