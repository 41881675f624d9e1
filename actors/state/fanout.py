"""Who may start a sub-agent: caps on depth, on descendants in total and on children at once (SUB-18, case W05)."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Caps:
    """``depth`` counts from the main agent (0); ``total`` spawns in one run; ``children`` of one parent alive at once."""

    depth: int = 2
    total: int = 200
    children: int = 16


@dataclass(frozen=True, slots=True)
class Wish:
    """A parent at ``depth`` wants to start ``child``."""

    parent: str
    depth: int
    child: str
    may_spawn: bool = True


@dataclass(frozen=True, slots=True)
class Ended:
    """A sub-agent is over."""

    child: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Start it, at this depth."""

    child: str
    depth: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Which cap said no, and the sentence for the agent that asked."""

    child: str
    cap: Literal["rights", "depth", "total", "children"]
    why: str


@dataclass(frozen=True, slots=True)
class Fanout:
    """The state: spawns so far, and parent of each living sub-agent."""

    caps: Caps
    spawned: int = 0
    alive: tuple[tuple[str, str], ...] = ()  # (child, parent)

    def children(self, parent: str) -> int:
        """How many sub-agents of ``parent`` live."""
        return sum(1 for _, p in self.alive if p == parent)


def step(state: Fanout, event: Wish | Ended) -> tuple[Fanout, tuple[Grant | Refusal, ...]]:
    """The next state and the decision."""
    match event:
        case Ended(child):
            return replace(state, alive=tuple(pair for pair in state.alive if pair[0] != child)), ()
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
    return None
