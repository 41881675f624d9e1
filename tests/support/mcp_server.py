"""A small real MCP server on the SDK, over stdio, streamable HTTP or SSE; run as a script."""

import asyncio
import os
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("small")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def environment(name: str) -> str:
    """The value of an environment variable."""
    return os.getenv(name, "(not set)")


@server.tool()
async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "rested"


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("as asked")


@server.tool()
def big(size: int) -> str:
    """A long text."""
    return "x" * size


@server.tool()
def die() -> str:
    """End the server at once."""
    os._exit(3)


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool and say so."""

    @server.tool(name="grown")
    def grown() -> str:
        """A tool that came later."""
        return "here"

    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


if __name__ == "__main__":
    transport = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if transport == "stdio":
        server.run()
    else:
        server.run(transport=transport, host="127.0.0.1", port=int(sys.argv[2]))  # type: ignore[arg-type]
