"""Calls that come before their server has told of its tools: the servers are waited for, a little (MCP-06)."""

from collections.abc import Callable, Sequence

from ...core.chat import ToolCall
from ...core.tool import ToolContext
from ..registry import ToolRegistry
from .names import PREFIX

SETTLE_S = 5.0


async def settle(
    calls: Sequence[ToolCall], registry: ToolRegistry, make_context: Callable[[str], ToolContext]
) -> None:
    """Wait until every server has been read, at most ``SETTLE_S``, when a call names a tool that no server has told of yet."""
    early = [call for call in calls if call.name.startswith(PREFIX) and registry.get(call.name) is None]
    directory = make_context(early[0].id).directory if early else None
    if directory is not None:
        await directory.settled(SETTLE_S)
