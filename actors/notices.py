"""Brings what the model service wants to tell the user (waits, retries, assumed prices) to the run's events."""

import asyncio
import contextlib

from ..core.errors import OpenDevError
from ..core.events import Notice
from ..core.ports import EventSink, Ref

POLL_S = 1.0
LAST_S = 2.0  # how long the end of a run waits for the last notices


class NoticeRelay:
    """Asks the model service once a second, and a last time on ``close``. A service that is gone ends it in silence:
    its death is told by whoever calls it."""

    def __init__(self, model: Ref, emit: EventSink) -> None:
        self._model, self._emit = model, emit
        self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def close(self) -> None:
        """Tell what is left, then stop asking."""
        self._polling.cancel()
        await asyncio.wait({self._polling})
        with contextlib.suppress(OpenDevError, TimeoutError):
            async with asyncio.timeout(LAST_S):
                await self._take()

    async def _poll(self) -> None:
        with contextlib.suppress(OpenDevError):
            while True:
                await asyncio.sleep(POLL_S)
                await self._take()

    async def _take(self) -> None:
        for text in await self._model.ask("take_notices"):
            self._emit(Notice(level="warning", text=text))
