"""The MCP servers of one process: started beside the work, their tools as they are now, all ended together (MCP-01, MCP-07)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...core.errors import ErrorKind, OpenDevError
from ...core.tool import Tool
from .config import McpServer
from .link import LinkState, LinkStatus, ServerLink
from .remote import remote_tool

MAX_NOTES = 100
_DOWN = (LinkState.FAILED, LinkState.NEEDS_LOGIN, LinkState.WAITING)


def _nobody(_text: str) -> None:
    """Nobody is told."""


class McpManager:
    """``env`` is the environment of stdio servers (no keys; it holds the run's marks). ``notify`` is told each new trouble once."""

    def __init__(
        self, servers: Iterable[McpServer], env: Mapping[str, str], notify: Callable[[str], None] = _nobody
    ) -> None:
        self._notify = notify
        self._links = {server.name: ServerLink(server, env, self._news) for server in servers}
        self._tools: tuple[Tool[Any], ...] = ()
        self._told: dict[str, None] = {}

    def start(self) -> None:
        """Start every server; returns at once, whatever they do (X03). Idempotent."""
        for link in self._links.values():
            link.start()

    def tools(self) -> tuple[Tool[Any], ...]:
        """The tools of all servers as they are now; a bad one is left out and told of (X10)."""
        return self._tools

    def status(self) -> tuple[LinkStatus, ...]:
        """Every server, sorted by name."""
        return tuple(self._links[name].status for name in sorted(self._links))

    def link(self, server: str) -> ServerLink:
        """The server of this name; ``KeyError`` when there is none."""
        return self._links[server]

    async def settled(self, wait_s: float) -> tuple[str, ...]:
        """Wait for the first try of every server, together at most ``wait_s`` seconds; a sentence for each that is not there."""
        await asyncio.gather(*(link.settled(wait_s) for link in self._links.values()))
        return tuple(
            f"The MCP server {s.name}: {s.state.value}. {s.why}".rstrip()
            for s in self.status()
            if s.state is not LinkState.READY
        )

    async def close(self) -> None:
        """End every server; returns when all their processes are dead. Idempotent."""
        await asyncio.gather(*(link.stop() for link in self._links.values()))

    def _news(self) -> None:
        """Build the tools again: the servers, and the tools of each, in the order of their names."""
        found: dict[str, Tool[Any]] = {}
        for name in sorted(self._links):
            link = self.link(name)
            for remote in sorted(link.tools, key=lambda tool: tool.name):
                try:
                    tool = remote_tool(name, remote, link.call)
                    if found.setdefault(tool.name, tool) is not tool:
                        raise OpenDevError(ErrorKind.TOOL, "another tool has the same name")
                except OpenDevError as error:
                    why = error.info.message
                    self._tell(f"The tool {remote.name[:80]!r} of the MCP server {name} is left out: {why}.")
            self._look(link.status)
        self._tools = tuple(found.values())

    def _look(self, status: LinkStatus) -> None:
        if status.state in _DOWN and status.why:
            self._tell(f"The MCP server {status.name}: {status.state.value}. {status.why}")
        if status.noisy_lines:
            self._tell(
                f"The MCP server {status.name} prints text on its standard output, where only messages belong; it is skipped."
            )

    def _tell(self, text: str) -> None:
        if text not in self._told and len(self._told) < MAX_NOTES:
            self._told[text] = None
            self._notify(text)
