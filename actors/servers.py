"""The MCP servers of one worker process: started with the first agent that may call them, ended with the last one, or with the conversation."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from ..core.agent import AgentTask
from ..core.clock import Clock, iso
from ..core.events import Notice
from ..core.ports import EventSink
from ..tools.mcp.config import McpServer
from ..tools.mcp.manager import McpManager
from ..tools.mcp.names import PREFIX


class SharedServers:
    """``env`` is what a server's process gets: no keys, the run's mark."""

    def __init__(self, servers: tuple[McpServer, ...], env: Mapping[str, str], clock: Clock) -> None:
        self._servers, self._env, self._clock = servers, env, clock
        self._manager: McpManager | None = None
        self._users = 0
        self._stale = False
        self._latest: tuple[AgentTask, EventSink] | None = None  # who is told of trouble

    @asynccontextmanager
    async def used_by(
        self, task: AgentTask, emit: EventSink, *, keep: bool = False
    ) -> AsyncGenerator[McpManager | None]:
        """The servers while an agent runs; None where there are none or its tool list names none of their tools.

        ``keep``: they stay for its next run.
        """
        if not self._servers or not _may_call(task):
            yield None
            return
        self._users += 1
        self._latest = (task, emit)
        if self._manager is None:
            self._manager = McpManager(self._servers, self._env, self._tell)
            self._manager.start()
        try:
            yield self._manager
        finally:
            self._users -= 1
            if not keep or self._stale:
                await self.close()

    async def fit(self, servers: tuple[McpServer, ...]) -> None:
        """From the next agent on these; who uses the others keeps them to its end."""
        self._stale = self._stale or (self._manager is not None and servers != self._servers)
        self._servers = servers
        if self._stale:
            await self.close()

    async def close(self) -> None:
        """End the servers that no agent uses."""
        if self._users == 0 and self._manager is not None:
            manager, self._manager, self._stale = self._manager, None, False
            await manager.close()

    def _tell(self, text: str) -> None:
        if self._latest is not None:
            task, emit = self._latest
            at = iso(self._clock.now())
            emit(Notice(run=task.run_id, agent=task.id, at=at, level="warning", text=text))


def _may_call(task: AgentTask) -> bool:
    tools = task.spec.tools
    if task.recipe or not task.spec.calls_model:
        return False
    return tools is None or any(name.startswith(PREFIX) for name in tools)
