#!/usr/bin/env python3
"""Our MCP client as the conformance suite wants one: connects to the address given last, lists the tools and calls each once.

    node node_modules/.bin/conformance client --scenario tools_call --command "python bench/mcp_conformance_client.py"

The suite's scenarios about logins and about questions to the user do not apply: OpenDev offers neither to a server.
"""

import asyncio
import sys
from typing import Any

from opendev.core.model import JsonObject
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.manager import McpManager

VALUES: dict[str, Any] = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}


def arguments(schema: JsonObject) -> JsonObject:
    """A value of the right type for each property."""
    return {name: VALUES.get(str(item.get("type")), "text") for name, item in schema["properties"].items()}


async def main(url: str) -> int:
    """0 when the server was there and every call was answered."""
    server = McpServer(name="suite", transport="http", url=url)
    manager = McpManager([server], {}, lambda text: print(text, file=sys.stderr))
    manager.start()
    try:
        if await manager.settled(server.timeout_s):
            return 1
        link = manager.link("suite")
        schemas = {tool.name: tool.args.model_json_schema() for tool in manager.tools()}
        for (name, schema), remote in zip(
            schemas.items(), sorted(link.tools, key=lambda t: t.name), strict=True
        ):
            result = await link.call(remote.name, arguments(schema))
            print(name, result.ok, result.text[:200])
        return 0
    finally:
        await manager.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
