"""The main mailbox actor: the one handle workers hold. Letters wait here until the driver's hub drains and answers them (rule 9)."""

import asyncio
from typing import Any


class Mailbox:
    """Bounded: when ``limit`` letters wait, ``post`` and ``ask`` wait too, so a slow driver slows the senders and not the memory."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._posts: list[str] = []
        self._asks: list[tuple[int, str]] = []
        self._parked: dict[int, asyncio.Future[str]] = {}
        self._gone: list[int] = []
        self._count = 0
        self._change = asyncio.Condition()

    async def post(self, letters: list[str]) -> int:
        """Take letters of one sender, in order; how many, as the acknowledgement."""
        async with self._change:
            await self._change.wait_for(lambda: len(self._posts) < self._limit)
            self._posts.extend(letters)
            self._change.notify_all()
        return len(letters)

    async def ask(self, letter: str) -> str:
        """Take one letter and wait for its answer; a cancelled question is reported to the hub as gone."""
        self._count += 1
        key = self._count
        async with self._change:
            await self._change.wait_for(lambda: len(self._asks) < self._limit)
            future = self._parked[key] = asyncio.get_running_loop().create_future()
            self._asks.append((key, letter))
            self._change.notify_all()
        try:
            return await future
        finally:
            del self._parked[key]
            if future.cancelled() or not future.done():
                self._gone.append(key)

    async def drain(self, linger_s: float, wait_s: float) -> dict[str, Any]:
        """All that waits: ``{"posts": [letter], "asks": [[key, letter]], "gone": [key]}``.

        Waits up to ``wait_s`` seconds for the first letter, then ``linger_s`` for more.
        """
        try:
            async with asyncio.timeout(wait_s), self._change:
                await self._change.wait_for(lambda: bool(self._posts or self._asks or self._gone))
        except TimeoutError:
            return {"posts": [], "asks": [], "gone": []}
        await asyncio.sleep(linger_s)
        async with self._change:
            batch = {"posts": self._posts, "asks": self._asks, "gone": self._gone}
            self._posts, self._asks, self._gone = [], [], []
            self._change.notify_all()
        return batch

    async def answer(self, answers: list[tuple[int, str]]) -> None:
        """Deliver answers by key; one whose asker went away is dropped."""
        for key, letter in answers:
            future = self._parked.get(key)
            if future is not None and not future.done():
                future.set_result(letter)
