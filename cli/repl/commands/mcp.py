"""MCP servers: connect one and its tools are there in the next turn (REPL-06, MCP-01)."""

from typing import ClassVar

from ....core.errors import ErrorKind, OpenDevError
from ....tools.mcp.config import load_mcp
from ....tools.mcp.link import LinkState
from ....tools.mcp.manager import McpManager
from ....ui.repl.ports import Command, CommandResult
from ...mcp import find_entry, state_of, switch_server, with_server
from ..base import Handler, choose, need, split, told


class McpHandler(Handler):
    """The servers of the user's file and of the project."""

    commands: ClassVar = (
        Command(
            name="mcp",
            usage="[list|connect NAME|disconnect NAME|tools NAME]",
            summary="MCP servers and their tools",
        ),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        ways = {
            "list": self._list,
            "connect": self._connect,
            "disconnect": self._disconnect,
            "tools": self._tools,
        }
        return await choose(split(args)[1], ways, "list")

    def _list(self, _rest: str) -> CommandResult:
        project = self.repl.config.project
        config = load_mcp(project.layout.home, project.path, project.config.mcp_servers)
        rows = [
            f"{entry.server.name:20} {entry.scope:8} {entry.server.transport:6} {state_of(entry):12} {entry.server.what}"
            for entry in config.entries
        ]
        return told(
            "\n".join((*rows, *config.refused)) or "No servers. To add one: opendev mcp add NAME COMMAND …"
        )

    async def _connect(self, rest: str) -> CommandResult:
        name, yes = split(need(rest, "which server: /mcp connect NAME"))
        project = self.repl.config.project
        entry = find_entry(project, name)
        if not entry.trusted and yes != "yes":
            return CommandResult(
                success=False,
                message=f"The server {name} comes with the project. It would run: {entry.server.what}\n"
                f"To agree to exactly this: /mcp connect {name} yes",
            )
        if not (entry.trusted and entry.server.enabled):
            switch_server(project, name, on=True)
        tools = await with_server(project, name, _count)
        self.repl.config.reload()
        return told(f"{name} is connected: its {tools} tools are there from the next turn on.", tools=tools)

    def _disconnect(self, rest: str) -> CommandResult:
        name = need(rest, "which server: /mcp disconnect NAME")
        message = switch_server(self.repl.config.project, name, on=False)
        self.repl.config.reload()
        return told(f"{message} Its tools are gone from the next turn on.")

    async def _tools(self, rest: str) -> CommandResult:
        name = need(rest, "which server: /mcp tools NAME")
        lines = await with_server(self.repl.config.project, name, _lines)
        return told("\n".join(lines) or f"{name} has no tools.")


async def _count(manager: McpManager) -> int:
    return len(await _lines(manager))


async def _lines(manager: McpManager) -> list[str]:
    status = manager.status()[0]
    if status.state is not LinkState.READY:
        raise OpenDevError(
            ErrorKind.INFRA, f"The MCP server {status.name} is {status.state.value}. {status.why}".rstrip()
        )
    return [f"{tool.name}  {tool.description}" for tool in manager.tools()]
