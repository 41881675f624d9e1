"""How many agents work at once, in the whole tree; a parent that waits for its children lends its permit (no deadlock)."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable


class Permits:
    """First come, first served. ``take`` and ``end`` belong together; between them ``lent`` may give the permit up.

    ``on_lent`` is called whenever an agent begins to wait for others.
    """

    def __init__(self, count: int, on_lent: Callable[[], None]) -> None:
        self._free = count
        self._on_lent = on_lent
        self._queue: deque[asyncio.Future[None]] = deque()
        self._members: set[str] = set()
        self._holders: set[str] = set()
        self._lent: dict[str, int] = {}
        self.peak = 0

    @property
    def held(self) -> int:
        """How many agents work now."""
        return len(self._holders)

    def holds(self, agent: str) -> bool:
        """Whether the agent works now; one that waits for others, or for a permit, does not."""
        return agent in self._holders

    async def take(self, agent: str) -> None:
        """Wait for a permit."""
        self._members.add(agent)
        if self._free > 0 and not self._queue:
            self._free -= 1
        else:
            place = asyncio.get_running_loop().create_future()
            self._queue.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._give()
                elif place in self._queue:
                    self._queue.remove(place)
                raise
        # It ended while it queued, or waits for others again, or queued twice (two of its calls came back at once).
        if agent not in self._members or self._lent.get(agent) or agent in self._holders:
            self._give()
            return
        self._holders.add(agent)
        self.peak = max(self.peak, len(self._holders))

    def end(self, agent: str) -> None:
        """The agent is over, however it ended; idempotent."""
        self._members.discard(agent)
        self._lent.pop(agent, None)
        if agent in self._holders:
            self._holders.discard(agent)
            self._give()

    @contextlib.asynccontextmanager
    async def lent(self, agent: str) -> AsyncGenerator[None]:
        """While inside, the agent only waits for others and counts as idle."""
        self._lent[agent] = self._lent.get(agent, 0) + 1
        if agent in self._holders:
            self._holders.discard(agent)
            self._give()
            self._on_lent()
        try:
            yield
        finally:
            left = self._lent.get(agent, 1) - 1
            self._lent[agent] = left
            if not left and agent in self._members and agent not in self._holders:
                await self.take(agent)

    def _give(self) -> None:
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
