"""What search_tools looks through: the deferred tools of one agent's registry, and how their servers are."""

from collections.abc import Iterable

from ...core.chat import ToolSchema
from ..registry import ToolRegistry
from .manager import McpManager


class Directory:
    """Implements ``core.ports.ToolDirectory``; ``manager`` None: there are no servers."""

    def __init__(self, registry: ToolRegistry, manager: McpManager | None) -> None:
        self._registry, self._manager = registry, manager

    def deferred(self) -> tuple[ToolSchema, ...]:
        """All tools that are sent only once activated."""
        return self._registry.deferred()

    async def settled(self, wait_s: float) -> tuple[str, ...]:
        """Wait for servers that are starting; a sentence for each that is not there."""
        return await self._manager.settled(wait_s) if self._manager else ()


def servers_note(names: Iterable[str]) -> str:
    """The part of the system prompt that names the servers; empty without any."""
    listed = ", ".join(sorted(names))[:1_000]
    return f"\n\n# MCP servers\n\nFind their tools with search_tools: {listed}" if listed else ""
