"""Numbered events: on disk first, then to every subscriber; a late or slow one reads the durable ones back from the log."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from ..core.clock import Clock, iso
from ..core.errors import OpenDevError
from ..core.events import EPHEMERAL, EVENT, Event
from ..policy.redact import redact_line
from ..store.atomic import JsonlLog

_log = logging.getLogger(__name__)


class LineWriter:
    """Appends lines to a log off the loop, in batches (one fsync each), and calls back once they are on disk."""

    def __init__(self, file: Path | JsonlLog, limit: int = 5000) -> None:
        self._file = file if isinstance(file, JsonlLog) else JsonlLog(file)
        self._queue: deque[tuple[str, Callable[[], None] | None]] = deque()
        self._limit = limit
        self._task: asyncio.Task[None] | None = None

    def put(self, line: str, then: Callable[[], None] | None = None) -> None:
        """Queue a line (empty = none, only the call-back in its turn); never blocks."""
        self._queue.append((line, then))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def full(self) -> bool:
        """Whether the bound is queued: the disk is slower than what is put."""
        return len(self._queue) >= self._limit

    async def room(self) -> None:
        """Wait while the bound is queued."""
        if self.full:
            await self.flush()

    async def flush(self) -> None:
        """Wait until all that was put is on disk and told."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while self._queue:
            batch = list(self._queue)
            self._queue.clear()
            lines = [line for line, _ in batch if line]
            try:
                if lines:
                    await asyncio.to_thread(self._file.append, "\n".join(lines))
            except OpenDevError as error:
                _log.error("%s", error)  # a full disk must not stop the run
            for _, then in batch:
                if then is not None:
                    then()


class _Subscriber:
    """One reader's queue. Over its bound ephemeral events go first; then it falls back to the log."""

    def __init__(self, limit: int) -> None:
        self.queue: deque[Event] = deque()
        self.limit = limit
        self.lagging = False
        self.news = asyncio.Event()

    def push(self, event: Event) -> None:
        if len(self.queue) >= self.limit:
            self.queue = deque(e for e in self.queue if e.seq)
        if len(self.queue) >= self.limit:
            self.queue.clear()
            self.lagging = True
        self.queue.append(event)
        self.news.set()


class Witness(Protocol):
    """Keeps a log of its own of some events."""

    def take(self, event: Event) -> None:
        """Note the event, if it is one of those; never blocks, never raises."""
        ...

    async def flush(self) -> None:
        """Wait until all is on disk."""
        ...


class EventLog:
    """``emit`` numbers and stores, ``subscribe`` gives a snapshot and the live tail. Ephemeral events have no number.
    ``audit`` is told each durable event as it was numbered."""

    def __init__(
        self,
        path: Path,
        *,
        run_id: str,
        clock: Clock,
        queue_limit: int = 1000,
        audit: Witness | None = None,
    ) -> None:
        self._audit = audit
        self._path, self._run_id, self._clock, self._limit = path, run_id, clock, queue_limit
        self._writer = LineWriter(path)
        self._subscribers: set[_Subscriber] = set()
        self._seq = 0
        self.began = 0  # the last number of earlier processes of this run
        self._published = 0
        self._closed = False

    async def start(self) -> None:
        """Go on counting where an earlier process of this run stopped."""
        stored = await asyncio.to_thread(self._stored, 0)
        self._seq = self._published = self.began = stored[-1].seq if stored else 0

    def emit(self, event: Event) -> None:
        """Number the event, store it, then show it. Never blocks, never raises; ephemeral ones go first when the disk is slow.

        Secrets go from the line on disk only: an answer to a question is bound to its exact arguments.
        """
        durable = event.kind not in EPHEMERAL
        if not durable and self._writer.full:
            return
        self._seq += durable
        stamp = {
            "seq": self._seq if durable else 0,
            "run": self._run_id,
            "at": event.at or iso(self._clock.now()),
        }
        stamped = event.model_copy(update=stamp)
        self._writer.put(redact_line(stamped.to_json()) if durable else "", lambda: self._publish(stamped))
        if durable and self._audit is not None:
            self._audit.take(stamped)

    async def subscribe(self, after_seq: int = 0) -> AsyncIterator[Event]:
        """Every durable event after number ``after_seq``, in order and without a gap, with the ephemeral ones between."""
        me = _Subscriber(self._limit)
        me.lagging = True
        self._subscribers.add(me)
        seen = after_seq
        try:
            while True:
                if me.lagging:
                    me.lagging = False
                    for event in await asyncio.to_thread(self._stored, seen):
                        seen = event.seq
                        yield event
                while me.queue and not me.lagging:
                    event = me.queue.popleft()
                    if not event.seq or event.seq > seen:
                        seen = event.seq or seen
                        yield event
                if me.lagging:
                    continue
                if self._closed:
                    return
                me.news.clear()
                await me.news.wait()
        finally:
            self._subscribers.discard(me)

    async def flush(self) -> None:
        """Wait until everything emitted is on disk and shown."""
        await self._writer.flush()

    async def close(self) -> None:
        """Store the rest and end every subscription."""
        await self.flush()
        if self._audit is not None:
            await self._audit.flush()
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.news.set()

    def _publish(self, event: Event) -> None:
        self._published = event.seq or self._published
        for subscriber in self._subscribers:
            subscriber.push(event)

    def _stored(self, after: int) -> list[Event]:
        found: list[Event] = []
        for line in JsonlLog(self._path).read():
            try:
                event = EVENT.validate_json(line)
            except ValidationError:
                continue  # written by a newer version, or torn
            if event.seq > after:
                found.append(event)
        return found
