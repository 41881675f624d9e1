"""An MCP tool as a tool like every other: its arguments, its effects, its result as untrusted data (MCP-07, SAF-07)."""

import copy
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ConfigDict

from ...core.errors import OpenDevError
from ...core.model import Frozen, JsonObject
from ...core.tool import Effect, Tool, ToolContext, ToolResult
from ..outside import as_data
from .client import RemoteResult, RemoteTool
from .names import qualified
from .schemas import normalise

MAX_CHARS = 200_000  # of one result; longer ones than the offload limit go into a file
MAX_DESCRIPTION = 2_000
Call = Callable[[str, JsonObject], Awaitable[RemoteResult]]
# Hints of a server about what its tools do are claims: every call is treated as one that may change something out there.
_EFFECTS = frozenset({Effect.WRITE, Effect.NET})


class RemoteArguments(Frozen):
    """Whatever the server's schema allows; the server checks it."""

    model_config = ConfigDict(extra="allow")


def remote_tool(server: str, remote: RemoteTool, call: Call) -> Tool[Any]:
    """The tool. Raises ``OpenDevError`` (tool) when it has to be quarantined: no name, or a schema that nothing can be made of."""
    schema = normalise(remote.raw_schema)
    described = " ".join(remote.description.split())[:MAX_DESCRIPTION]

    class Arguments(RemoteArguments):
        """Arguments of one MCP tool."""

        @classmethod
        def model_json_schema(cls, *_args: Any, **_options: Any) -> JsonObject:
            """The server's schema."""
            return copy.deepcopy(schema)

    async def run(args: Arguments, _ctx: ToolContext) -> ToolResult:
        try:
            result = await call(remote.name, args.model_dump(mode="json"))
        except OpenDevError as error:
            info = error.info
            return ToolResult.failure(info.message, info.hint, info.kind)
        return present(server, remote.name, result)

    return Tool(
        name=qualified(server, remote.name),
        category="MCP",
        args=Arguments,
        run=run,
        effects=_EFFECTS,
        description=f"[MCP server {server}] {described or remote.name}",
    )


def present(server: str, tool: str, result: RemoteResult) -> ToolResult:
    """What the model and people see of a result."""
    text = result.text
    if len(text) > MAX_CHARS:
        text = f"{text[:MAX_CHARS]}\n[… {len(text) - MAX_CHARS:,} more characters are not kept …]"
    if not result.ok:
        shown = as_data(f"MCP server {server}", text or "(no reason given)")
        return ToolResult.failure(f"{tool} of the MCP server {server} reports a failure:\n{shown}")
    shown = as_data(f"MCP server {server}", text) if text.strip() else ""
    return ToolResult(ok=True, text=shown, summary=f"✓ {tool} of {server} ({len(result.text):,} characters)")
