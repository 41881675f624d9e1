"""The board of a run: who has claimed what, by compare-and-swap, for how long; and the notes of its agents (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

NOTES = 200  # kept; the oldest go first
CLAIMS = 1000  # at once; a further one is refused


@dataclass(frozen=True, slots=True)
class Claim:
    """``owner`` holds a key until ``until`` (monotonic time). ``version`` grows with every change of hands."""

    owner: str
    version: int
    until: float


@dataclass(frozen=True, slots=True)
class Note:
    """What ``author`` found out about ``paths`` (root-relative)."""

    author: str
    text: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """The state. ``serial`` is the highest version ever given: a key that was forgotten does not start over."""

    serial: int = 0
    claims: Mapping[str, Claim] = field(default_factory=dict[str, Claim])
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Take:
    """``owner`` wants ``key`` for ``ttl`` seconds. ``expected`` is the version it saw last (0: nobody ever had it; None: any)."""

    key: str
    owner: str
    at: float
    ttl: float
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class Give:
    """``owner`` gives ``key`` back; without effect when its claim ran out and another took it since."""

    key: str
    owner: str
    version: int


@dataclass(frozen=True, slots=True)
class Taken:
    """It has the key now; ``version`` is needed to give it back."""

    version: int


@dataclass(frozen=True, slots=True)
class Held:
    """It has not: ``owner`` holds the key, or the version it saw is not the present one, or the board is full (no owner)."""

    owner: str
    version: int


def step(board: Board, event: Take | Give | Note) -> tuple[Board, Taken | Held | None]:
    """The next state and the answer. An owner that takes its own key again prolongs it."""
    match event:
        case Note():
            return replace(board, notes=(*board.notes, event)[-NOTES:]), None
        case Give(key, owner, version):
            held = board.claims.get(key)
            if held is None or (held.owner, held.version) != (owner, version):
                return board, None
            return replace(board, claims={k: c for k, c in board.claims.items() if k != key}), None
        case Take():
            return _take(board, event)


def _take(board: Board, wish: Take) -> tuple[Board, Taken | Held]:
    held = board.claims.get(wish.key)
    version = held.version if held else 0
    busy = held is not None and held.until > wish.at and held.owner != wish.owner
    if busy or (wish.expected is not None and wish.expected != version):
        return board, Held(held.owner if held else "", version)
    living = {key: claim for key, claim in board.claims.items() if claim.until > wish.at or key == wish.key}
    if len(living) >= CLAIMS and wish.key not in living:
        return board, Held("", version)  # never by dropping a claim that somebody relies on
    mine = Claim(wish.owner, board.serial + 1, wish.at + wish.ttl)
    return replace(board, claims={**living, wish.key: mine}, serial=mine.version), Taken(mine.version)
