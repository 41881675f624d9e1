"""Events for every screen of a conversation, across its sessions; a screen that does not read loses the oldest and is told."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from ...core.events import EPHEMERAL, Event, Notice

LIMIT = 5_000
EARLY = 100


class _Reader:
    """One screen's queue. Over its bound ephemeral events go first, then the oldest."""

    def __init__(self) -> None:
        self.queue: deque[Event] = deque()
        self.lost = 0
        self.news = asyncio.Event()

    def push(self, event: Event) -> None:
        if len(self.queue) >= LIMIT:
            self.queue = deque(kept for kept in self.queue if kept.kind not in EPHEMERAL)
        if len(self.queue) >= LIMIT:
            self.queue.popleft()
            self.lost += 1
        self.queue.append(event)
        self.news.set()


class Fan:
    """``put`` never blocks. Iteration ends with ``close``, once all that was put has been read."""

    def __init__(self) -> None:
        self._readers: set[_Reader] = set()
        self._closed = False
        self._early: deque[Event] = deque(maxlen=EARLY)  # before there is any screen; the first one gets them

    def put(self, event: Event) -> None:
        """Show the event on every screen."""
        if not self._readers:
            self._early.append(event)
        for reader in self._readers:
            reader.push(event)

    def close(self) -> None:
        """Nothing comes any more."""
        self._closed = True
        for reader in self._readers:
            reader.news.set()

    def subscribe(self) -> AsyncIterator[Event]:
        """Everything from now on, and what no screen has seen yet."""
        reader = _Reader()
        while self._early:
            reader.push(self._early.popleft())
        self._readers.add(reader)
        return self._read(reader)

    async def _read(self, reader: _Reader) -> AsyncIterator[Event]:
        try:
            while True:
                if reader.lost:
                    text = f"{reader.lost} events came faster than they could be shown."
                    reader.lost = 0
                    yield Notice(level="warning", text=text)
                while reader.queue:
                    yield reader.queue.popleft()
                if self._closed:
                    return
                reader.news.clear()
                await reader.news.wait()
        finally:
            self._readers.discard(reader)
