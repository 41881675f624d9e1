"""Where the browser comes back after a login to an MCP server: one address on this machine, for one answer (X12)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from ..web.addresses import parse_url

_HEAD_BYTES = 16_384
_HEAD_S = 10.0
_ASKS = 2  # the second for more rights than the first one asked for
_PAGE = b"<!doctype html><meta charset=utf-8><title>OpenDev</title><p>OpenDev got the answer. You can close this page."


class Loopback:
    """Implements ``logins.Login``. ``bring`` takes the address of the login to the person."""

    def __init__(self, bring: Callable[[str], Awaitable[None]]) -> None:
        self.redirect_uri = ""
        self.shown = 0  # how often the person was sent to the login
        self._bring = bring
        self._state = ""
        self._answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()

    async def show(self, url: str) -> None:
        """Bring the address to the person. Raises ``OpenDevError`` for one that is no web address."""
        parse_url(url)
        if self.shown == _ASKS:
            raise OpenDevError(
                ErrorKind.DENIED, "The server does not take the login it gave, and asks for another."
            )
        self._answer = asyncio.get_running_loop().create_future()
        self._state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        self.shown += 1
        await self._bring(url)

    async def wait(self) -> JsonObject:
        """The answer that carries the state of this login; others are turned away. Raises ``OpenDevError`` (denied)."""
        answer = await self._answer
        if "code" not in answer:
            why = str(answer.get("error", "no reason given"))[:200]
            raise OpenDevError(ErrorKind.DENIED, f"The login was refused: {why!a}.")
        return answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of a browser."""
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            taken = self._take(head)
            status, body = ("200 OK", _PAGE) if taken else ("404 Not Found", b"")
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _take(self, head: bytes) -> bool:
        words = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
        parts = urlsplit(words[1]) if len(words) == 3 and words[0] == "GET" else urlsplit("")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/callback" or not self._state or query.get("state") != self._state:
            return False
        if not self._answer.done():
            self._answer.set_result(
                {name: query[name] for name in ("code", "state", "iss", "error") if name in query}
            )
        return True


@asynccontextmanager
async def loopback(port: int, bring: Callable[[str], Awaitable[None]]) -> AsyncGenerator[Loopback]:
    """Listen on 127.0.0.1, on ``port`` or on any free one. Raises ``OpenDevError`` (infra) when the port is taken."""
    login = Loopback(bring)
    try:
        server = await asyncio.start_server(login.serve, "127.0.0.1", port, limit=_HEAD_BYTES)
    except OSError as error:
        raise OpenDevError(
            ErrorKind.INFRA,
            f"Port {port} of this machine cannot be listened on ({error.strerror or error}).",
            "Set another `oauth.port` in the server's entry.",
        ) from error
    login.redirect_uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"
    async with server:
        yield login
