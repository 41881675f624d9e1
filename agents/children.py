"""The background sub-agents an agent started and has not heard of yet: the end waits for them (LOOP-14, SUB-08, SUB-09)."""

import asyncio
from collections.abc import Callable

from ..core.agent import AgentReport
from ..core.errors import ErrorInfo
from ..core.ports import Spawner
from ..core.tool import ToolResult

WAIT_S = 120.0  # of one refused end
FIRST_PAUSE_S, PAUSE_S = 0.05, 2.0  # between two looks at the broker and the inbox
_RUNNING = "running"


class Children:
    """Learns of sub-agents from the results of tool calls; asks the broker for the reports of those in the background."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._running: dict[str, None] = {}
        self.returned = 0  # reports that came back since the last call of ``take_returned``

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of those whose report the agent has not seen, oldest first."""
        return tuple(self._running)

    def note(self, result: ToolResult) -> None:
        """Take in the result of a call, whatever the tool; only those about sub-agents carry an ``agent_id``."""
        data = result.data or {}
        agent_id = data.get("agent_id")
        if not isinstance(agent_id, str):
            return
        if data.get("status") == _RUNNING:
            self._running[agent_id] = None
        else:
            self._running.pop(agent_id, None)
            self.returned += 1

    def take_returned(self) -> int:
        """How many reports came back since the last call."""
        count, self.returned = self.returned, 0
        return count

    async def ended(self, wait_s: float = 0.0) -> tuple[tuple[str, AgentReport | ErrorInfo], ...]:
        """Those that ended meanwhile, with their reports; each is told once."""
        ids = self.running
        answers = await asyncio.gather(*(self._spawner.output(id, wait_s) for id in ids))
        found = [(id, answer) for id, answer in zip(ids, answers, strict=True) if not isinstance(answer, str)]
        for id, _ in found:
            self._running.pop(id, None)
        return tuple(found)

    async def wait(
        self, until: Callable[[], bool], wait_s: float = WAIT_S
    ) -> tuple[tuple[str, AgentReport | ErrorInfo], ...]:
        """``ended``, as soon as one has, ``until`` holds, or the time is over."""
        pause = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(wait_s):
                while self._running and not until():
                    if found := await self.ended():
                        return found
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, PAUSE_S)
        except TimeoutError:
            pass  # they still run: the caller says so
        return ()
