"""The process of one stdio server: its lines, its bounded noise, and its certain end (X01, X07)."""

import asyncio
import contextlib
import json
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

from ...core.errors import ErrorKind, OpenDevError
from ...core.ids import new_id
from ...core.model import JsonObject
from ..shell.reap import HAS_PROC, end, family
from ..started import ended, started

MARK = "OPENDEV_MCP"  # in the environment of the server and of all it starts
MAX_LINE = 16_000_000  # bytes of one message
GRACE_S = 1.0  # after its input was closed, and again after SIGTERM
_TAIL = 30  # last lines of noise that are kept
_LINE = 300  # characters of one of them
_CHUNK = 65_536
_STARTS = 20  # of objects in one line of noise that are looked at
_DECODER = json.JSONDecoder()


class ServerProcess:
    """A running server. ``noise`` are its last lines that were no messages, ``skipped`` how many of those were on stdout."""

    def __init__(self, process: Process, marker: Mapping[str, str]) -> None:
        self._process, self._marker = process, marker
        self.noise: deque[str] = deque(maxlen=_TAIL)
        self.skipped = 0
        self._buffer = bytearray()
        self._stderr = asyncio.ensure_future(self._drain())

    @classmethod
    async def start(cls, command: list[str], *, env: Mapping[str, str], cwd: str) -> "ServerProcess":
        """Start it in a session of its own with exactly ``env`` and a mark. Raises ``OpenDevError`` (not found)."""
        marker = {MARK: new_id(16)}
        try:
            start = asyncio.create_subprocess_exec(
                *command,
                env={**env, **marker},
                cwd=cwd or None,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
            process = await started(start, lambda half_made: cls(half_made, marker).stop())
        except (OSError, ValueError) as error:
            raise OpenDevError(
                ErrorKind.NOT_FOUND,
                f"The command {command[0]} could not be started: {error}.",
                "Is the program installed and on PATH?",
            ) from error
        return cls(process, marker)

    @property
    def pid(self) -> int:
        """The process, which is also its group."""
        return self._process.pid

    async def message(self) -> JsonObject | None:
        """The next JSON object on its output; None at the end. Whatever else it prints is noted and passed over."""
        while (line := await self._line()) is not None:
            text = line.decode("utf-8", "replace").strip()
            if not text:
                continue
            value = _parsed(text)
            if value is not None:
                return value
            self.skipped += 1
            self.noise.append(text[:_LINE])
            if (answer := _answer_in(text)) is not None:
                return answer
        return None

    async def send(self, text: str) -> None:
        """Write one message. Raises ``OSError`` when the server is gone."""
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            raise BrokenPipeError("its input is closed")
        stdin.write(text.encode("utf-8", "replace") + b"\n")
        await stdin.drain()

    async def stop(self) -> None:
        """Close its input, SIGTERM, SIGKILL; returns when it and everything it started are dead. Idempotent."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
        loop = asyncio.get_running_loop()
        until = loop.time() + GRACE_S
        while self._process.returncode is None and loop.time() < until:  # noqa: ASYNC110 - there is no event of it
            await asyncio.sleep(0.01)  # not wait(): that waits for its pipes too, and a child may hold them
        marker = self._marker if HAS_PROC else None
        await end(lambda: family(marker=marker, group=self.pid), GRACE_S)
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()  # a system without /proc
        await ended(self._process)
        self._stderr.cancel()
        await asyncio.wait((self._stderr,))

    async def _line(self) -> bytes | None:
        """One line; of a line that is too long only its beginning, as noise."""
        stream = cast("asyncio.StreamReader", self._process.stdout)
        dropped = False
        while True:
            cut = self._buffer.find(b"\n")
            if cut >= 0:
                line = bytes(self._buffer[:cut])
                del self._buffer[: cut + 1]
                return b"(a line that was too long)" if dropped else line
            if len(self._buffer) > MAX_LINE:
                self._buffer.clear()
                dropped = True
            chunk = await stream.read(_CHUNK)
            if not chunk:
                return None
            self._buffer += chunk

    async def _drain(self) -> None:
        """Keep the last lines of stderr; a flood is read and forgotten."""
        stream = cast("asyncio.StreamReader", self._process.stderr)
        rest = b""
        while chunk := await stream.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[:_LINE]
            self.noise.extend(
                line.decode("utf-8", "replace")[:_LINE] for line in lines[-_TAIL:] if line.strip()
            )
        if rest.strip():
            self.noise.append(rest.decode("utf-8", "replace"))


def _parsed(text: str) -> JsonObject | None:
    """The message that a whole line is; None for what is none."""
    try:
        return _message(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _message(value: Any) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) and "jsonrpc" in value else None


def _answer_in(text: str) -> JsonObject | None:
    """An answer that noise without a line end stands around. Requests in there are not believed: some servers log what they get."""
    start = text.find("{") if '"jsonrpc"' in text else -1
    for _ in range(_STARTS):
        if start < 0:
            break
        with contextlib.suppress(ValueError, RecursionError):
            found = _message(_DECODER.raw_decode(text, start)[0])
            if found is not None and "id" in found and not {"result", "error"}.isdisjoint(found):
                return found
        start = text.find("{", start + 1)
    return None
