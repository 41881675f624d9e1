"""JSON-RPC 2.0 with one language server over its standard input and output (SYM-04): our own small client."""

import asyncio
import contextlib
import itertools
import json
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from ..shell.reap import end, family

MAX_MESSAGE = 64_000_000  # bytes; a larger one is not an answer to anything asked here
LIVENESS_S = 0.2  # how often a waiting request looks whether the server lives
_METHOD_NOT_FOUND = -32601


class LspClient:
    """One running server. Requests may overlap; the server's own requests are answered while waiting (T-19).

    ``answer`` is given (method, params) of a server's request and returns its result; ``NotImplementedError`` = unknown.
    """

    def __init__(self, name: str, process: Process, answer: Callable[[str, Any], Any]) -> None:
        self._name, self._process, self._answer = name, process, answer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.ensure_future(self._read())

    @classmethod
    async def start(
        cls, command: tuple[str, ...], *, env: Mapping[str, str], cwd: Path, answer: Callable[[str, Any], Any]
    ) -> "LspClient":
        """Start the server in a session of its own. Raises ``OpenDevError`` (not found) when it cannot be started."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=dict(env),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            message = f"The language server {command[0]} could not be started: {error}."
            raise OpenDevError(ErrorKind.NOT_FOUND, message) from error
        return cls(Path(command[0]).name, process, answer)

    @property
    def alive(self) -> bool:
        """Whether the process runs and its output is being read."""
        return self._process.returncode is None and not self._reader.done()

    @property
    def pid(self) -> int:
        """The process, which is also its group."""
        return self._process.pid

    async def request(self, method: str, params: JsonObject | None, timeout_s: float) -> Any:
        """The result. Raises ``OpenDevError``: time-out, infra (the server died), tool (the server refuses)."""
        number = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            if not self.alive:
                raise self._dead()
            await self._send({"id": number, "method": method, "params": params})
            async with asyncio.timeout(timeout_s):
                # The end of the output is no proof of life: a child of the server may hold it open.
                while not (await asyncio.wait((future,), timeout=LIVENESS_S))[0]:
                    if not self.alive:
                        raise self._dead()
            return future.result()
        except TimeoutError as error:
            with contextlib.suppress(OpenDevError):
                await self.notify("$/cancelRequest", {"id": number})
            message = f"The language server {self._name} did not answer {method} within {timeout_s:g} s."
            raise OpenDevError(
                ErrorKind.TIMEOUT, message, "Try again, or narrow the search with file_path."
            ) from error
        finally:
            self._waiting.pop(number, None)

    async def notify(self, method: str, params: JsonObject) -> None:
        """Tell the server something that has no answer."""
        await self._send({"method": method, "params": params})

    async def stop(self) -> None:
        """End the server and everything it started; returns when they are dead. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        await end(lambda: family(group=self.pid), 0.5)
        await self._process.wait()
        await asyncio.wait((self._reader,), timeout=5)
        self._reader.cancel()

    async def _send(self, message: JsonObject) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode("utf-8", "replace")
        stdin = self._process.stdin
        try:
            if stdin is None:
                raise self._dead()
            stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            await stdin.drain()
        except OSError as error:
            raise self._dead() from error

    async def _read(self) -> None:
        """Until the server ends; then nobody waits for it any more."""
        stream = cast("asyncio.StreamReader", self._process.stdout)
        try:
            while True:
                size = await _content_length(stream)
                await self._take(json.loads(await stream.readexactly(size)))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, OpenDevError):
            pass  # the end of the stream, or nonsense on it: either way this server is over
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._dead())

    async def _take(self, message: JsonObject) -> None:
        if "method" in message:
            if "id" in message:
                await self._reply(message)
            return
        future = self._waiting.get(message.get("id", 0))
        if future is None or future.done():
            return
        problem = message.get("error")
        if problem is None:
            future.set_result(message.get("result"))
        else:
            text = f"The language server {self._name} refused: {problem.get('message', problem)}"
            future.set_exception(OpenDevError(ErrorKind.TOOL, text))

    async def _reply(self, message: JsonObject) -> None:
        try:
            result = self._answer(message["method"], message.get("params"))
        except NotImplementedError:
            error = {"code": _METHOD_NOT_FOUND, "message": f"{message['method']} is not supported"}
            await self._send({"id": message["id"], "error": error})
        else:
            await self._send({"id": message["id"], "result": result})

    def _dead(self) -> OpenDevError:
        return OpenDevError(
            ErrorKind.INFRA,
            f"The language server {self._name} ended unexpectedly.",
            "Try again: it is started anew.",
        )


async def _content_length(stream: asyncio.StreamReader) -> int:
    size = 0
    while (line := await stream.readuntil(b"\r\n")) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            size = int(value)
    if not 0 < size <= MAX_MESSAGE:
        raise ValueError(f"content length {size}")
    return size
