"""Siblings with one prompt prefix: the first request goes ahead, so that the provider's prompt cache is warm for the others."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from ..core.chat import ModelRequest, SystemMessage, canonical

HEAD_START_S = 1.0  # the others wait no longer than that, whatever the first one does
WORTH_CHARS = 4_000  # providers cache prefixes of about a thousand tokens and more
KEPT = 256


class PrefixWarmer:
    """Lets the first request of each prefix (model, tools, stable part of the prompt) go alone for up to ``HEAD_START_S``."""

    def __init__(self, head_start_s: float = HEAD_START_S) -> None:
        self._head_start_s = head_start_s
        self._known: OrderedDict[str, asyncio.Event] = OrderedDict()

    def __len__(self) -> int:
        """Prefixes remembered, at most ``KEPT``."""
        return len(self._known)

    @asynccontextmanager
    async def turn(self, request: ModelRequest) -> AsyncGenerator[None]:
        """Around one call of a model. Requests with a short prefix, or one that is warm already, pass at once."""
        key = _prefix(request)
        warm = self._known.get(key)
        if not key or warm is not None:
            if warm is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(warm.wait(), self._head_start_s)
            yield
            return
        first = self._known[key] = asyncio.Event()
        if len(self._known) > KEPT:
            self._known.popitem(last=False)[1].set()
        try:
            yield
        finally:
            first.set()


def _prefix(request: ModelRequest) -> str:
    """A digest of what a provider could cache; empty when it is not worth waiting for."""
    stable = "".join(m.stable for m in request.messages if isinstance(m, SystemMessage))
    tools = canonical([tool.model_dump(mode="json") for tool in request.tools])
    if len(stable) + len(tools) < WORTH_CHARS:
        return ""
    return hashlib.sha256(f"{request.model}\0{stable}\0{tools}".encode()).hexdigest()
