"""A sender's outgoing mail: 50 ms windows, one batch in flight, acknowledged; keeps order and saves 3-5x CPU (rule 9)."""

import asyncio
import logging
from collections import deque
from typing import Any

from ..core.clock import Clock, iso
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import EPHEMERAL, TextDelta
from ..core.ids import new_id
from ..core.mail import ENVELOPE, Body, Envelope, Failed, Progress
from ..core.ports import Ref

WINDOW_S = 0.05
TRIES = 3
_log = logging.getLogger(__name__)


class Outbox:
    """Letters of one sender to the hub. ``limit`` bounds what waits: ephemeral events are dropped above it, and whoever
    calls ``room`` waits (an event sink itself may never block)."""

    def __init__(
        self,
        *,
        post: Ref,
        sender: str,
        session: str,
        clock: Clock,
        window_s: float = WINDOW_S,
        limit: int = 2000,
    ) -> None:
        self._post, self._sender, self._session, self._clock = post, sender, session, clock
        self._window_s, self._limit = window_s, limit
        self._waiting: deque[Body] = deque()
        self._seq = 0
        self._pump: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self.dropped = 0

    def put(self, body: Body) -> None:
        """Queue a letter; never blocks, never raises. Pieces of one text are joined."""
        if isinstance(body, Progress) and body.event.kind in EPHEMERAL:
            if self._joined(body):
                return
            if len(self._waiting) >= self._limit:
                self.dropped += 1
                return
        self._waiting.append(body)
        if self._pump is None or self._pump.done():
            self._hurry.clear()
            self._pump = asyncio.get_running_loop().create_task(self._run())

    async def room(self) -> None:
        """Wait while the outbox is over its bound."""
        if len(self._waiting) >= self._limit:
            await self.flush()

    async def flush(self) -> None:
        """Wait until all that was put is acknowledged (or given up)."""
        while self._pump is not None and not self._pump.done():
            self._hurry.set()
            await asyncio.wait({self._pump})

    async def ask(self, body: Body, to: str = "hub") -> Body:
        """Send a question after everything put before it, and wait for its answer. An unreachable hub is ``Failed``."""
        await self.flush()
        try:
            answer = await self._post.ask("ask", self._letter(body, to))
        except OpenDevError as error:
            return Failed(error=error.info)
        return ENVELOPE.validate_json(answer).body

    def _joined(self, body: Progress) -> bool:
        last = self._waiting[-1] if self._waiting else None
        old = last.event if isinstance(last, Progress) else None
        if not (
            isinstance(old, TextDelta) and isinstance(body.event, TextDelta) and old.agent == body.event.agent
        ):
            return False
        merged = old.model_copy(update={"text": old.text + body.event.text})
        self._waiting[-1] = Progress(event=merged)
        return True

    def _letter(self, body: Body, to: str = "hub") -> str:
        self._seq += 1
        return Envelope(
            id=new_id(),
            session=self._session,
            sender=self._sender,
            to=to,
            seq=self._seq,
            at=iso(self._clock.now()),
            body=body,
        ).to_json()

    async def _run(self) -> None:
        while self._waiting:
            if self._window_s and not self._hurry.is_set():
                await _wait(self._hurry, self._window_s)
            batch = [self._letter(self._waiting.popleft()) for _ in range(len(self._waiting))]
            if not await self._delivered(batch):
                self.dropped += len(batch)
                _log.error("%s: %d letters could not be delivered; the hub is gone", self._sender, len(batch))

    async def _delivered(self, batch: list[str]) -> bool:
        for attempt in range(TRIES):
            try:
                await self._post.ask("post", batch)
            except OpenDevError as error:
                if error.info.kind is not ErrorKind.INFRA:
                    return False
                await asyncio.sleep(0.1 * 3**attempt)  # the batch goes out again; the hub removes doubles
            else:
                return True
        return False


async def _wait(event: asyncio.Event, seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
