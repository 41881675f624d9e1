#!/usr/bin/env python3
"""Measures what the tools of MCP servers cost in each request, eager and lazy (N-04, N-17).

    bench/mcp_schemas.py

Fake servers, real tools made of them: 100 tools of 200 tokens each, and three servers that take 140,000 tokens. Counted is what
the first request of the main agent carries more than without any server; tokens are estimated at four characters each.
"""

from typing import Any

from opendev.core.chat import ToolSchema, canonical
from opendev.core.model import JsonObject
from opendev.core.tool import Tool
from opendev.tools.catalog import BUILTIN
from opendev.tools.mcp.client import RemoteResult, RemoteTool
from opendev.tools.mcp.remote import remote_tool
from opendev.tools.registry import Deferral, ToolRegistry
from opendev.tools.search_tools import LIMITS

WINDOWS = (50_000, 128_000, 200_000)
CHARS = 4  # of one token


async def nobody(tool: str, arguments: JsonObject) -> RemoteResult:
    """No call is made here."""
    return RemoteResult(ok=False, text=f"{tool} {arguments}")


def fake(server: str, number: int, tokens: int) -> Tool[Any]:
    """A tool that costs about so many tokens, half of them description."""
    fields = {
        f"field_{n}": {"type": "string", "description": "what it says " * 3} for n in range(tokens // 40)
    }
    raw: JsonObject = {"type": "object", "properties": fields}
    tool = RemoteTool(name=f"action_{number}", raw_schema=raw, description="does something " * (tokens // 11))
    return remote_tool(server, tool, nobody)


def size(schemas: tuple[ToolSchema, ...]) -> int:
    """Tokens of the schemas in canonical JSON."""
    return sum(len(canonical(schema.model_dump())) for schema in schemas) // CHARS


def main() -> None:
    """Print the table."""
    own = size(ToolRegistry(BUILTIN).schemas())
    cases = {
        "100 tools of one server": [fake("fake", n, 200) for n in range(100)],
        "three servers of 100 tools": [fake(f"fake{s}", n, 515) for s in range(3) for n in range(100)],
    }
    finder = size(tuple(s for s in ToolRegistry(BUILTIN).schemas() if s.name == "search_tools"))
    print(f"search_tools itself, sent always: {finder} tokens.\n")
    heads = " | ".join(f"of {window // 1000}k" for window in WINDOWS)
    print(f"| tools | sent | tokens more | {heads} |\n|---|---|---|{'---|' * len(WINDOWS)}")
    for name, tools in cases.items():
        found = [tool.name for tool in tools[: LIMITS["full"]]]
        modes: tuple[tuple[str, Deferral, list[str]], ...] = (
            ("eager (off)", "off", []),
            ("lazy (external), nothing discovered", "external", []),
            (f"lazy, {len(found)} discovered", "external", found),
        )
        for label, deferral, active in modes:
            registry = ToolRegistry(BUILTIN, None, lambda given=tools: given, deferral)
            more = size(registry.schemas(None, active)) - own
            shares = " | ".join(f"{more / window:.1%}" for window in WINDOWS)
            print(f"| {name} | {label} | {more:,} | {shares} |")


if __name__ == "__main__":
    main()
