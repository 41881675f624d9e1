"""Which engine fetches: Chromium driven by Playwright, or plain HTTP with a note where no browser can be used (WEB-01, WEB-06)."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from ...core.errors import OpenDevError
from .browser import BrowserEngine, browser_context
from .guard import Guard
from .page import Engine
from .plain import PlainEngine


@asynccontextmanager
async def open_engine(guard: Guard, env: Mapping[str, str]) -> AsyncGenerator[tuple[Engine, str]]:
    """The best engine of this machine, and why it is no better; the note is empty for a browser."""
    async with AsyncExitStack() as stack:
        try:
            context = await stack.enter_async_context(browser_context(guard, env))
        except OpenDevError as error:
            yield PlainEngine(guard), error.info.message
        else:
            yield BrowserEngine(context, guard), ""
