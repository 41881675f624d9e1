"""The running servers: one for each root and language, started late, mended after a crash, ended when idle (SYM-03, X16)."""

import asyncio
import contextlib
import shutil
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.clock import Clock
from ...core.errors import ErrorKind, OpenDevError
from ..installs import install_hint
from .server import LanguageServer
from .servers import ServerSpec
from .words import Stamp

MAX_CRASHED = 50  # folders whose crashes are remembered
MAX_SERVERS = 3  # each is a process of 100 to 200 MB
IDLE_S = 600.0  # a server nobody asks for so long is ended
STEADY_S = 60.0  # one that lived so long has not crashed at its start
BACKOFF_S, BACKOFF_CAP_S = 0.5, 60.0
PATIENCE_S = 1.0  # a longer pause before a restart is told, not waited for
_Key = tuple[Path, str]


@dataclass
class _Entry:
    server: LanguageServer
    born: float
    used: float


@dataclass
class _Crashes:
    """``count`` in a row; not before ``until`` is the next start."""

    count: int = 0
    until: float = 0.0


class ServerPool:
    """``env`` is the whole environment of a server; they run in ``folder``, so that nothing of the user's tree is loaded
    from the current directory. Callers hold ``lock``: opening files and asking belong together.
    """

    def __init__(
        self, *, env: Mapping[str, str], folder: Path, path: str, clock: Clock, idle_s: float = IDLE_S
    ) -> None:
        self._env, self._folder, self._path = env, folder, path
        self._clock, self._idle_s = clock, idle_s
        self.lock = asyncio.Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._crashes: dict[_Key, _Crashes] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def command(self, spec: ServerSpec) -> tuple[str, ...]:
        """The server's argument list. Raises ``OpenDevError`` (not found), naming what to install (SYM-12)."""
        beside = str(Path(sys.executable).parent)
        for commands, where in ((spec.commands, self._path), (spec.bundled, beside)):
            for name, *arguments in commands:
                if found := shutil.which(name, path=where):
                    return (found, *arguments)
        message = f"No language server for {spec.language} was found: {spec.programs}."
        raise OpenDevError(ErrorKind.NOT_FOUND, message, install_hint(spec.install))

    def running(self, root: Path, spec: ServerSpec) -> LanguageServer | None:
        """The live server, if there is one."""
        entry = self._entries.get((root, spec.language))
        return entry.server if entry is not None and entry.server.alive else None

    async def ready(self, root: Path, spec: ServerSpec, files: Mapping[str, Stamp]) -> LanguageServer:
        """A live server whose picture of the tree is up to date; a dead one is replaced."""
        key = (root, spec.language)
        entry = self._entries.get(key)
        if entry is not None and not entry.server.alive:
            del self._entries[key]
            await entry.server.stop()
            self._note_crash(key, lived=self._clock.monotonic() - entry.born)
            entry = None
        if entry is None:
            entry = await self._start(key, spec)
        entry.used = self._clock.monotonic()
        self._entries.move_to_end(key)
        await entry.server.refresh(files)
        return entry.server

    async def close(self) -> None:
        """End every server; returns when their processes are dead."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        entries, self._entries = self._entries, OrderedDict()
        await asyncio.gather(*(entry.server.stop() for entry in entries.values()))

    async def _start(self, key: _Key, spec: ServerSpec) -> _Entry:
        command = self.command(spec)
        await self._back_off(key, spec)
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        server = LanguageServer(key[0], spec)
        try:
            await server.start(command, self._env, self._folder)
        except OpenDevError:
            self._note_crash(key, lived=0.0)
            raise
        now = self._clock.monotonic()
        entry = self._entries[key] = _Entry(server, now, now)
        while len(self._entries) > MAX_SERVERS:
            await self._entries.popitem(last=False)[1].server.stop()
        if self._sweeper is None:
            self._sweeper = asyncio.ensure_future(self._sweep())
        return entry

    def _note_crash(self, key: _Key, *, lived: float) -> None:
        """The first restart is at once, then after 0.5, 1, 2 … at most 60 s."""
        crashes = self._crashes[key] = self._crashes.pop(key, _Crashes())
        while len(self._crashes) > MAX_CRASHED:  # of folders that were left long ago
            del self._crashes[next(iter(self._crashes))]
        crashes.count = 1 if lived >= STEADY_S else crashes.count + 1
        pause = 0.0 if crashes.count == 1 else min(BACKOFF_S * 2 ** (crashes.count - 2), BACKOFF_CAP_S)
        crashes.until = self._clock.monotonic() + pause

    async def _back_off(self, key: _Key, spec: ServerSpec) -> None:
        crashes = self._crashes.get(key)
        if crashes is None:
            return
        pause = crashes.until - self._clock.monotonic()
        if pause > PATIENCE_S:
            message = f"The language server of {spec.language} ended {crashes.count} times in a row."
            hint = f"It is started again in {pause:.0f} s at the earliest; use search meanwhile."
            raise OpenDevError(ErrorKind.INFRA, message, hint)
        await asyncio.sleep(max(pause, 0.0))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._idle_s / 4)
            async with self.lock:
                old = self._clock.monotonic() - self._idle_s
                for key in [key for key, entry in self._entries.items() if entry.used < old]:
                    await self._entries.pop(key).server.stop()
