"""The run's board, kept by the hub: claims that end by themselves, and notes for the agents whose files they concern (ACT-04)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..core.agent import AgentTask
from ..core.clock import Clock
from .state import board
from .state.board import Give, Held, Note, Take, Taken

NOTE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class BoardPorts:
    """What the board needs of the hub: the living agents, and a way to give one a message (False: it takes none)."""

    living: Callable[[], tuple[AgentTask, ...]]
    deliver: Callable[[str, str], Awaitable[bool]]
    clock: Clock


class Board:
    """No agent reaches another but through here."""

    def __init__(self, ports: BoardPorts) -> None:
        self._ports, self._state = ports, board.Board()

    @property
    def notes(self) -> tuple[Note, ...]:
        """The latest notes, oldest first."""
        return self._state.notes

    def claim(self, key: str, owner: str, ttl_s: float, expected: int | None = None) -> Taken | Held:
        """Take ``key`` if it is free or its claim ran out."""
        wish = Take(key, owner, self._ports.clock.monotonic(), ttl_s, expected)
        self._state, answer = board.step(self._state, wish)
        return answer if answer is not None else Held("", 0)

    def holder(self, key: str) -> str:
        """Who holds ``key`` now; empty when nobody does."""
        held = self._state.claims.get(key)
        return held.owner if held is not None and held.until > self._ports.clock.monotonic() else ""

    def release(self, key: str, owner: str, version: int) -> None:
        """Give ``key`` back."""
        self._state, _ = board.step(self._state, Give(key, owner, version))

    async def post(self, author: str, text: str, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Keep a note and tell every running agent whose scope holds one of ``paths``, but not those of the ticket ``author``
        and none that follows a recipe. The ids of those that took it."""
        note = Note(author, text[:NOTE_CHARS], paths)
        self._state, _ = board.step(self._state, note)
        told = [
            task.id
            for task in self._ports.living()
            if f"task:{author}" not in task.scopes
            and task.spec.writes
            and not task.recipe
            and any(task.scope.allows(path) for path in paths)
        ]
        return tuple([agent for agent in told if await self._ports.deliver(agent, note.text)])
