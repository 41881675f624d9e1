"""MCP servers behind an address: streamable HTTP, SSE, a wrong token, nobody there (MCP-10, X12)."""

import asyncio
import http.server
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.link import LinkState
from opendev.tools.mcp.manager import McpManager

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def served(transport: str) -> AsyncGenerator[int]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), transport, str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                await writer.wait_closed()
                break
        yield port
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.req("MCP-10")
@pytest.mark.parametrize(("kind", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_a_server_with_an_address(kind: str, path: str) -> None:
    async with served("streamable-http" if kind == "http" else "sse") as port:
        url = f"http://127.0.0.1:{port}/{path}"
        server = McpServer.model_validate({"name": "far", "transport": kind, "url": url, "timeout": 20_000})
        manager = McpManager([server], {})
        manager.start()
        try:
            assert await manager.settled(20) == ()
            assert "mcp__far__add" in [tool.name for tool in manager.tools()]
            assert (await manager.link("far").call("add", {"a": 1, "b": 2})).text == "3"
        finally:
            await manager.close()
        assert manager.status()[0].state is LinkState.STOPPED


class _Refuses(http.server.BaseHTTPRequestHandler):
    seen: list[str]

    def do_POST(self) -> None:
        type(self).seen.append(self.headers.get("Authorization", ""))
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def refusing() -> Iterator[int]:
    _Refuses.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refuses)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_refused_token_is_said_at_once_and_not_tried_again(refusing: int) -> None:
    said: list[str] = []
    headers = {"Authorization": "Bearer very-secret-token"}
    url = f"http://127.0.0.1:{refusing}/mcp"
    manager = McpManager(
        [McpServer(name="locked", transport="http", url=url, headers=headers)], {}, said.append
    )
    manager.start()
    try:
        (note,) = await manager.settled(5)
        assert "needs login" in note
        with pytest.raises(OpenDevError) as refused:
            await manager.link("locked").call("x", {})
        assert refused.value.info.kind is ErrorKind.DENIED
        tries = len(_Refuses.seen)
        await asyncio.sleep(0.5)
        assert len(_Refuses.seen) == tries
        assert _Refuses.seen[0] == "Bearer very-secret-token"
        assert "very-secret" not in f"{said} {note} {refused.value}"
    finally:
        await manager.close()


async def test_nobody_there_is_told_with_the_address_kept_out_of_the_way() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    manager = McpManager([McpServer(name="gone", transport="http", url=url)], {})
    manager.start()
    try:
        (note,) = await manager.settled(5)
        assert "gone" in note
        assert manager.status()[0].state is LinkState.WAITING
    finally:
        await manager.close()
