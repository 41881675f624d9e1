"""The one door to the official MCP SDK, imported when the first server is connected or served (MCP-10)."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from ... import __version__
from ...core.errors import ErrorKind, OpenDevError
from ...core.model import Frozen, JsonObject
from .config import McpServer
from .logins import Login
from .oauth import authorizer
from .sifted import RAW, keep_schemas, sifted
from .stdio import ServerProcess

MAX_TOOLS = 2_000  # of one server
_PAGES = 100
_UNAUTHORIZED = 401


class RemoteTool(Frozen):
    """A tool as its server lists it; ``raw_schema`` is whatever it gave as the schema."""

    name: str
    description: str = ""
    raw_schema: Any = None


class RemoteResult(Frozen):
    """What a call gave. ``text`` is all its text; what is no text is described by one line in brackets."""

    ok: bool
    text: str


class _Peer:
    """Who is spoken to, for errors; ``locked`` once it answered 401, ``denied``: our own word about a login; the SDK passes on neither."""

    def __init__(self, name: str) -> None:
        self.name, self.locked = name, False
        self.auth: Any = None
        self.denied: OpenDevError | None = None

    def deny(self, error: OpenDevError) -> None:
        """Keep what is told in place of the SDK's error."""
        self.denied = error

    async def look(self, response: Any) -> None:
        """A hook of the HTTP client."""
        self.locked = response.status_code == _UNAUTHORIZED

    def http(self, headers: dict[str, str] | None = None, timeout: Any = None, auth: Any = None) -> Any:
        """The SDK's HTTP client, looked at."""
        from mcp.shared._httpx_utils import create_mcp_http_client

        client = create_mcp_http_client(headers=headers, timeout=timeout, auth=auth or self.auth)
        client.event_hooks = {"response": [self.look]}
        return client


class Session:
    """One connected server."""

    def __init__(self, client: Any, peer: _Peer) -> None:
        self._client, self._peer = client, peer

    async def tools(self) -> tuple[RemoteTool, ...]:
        """Every page of ``tools/list``. Raises ``OpenDevError`` (infra)."""
        found: list[RemoteTool] = []
        cursor: str | None = None
        with _translated(self._peer):
            for _ in range(_PAGES):
                page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
                found.extend(
                    RemoteTool(name=t.name, description=t.description or "", raw_schema=_kept(t.meta))
                    for t in page.tools
                )
                cursor = page.next_cursor
                if not cursor or len(found) >= MAX_TOOLS:
                    break
        return tuple(found[:MAX_TOOLS])

    async def call(self, tool: str, arguments: JsonObject) -> RemoteResult:
        """One ``tools/call``; cancelling it tells the server. Raises ``OpenDevError``: tool (the server refuses), infra."""
        with _translated(self._peer):
            result = await self._client.call_tool(tool, arguments)
        return RemoteResult(ok=not result.is_error, text=_text(result))


@asynccontextmanager
async def connect(
    server: McpServer,
    env: Mapping[str, str],
    *,
    on_changed: Callable[[], None],
    on_closed: Callable[[], None],
    noise: Callable[[ServerProcess], None] = lambda _process: None,
    login: Login | None = None,
) -> AsyncGenerator[Session]:
    """A server that has answered the handshake; it is gone, with all it started, when the block is left.

    ``login`` is a person who can be sent to a login. ``env`` is the whole environment of a stdio server, under its own.
    ``on_changed``: its tools changed; ``on_closed``: the connection ended. Enter and leave in one task.

    Raises ``OpenDevError``: not found, infra, denied (it wants a login).
    """
    from mcp.client import Client

    for logger in ("mcp", "client"):  # what the SDK logs we tell ourselves, without the addresses of logins
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    peer = _Peer(server.name)
    process: ServerProcess | None = None
    if server.transport == "stdio":
        command = [server.command, *server.args]
        process = await ServerProcess.start(command, env={**env, **server.env}, cwd=server.cwd)
        noise(process)
    else:
        peer.auth = authorizer(server, login, peer.deny)
    try:
        # No exit stack: when all tasks are cancelled at once, its mending of exception contexts can go round for ever.
        transport = (
            _over_pipes(process, on_closed) if process else sifted(_over_http(server, peer), on_closed)
        )
        with _translated(peer):
            async with Client(transport, message_handler=_on_message(on_changed)) as client:
                listener = asyncio.ensure_future(_listen(client, on_changed))
                try:
                    yield Session(client, peer)
                finally:
                    listener.cancel()
                    await asyncio.wait((listener,))
    finally:
        if process is not None:
            await process.stop()


def _on_message(on_changed: Callable[[], None]) -> Any:
    async def handler(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            on_changed()

    return handler


class ServedTool(Frozen):
    """A tool that OpenDev offers as a server. ``run`` gets the arguments and gives text; an ``OpenDevError`` is a failed call."""

    name: str
    description: str
    parameters: JsonObject
    run: Callable[[JsonObject], Awaitable[str]]


async def serve_stdio(tools: Sequence[ServedTool], instructions: str) -> None:
    """Serve ``tools`` over this process's standard input and output until the input ends."""
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    known = {tool.name: tool for tool in tools}

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        listed = [
            types.Tool(name=t.name, description=t.description, input_schema=t.parameters) for t in tools
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(_ctx: Any, params: Any) -> types.CallToolResult:
        try:
            tool = known.get(params.name)
            if tool is None:
                raise OpenDevError(ErrorKind.NOT_FOUND, f"There is no tool {params.name}.")
            text, failed = await tool.run(params.arguments or {}), False
        except OpenDevError as error:
            text, failed = error.info.sentence(), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    server = Server(
        "opendev",
        version=__version__,
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


@asynccontextmanager
async def _over_http(server: McpServer, peer: _Peer) -> AsyncGenerator[Any]:
    """The SDK's transport for a server with an address."""
    if server.transport == "sse":
        from mcp.client.sse import sse_client

        headers = dict(server.headers)
        async with sse_client(
            server.url, headers=headers, timeout=server.timeout_s, httpx_client_factory=peer.http
        ) as streams:
            yield streams
        return
    from mcp.client.streamable_http import streamable_http_client

    async with (
        peer.http(dict(server.headers)) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def _over_pipes(process: ServerProcess, on_closed: Callable[[], None]) -> AsyncGenerator[Any]:
    """The SDK's streams over our own process: it would die of bytes that are no UTF-8 and keep a line of any length."""
    import anyio
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    from_server, read = anyio.create_memory_object_stream[Any](0)
    write, to_server = anyio.create_memory_object_stream[Any](0)

    async def reader() -> None:
        async with from_server:
            while (raw := await process.message()) is not None:
                keep_schemas(raw.get("result"))
                try:
                    message = types.jsonrpc_message_adapter.validate_python(raw, by_name=False)
                except ValueError:
                    process.skipped += 1
                    continue
                try:
                    await from_server.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return
        on_closed()

    async def writer() -> None:
        async with to_server:
            async for item in to_server:
                try:
                    await process.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))
                except OSError:
                    on_closed()
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(reader)
        group.start_soon(writer)
        try:
            yield read, write
        finally:
            read.close()
            write.close()
            group.cancel_scope.cancel()


def _kept(meta: Any) -> Any:
    return cast("JsonObject", meta).get(RAW) if isinstance(meta, dict) else None


async def _listen(client: Any, on_changed: Callable[[], None]) -> None:
    """In the protocol of 2026 a client subscribes to changes; before, they came unasked."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        return
    with contextlib.suppress(OpenDevError), _translated(_Peer("")):
        async with client.listen(tools_list_changed=True) as subscription:
            async for _event in subscription:
                on_changed()


@contextlib.contextmanager
def _translated(peer: _Peer) -> Generator[None]:
    """The SDK's failures as sentences. A refusal by the server is ``tool``, a login it wants ``denied``, the rest ``infra``."""
    import anyio
    import httpx2
    from mcp.shared.exceptions import MCPError

    try:
        yield
    except OpenDevError:
        raise
    except (
        MCPError, httpx2.HTTPError, OSError, ValueError, RuntimeError, ExceptionGroup,
        anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream,
    ) as error:  # fmt: skip
        leaf = peer.denied or _leaf(error)
        if isinstance(leaf, OpenDevError):
            raise leaf from error
        text = f"{leaf}".strip() or type(leaf).__name__
        if peer.locked:
            raise OpenDevError(
                ErrorKind.DENIED,
                f"The MCP server {peer.name} wants a login: {text[:300]}",
                'Put a token into `headers` of its entry, for example "Authorization": "Bearer ${TOKEN}".',
            ) from error
        refused = isinstance(leaf, MCPError) and not _closed(text)
        kind = ErrorKind.TOOL if refused else ErrorKind.INFRA
        verb = "refused" if refused else "failed"
        raise OpenDevError(kind, f"The MCP server {peer.name} {verb}: {text[:1_000]}") from error


def _closed(text: str) -> bool:
    return "closed" in text.casefold()


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _text(result: Any) -> str:
    parts = [_block(block) for block in result.content]
    if not any(part.strip() for part in parts) and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False, indent=1)
    return "\n".join(part for part in parts if part)


def _block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource_link":
            return f"[a link to {block.uri}]"
        case "resource":
            inner = block.resource
            return str(getattr(inner, "text", None) or f"[data of {inner.uri}, not shown]")
        case kind:
            return f"[{kind} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"
