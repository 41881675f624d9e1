"""Waiting in tests: for a condition, or for a number that a process writes to a file."""

import asyncio
from collections.abc import Callable
from pathlib import Path


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return once ``condition`` holds; ``TimeoutError`` when it does not within ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the thing waited for knows no event
            await asyncio.sleep(0.01)


async def number_in(path: Path) -> int:
    """The number in a file, once it is there."""
    await until(lambda: path.is_file() and path.read_text().endswith("\n"))
    return int(path.read_text())  # noqa: ASYNC240 - a few bytes, in a test
