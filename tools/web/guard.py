"""A forward proxy on loopback through which every request of a fetch goes: pages, redirects, scripts and pictures alike.

It looks a name up once, refuses private addresses, and connects to the very address it judged: a name whose address changes
between look-up and connection (DNS rebinding), a redirect or a script of the page cannot reach what a user did not allow.
It also bounds the bytes of one fetch.
"""

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from ...core.errors import ErrorInfo, ErrorKind, OpenDevError
from .addresses import reachable

MAX_BYTES = 30_000_000
_HEAD_BYTES = 65_536
_HEAD_S = 30.0
_CONNECT_S = 10.0
_CHUNK = 65_536
_REFUSALS = 20
_CONNECTIONS = 64
_HOP = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:")


@dataclass
class Guard:
    """Use as ``async with Guard(...) as guard``; ``url`` is the proxy's address. Ends all connections at the end."""

    allow_private: bool = False
    max_bytes: int = MAX_BYTES
    refused: list[tuple[str, ErrorInfo]] = field(
        default_factory=list[tuple[str, ErrorInfo]]
    )  # by host, at most 20
    received: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The proxy's own address."""
        if self._server is None:
            raise OpenDevError(ErrorKind.INTERNAL, "The guard of web access is not running.")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def full(self) -> bool:
        """Whether the bytes of this fetch are used up."""
        return self.received >= self.max_bytes

    def refusal(self, url: str, hosts: Collection[str] | None = None) -> OpenDevError | None:
        """Why the host of ``url``, or a host it led to (one of ``hosts``), was refused last; None when nothing was.

        A browser asks for hosts of its own maker, too; what is said of those says nothing about the page.
        """
        if self.full:
            return OpenDevError(
                ErrorKind.TOOL, f"{url} needs more than {self.max_bytes:,} bytes; the fetch was ended."
            )
        said = [info for host, info in self.refused if hosts is None or host in hosts]
        info = said[-1] if said else None
        return OpenDevError(info.kind, info.message, info.hint) if info else None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _CONNECTIONS:
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        host = ""
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            host, port, forwarded = _target(head)
            source, upstream = await self._connect(host, port)
            if forwarded:
                upstream.write(forwarded)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._relay(reader, writer, source, upstream)
        except OpenDevError as error:
            self.refused[_REFUSALS - 1 :] = [(host, error.info)]
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client sees a closed connection
        finally:
            for end in (writer, upstream):
                if end is not None:
                    with contextlib.suppress(OSError):
                        end.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        addresses = await reachable(host, port, allow_private=self.allow_private)
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_S):
                    return await asyncio.open_connection(address, port)
        raise OpenDevError(
            ErrorKind.NOT_FOUND,
            f"{host}:{port} does not answer.",
            "The server may be down, or the machine offline.",
        )

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        sending = asyncio.ensure_future(_copy(reader, upstream))
        try:
            while not self.full and (data := await source.read(_CHUNK)):
                self.received += len(data)
                writer.write(data)
                await writer.drain()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK):
        sink.write(data)
        await sink.drain()


def _target(head: bytes) -> tuple[str, int, bytes]:
    """Host, port, and the head to send on (empty for CONNECT). Raises ``ValueError`` when it is no proxy request."""
    lines = head.split(b"\r\n")
    method, target, _version = lines[0].decode("latin-1").split(" ")
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return host.strip("[]"), int(port), b""
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"not a proxy request: {target[:100]}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [line for line in lines[1:] if line and not line.lower().startswith(_HOP)]
    sent = [f"{method} {path} HTTP/1.1".encode("latin-1"), *kept, b"Connection: close", b"", b""]
    return parts.hostname, parts.port or 80, b"\r\n".join(sent)
