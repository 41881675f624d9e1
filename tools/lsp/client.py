"""JSON-RPC 2.0 with one language server over its standard input and output (SYM-04): our own small client."""

import asyncio
import contextlib
import itertools
import json
import re
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from ..shell.reap import end, family
from ..started import ended, kill_group, started

MAX_MESSAGE = 64_000_000  # bytes; a larger one is not an answer to anything asked here
MAX_NOISE = 1_000  # lines and messages that are no protocol, of one server; then it is given up
LIVENESS_S = 0.2  # how often a waiting request looks whether the server lives
GOODBYE_S = 0.5  # how long a server may take over ``shutdown`` before it is ended
_STDERR_BYTES = 4_000
_LENGTH = re.compile(rb"content-length:\s*(\d{1,18})\s*$", re.IGNORECASE)
_METHOD_NOT_FOUND = -32601


class LspClient:
    """One running server. Requests may overlap; the server's own requests are answered while waiting (T-19).

    ``answer`` is given (method, params) of a server's request and returns its result; ``NotImplementedError`` = unknown.
    ``told`` is given (method, params) of what the server tells unasked; it must not raise.
    """

    def __init__(
        self,
        name: str,
        process: Process,
        answer: Callable[[str, Any], Any],
        told: Callable[[str, Any], None] | None = None,
    ) -> None:
        self._name, self._process, self._answer, self._told = name, process, answer, told
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._noise = 0
        self._stderr = b""
        self._reader = asyncio.ensure_future(self._read())
        self._listener = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(
        cls,
        command: tuple[str, ...],
        *,
        env: Mapping[str, str],
        cwd: Path,
        answer: Callable[[str, Any], Any],
        told: Callable[[str, Any], None] | None = None,
    ) -> "LspClient":
        """Start the server in a session of its own. Raises ``OpenDevError`` (not found) when it cannot be started."""
        try:
            start = asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=dict(env),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            process = await started(start, kill_group)
        except OSError as error:
            message = f"The language server {command[0]} could not be started: {error}."
            raise OpenDevError(ErrorKind.NOT_FOUND, message) from error
        return cls(Path(command[0]).name, process, answer, told)

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
            asked: JsonObject = {"id": number, "method": method}
            await self._send(asked if params is None else {**asked, "params": params})
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

    async def notify(self, method: str, params: JsonObject | None) -> None:
        """Tell the server something that has no answer."""
        await self._send({"method": method} if params is None else {"method": method, "params": params})

    async def stop(self) -> None:
        """Say goodbye, then end the server and everything it started; returns when they are dead. Idempotent."""
        if self.alive:
            with contextlib.suppress(OpenDevError, TimeoutError):
                await self.request("shutdown", None, GOODBYE_S)
                await self.notify("exit", None)
                await asyncio.wait_for(ended(self._process), GOODBYE_S)
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        await end(lambda: family(group=self.pid), 0.5)
        await ended(self._process)
        await asyncio.wait((self._reader, self._listener), timeout=5)
        self._reader.cancel()
        self._listener.cancel()

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
                size = await self._content_length(stream)
                message = _parsed(await stream.readexactly(size))
                if message is None:
                    self._count_noise()
                else:
                    await self._take(message)
        except (OSError, EOFError, ValueError, TypeError, asyncio.LimitOverrunError, OpenDevError):
            pass  # the end of the stream, or nonsense on it: either way this server is over
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._dead())

    async def _content_length(self, stream: asyncio.StreamReader) -> int:
        """The size that the next header names. Banners and log lines before it are skipped (a bounded number)."""
        size = 0
        while True:
            line = await stream.readuntil(b"\n")
            if found := _LENGTH.search(line):
                size = int(found[1])
            elif not line.strip():
                if size:
                    break
            elif not line.lower().startswith(b"content-type:"):
                self._count_noise()
        if size > MAX_MESSAGE:
            raise ValueError(f"content length {size}")
        return size

    def _count_noise(self) -> None:
        self._noise += 1
        if self._noise > MAX_NOISE:
            raise ValueError("this is no language server's protocol")

    async def _listen(self) -> None:
        """Keep the end of what the server complains about, for the message when it dies."""
        stream = cast("asyncio.StreamReader", self._process.stderr)
        while chunk := await stream.read(_STDERR_BYTES):
            self._stderr = (self._stderr + chunk)[-_STDERR_BYTES:]

    async def _take(self, message: JsonObject) -> None:
        if "method" in message:
            if "id" in message:
                await self._reply(message)
            elif self._told is not None:
                self._told(message["method"], message.get("params"))
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
        except (NotImplementedError, KeyError, TypeError, AttributeError):  # unknown, or nonsense
            error = {"code": _METHOD_NOT_FOUND, "message": f"{message['method']} is not supported"}
            await self._send({"id": message["id"], "error": error})
        else:
            await self._send({"id": message["id"], "result": result})

    def _dead(self) -> OpenDevError:
        last = self._stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        why = f" Its last words: {' / '.join(line.strip()[:200] for line in last)}" if last else ""
        message = f"The language server {self._name} ended unexpectedly.{why}"
        return OpenDevError(ErrorKind.INFRA, message, "Try again: it is started anew.")


def _parsed(body: bytes) -> JsonObject | None:
    """A message; None for what is none."""
    try:
        message = json.loads(body.decode("utf-8", "replace"))
    except ValueError:
        return None
    return cast("JsonObject", message) if isinstance(message, dict) else None
