"""Who may start a sub-agent: caps on depth, on descendants in total and on children at once, and a breaker that opens when
sub-agents end one after the other without having done anything (SUB-18, case W05)."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Caps:
    """``depth`` counts from the main agent (0); ``total`` spawns in one run; ``children`` of one parent alive at once;
    after ``barren`` ends in a row without progress one sub-agent at a time is tried, ``cool_s`` after the last such end."""

    depth: int = 2
    total: int = 200
    children: int = 16
    barren: int = 5
    cool_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Wish:
    """A parent at ``depth`` wants to start ``child``; ``at`` is monotonic time."""

    parent: str
    depth: int
    child: str
    may_spawn: bool = True
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A sub-agent is over. ``progress`` None: it says nothing about the next one (it was cancelled)."""

    child: str
    progress: bool | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Grant:
    """Start it, at this depth."""

    child: str
    depth: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which cap said no, and the sentence for the agent that asked."""

    child: str
    cap: Literal["rights", "depth", "total", "children", "progress"]
    why: str


@dataclass(frozen=True, slots=True)
class Fanout:
    """The state: spawns so far, ends in a row without progress and the time of the last, parent of each living sub-agent."""

    caps: Caps
    spawned: int = 0
    barren: int = 0
    barren_at: float = 0.0
    alive: tuple[tuple[str, str], ...] = ()  # (child, parent)

    def children(self, parent: str) -> int:
        """How many sub-agents of ``parent`` live."""
        return sum(1 for _, p in self.alive if p == parent)


def step(state: Fanout, event: Wish | Ended) -> tuple[Fanout, tuple[Grant | Refusal, ...]]:
    """The next state and the decision."""
    match event:
        case Ended(child, progress, at):
            left = replace(state, alive=tuple(pair for pair in state.alive if pair[0] != child))
            if progress is not None:
                left = replace(left, barren=0 if progress else state.barren + 1, barren_at=at)
            return left, ()
        case Wish(parent, depth, child):
            refusal = _refusal(state, event)
            if refusal is not None:
                return state, (refusal,)
            grown = replace(state, spawned=state.spawned + 1, alive=(*state.alive, (child, parent)))
            return grown, (Grant(child, depth + 1),)


def _refusal(state: Fanout, wish: Wish) -> Refusal | None:
    caps = state.caps
    if not wish.may_spawn:
        return Refusal(wish.child, "rights", "This agent may not start sub-agents. Do the work yourself.")
    if wish.depth >= caps.depth:
        why = f"Sub-agents may be nested {caps.depth} deep and this agent is at that depth. Do the work yourself."
        return Refusal(wish.child, "depth", why)
    if state.spawned >= caps.total:
        why = f"This run has started {state.spawned} sub-agents, which is its limit. Go on without new ones."
        return Refusal(wish.child, "total", why)
    if state.children(wish.parent) >= caps.children:
        why = f"{caps.children} sub-agents of this agent run already. Wait for one to end before starting another."
        return Refusal(wish.child, "children", why)
    return _fruitless(state, wish)


def _fruitless(state: Fanout, wish: Wish) -> Refusal | None:
    """The breaker. It closes again with the first sub-agent that gets somewhere."""
    caps = state.caps
    if state.barren < caps.barren or (wish.at >= state.barren_at + caps.cool_s and not state.alive):
        return None
    why = (
        f"The last {state.barren} sub-agents ended without having done anything; more of them would cost and bring nothing. "
        f"Do the work yourself; {caps.cool_s:.0f} s after the last one ended, a single one may be tried."
    )
    return Refusal(wish.child, "progress", why)
