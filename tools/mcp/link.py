"""The life of one server: started beside the work, watched, started again with back-off, and ended for certain (X03, X05)."""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import Frozen, JsonObject
from ...policy.redact import redact
from .client import RemoteResult, RemoteTool, Session, connect
from .config import McpServer
from .stdio import ServerProcess

BACKOFF_S = (
    0.2,
    1.0,
    3.0,
    10.0,
)  # before the tries after the first; after the last the server waits for a call
STEADY_S = 30.0  # a connection that lived so long was no crash loop
_NOISE_LINES = 3


class LinkState(StrEnum):
    """Where a server is in its life."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"  # for the next try
    FAILED = "failed"  # until somebody calls it
    NEEDS_LOGIN = "needs login"
    STOPPED = "stopped"


class LinkStatus(Frozen):
    """A server as people see it. ``why`` says what is wrong, with its last words; ``pid`` of a running stdio server."""

    name: str
    state: LinkState
    tools: int = 0
    why: str = ""
    pid: int | None = None
    noisy_lines: int = 0  # on its standard output, where only messages belong


class ServerLink:
    """One server. ``on_news`` is called after every change of state or tools; nothing here blocks or raises at its caller."""

    def __init__(self, server: McpServer, env: Mapping[str, str], on_news: Callable[[], None]) -> None:
        self.server = server
        self.tools: tuple[RemoteTool, ...] = ()
        self._env, self._on_news = env, on_news
        self._state, self._why = LinkState.STOPPED, ""
        self._session: Session | None = None
        self._process: ServerProcess | None = None
        self._owner: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._retry = asyncio.Event()
        self._news = asyncio.Event()
        self._closed = self._changed = self._stop = False

    @property
    def status(self) -> LinkStatus:
        """As it is now."""
        process = self._process
        running = process is not None and self._state in (LinkState.READY, LinkState.STARTING)
        return LinkStatus(
            name=self.server.name,
            state=self._state,
            tools=len(self.tools),
            why=self._why,
            pid=process.pid if process is not None and running else None,
            noisy_lines=process.skipped if process else 0,
        )

    def start(self) -> None:
        """Begin, beside whatever runs. Idempotent."""
        if self._owner is None:
            self._stop = False
            self._state = LinkState.STARTING
            self._owner = asyncio.ensure_future(self._live())
            self._owner.add_done_callback(self._over)

    async def stop(self) -> None:
        """End it; returns when its processes are dead. Idempotent."""
        self._stop = True
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.cancel()  # once: what it started is ended on the way out
            await asyncio.wait((owner,))
        self._set(LinkState.STOPPED, "")

    async def settled(self, wait_s: float) -> None:
        """Wait until the first try is decided, at most ``wait_s`` seconds."""
        await self._until(lambda: self._state is not LinkState.STARTING, wait_s)

    async def call(self, tool: str, arguments: JsonObject) -> RemoteResult:
        """Call a tool; a server that is down is given its time-out to come back. A time-out of a call costs only the call.

        Raises ``OpenDevError``: time-out, tool (the server refuses), infra (it is down), denied (it wants a login).
        """
        session = await self._connected()
        try:
            async with asyncio.timeout(self.server.timeout_s):
                return await session.call(tool, arguments)
        except TimeoutError as error:
            raise OpenDevError(
                ErrorKind.TIMEOUT,
                f"The MCP server {self.server.name} did not answer {tool} within {self.server.timeout_s:g} s.",
                "The call was cancelled; the server still runs. Try a smaller request.",
            ) from error
        except OpenDevError as error:
            if error.info.kind is ErrorKind.INFRA and self._session is session:
                self._end_of_connection()
            raise

    async def _connected(self) -> Session:
        if self._state is LinkState.FAILED:
            self._set(LinkState.WAITING, self._why)
        if self._state is LinkState.WAITING:
            self._retry.set()  # a call wants the next try now
        over = (LinkState.FAILED, LinkState.NEEDS_LOGIN, LinkState.STOPPED)
        await self._until(lambda: self._session is not None or self._state in over, self.server.timeout_s)
        if self._session is not None:
            return self._session
        kind = ErrorKind.DENIED if self._state is LinkState.NEEDS_LOGIN else ErrorKind.INFRA
        raise OpenDevError(
            kind,
            f"The MCP server {self.server.name} is not there ({self._state.value}). {self._why}".rstrip(),
            "Go on without it, or try again later.",
        )

    async def _until(self, done: Callable[[], bool], wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                while not done():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return

    async def _live(self) -> None:
        """Connections one after the other; this task alone enters and leaves them, as the SDK demands."""
        failures = 0
        loop = asyncio.get_running_loop()
        while not self._stop:
            since = loop.time()
            try:
                await self._connection()
                why = "It ended."
            except OpenDevError as error:
                why = error.info.sentence()
                if error.info.kind is ErrorKind.DENIED:
                    failures = len(BACKOFF_S)
                    self._set(LinkState.NEEDS_LOGIN, why)
            if self._stop:
                return
            failures = 0 if loop.time() - since >= STEADY_S else failures
            await self._pause(failures, f"{why}{self._last_words()}")
            failures = min(failures + 1, len(BACKOFF_S))

    async def _connection(self) -> None:
        """One connection from its start to its end. Raises ``OpenDevError`` when it does not come to be."""
        self._closed = self._changed = False
        self._wake.clear()
        self._retry.clear()
        self._set(LinkState.STARTING, "")

        def changed() -> None:
            self._changed = True
            self._wake.set()

        def noise(process: ServerProcess) -> None:
            self._process = process

        link = connect(
            self.server, self._env, on_changed=changed, on_closed=self._end_of_connection, noise=noise
        )
        try:
            async with asyncio.timeout(self.server.timeout_s) as timer, link as session:
                await self._list(session)
                timer.reschedule(None)  # it was for the start
                self._session = session
                self._set(LinkState.READY, "")
                await self._watch(session)
        except TimeoutError as error:
            raise OpenDevError(
                ErrorKind.TIMEOUT,
                f"The MCP server {self.server.name} did not answer within {self.server.timeout_s:g} s.",
            ) from error
        finally:
            self._end_of_connection()

    async def _watch(self, session: Session) -> None:
        while not self._closed:
            await self._wake.wait()
            self._wake.clear()
            if self._changed and not self._closed:
                self._changed = False
                async with asyncio.timeout(self.server.timeout_s):
                    await self._list(session)

    async def _list(self, session: Session) -> None:
        self.tools = await session.tools()
        self._on_news()

    async def _pause(self, failures: int, why: str) -> None:
        """Wait for the next try: some seconds, or, after the last of them, for a call."""
        self._retry.clear()
        if failures < len(BACKOFF_S):
            self._set(LinkState.WAITING, why)
            wait_s: float | None = BACKOFF_S[failures]
        else:
            login = self._state is LinkState.NEEDS_LOGIN
            self._set(LinkState.NEEDS_LOGIN if login else LinkState.FAILED, why)
            wait_s = None
        try:
            async with asyncio.timeout(wait_s):
                await self._retry.wait()
        except TimeoutError:
            return

    def _end_of_connection(self) -> None:
        self._closed = True
        self._session = None
        self._wake.set()

    def _over(self, owner: asyncio.Task[None]) -> None:
        """A defect in here must not look like a server that is starting."""
        if not owner.cancelled() and (error := owner.exception()) is not None:
            self._set(LinkState.FAILED, f"A defect: {type(error).__name__}: {error}")

    def _last_words(self) -> str:
        lines = [redact(line) for line in list(self._process.noise)[-_NOISE_LINES:]] if self._process else []
        return f" Its last words: {' | '.join(lines)}" if lines else ""

    def _set(self, state: LinkState, why: str) -> None:
        self._state, self._why = state, why
        self._news.set()
        self._on_news()
