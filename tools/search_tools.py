"""search_tools: find tools by keywords among those whose schemas are not sent; detail full activates them (T29, MCP-03..06)."""

import json
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ..core.chat import ToolSchema
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .mcp.names import server_of
from .outside import as_data

LIMITS = {"names": 50, "brief": 15, "full": 5}  # matches that come back
NAME_SCORE, TEXT_SCORE = 2, 1
SETTLE_S = 5.0  # servers that are still starting are waited for
_WORD = re.compile(r"[^\W_]+")
_KEYWORD = 3  # characters; a shorter word counts only as (part of) a server's name (T-12)
_BRIEF = 200  # characters of a description


class Args(Frozen):
    """Arguments of search_tools."""

    query: str = Field(min_length=1, max_length=500, description="Keywords, e.g. github issue create.")
    detail: Literal["names", "brief", "full"] = Field(
        default="brief", description="full also gives the schemas and makes the tools callable."
    )


def score(tool: ToolSchema, words: Sequence[str]) -> int:
    """2 for each word in the name, 1 for each in the description (MCP-04)."""
    name, text = tool.name.casefold().removeprefix("mcp__"), tool.description.casefold()
    short = set(_WORD.findall(server_of(tool.name).casefold()))
    total = 0
    for word in words:
        if len(word) < _KEYWORD:
            total += NAME_SCORE if word in short else 0
            continue
        total += NAME_SCORE * (word in name) + TEXT_SCORE * (word in text)
    return total


def best(tools: Sequence[ToolSchema], query: str) -> list[ToolSchema]:
    """The tools that match at all, best first, equal ones by name."""
    words = sorted(set(_WORD.findall(query.casefold())))
    scored = [(score(tool, words), tool) for tool in tools]
    return [tool for points, tool in sorted(scored, key=lambda item: (-item[0], item[1].name)) if points]


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    directory = ctx.directory
    notes = await directory.settled(SETTLE_S) if directory else ()
    known = directory.deferred() if directory else ()
    found = best(known, args.query)
    shown = found[: LIMITS[args.detail]]
    lines = [_line(tool, args.detail) for tool in shown]
    if not shown:
        lines = [_nothing(known)]
    if len(found) > len(shown):
        lines.append(f"({len(found) - len(shown)} more match; use more exact keywords.)")
    lines += notes
    if args.detail == "full":
        ctx.memo.activated.update(tool.name for tool in shown)
    elif shown:
        lines.append("Call one by its name, or search with detail=full for its arguments.")
    text = "\n".join(lines)
    return ToolResult(
        ok=True,
        text=as_data("descriptions of tools", text) if shown else text,
        summary=f"✓ {len(found)} tools match",
        data={"tools": [tool.name for tool in shown], "matches": len(found)},
    )


def _line(tool: ToolSchema, detail: str) -> str:
    if detail == "names":
        return tool.name
    if detail == "brief":
        return f"{tool.name}: {tool.description[:_BRIEF]}"
    schema = json.dumps(tool.parameters, ensure_ascii=False, sort_keys=True)
    return f"{tool.name}: {tool.description}\narguments: {schema}"


def _nothing(known: Sequence[ToolSchema]) -> str:
    if not known:
        return "There are no further tools."
    servers = sorted({server for tool in known if (server := server_of(tool.name))})
    return f"No tool matches; there are {len(known)}, of: {', '.join(servers)[:1_000] or 'this program'}."


TOOL = Tool(
    name="search_tools",
    category="Discovery",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
)
