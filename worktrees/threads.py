"""Blocking git work in a thread that a cancelled caller waits for: a thread cannot be stopped, only outlived."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from ..core.errors import ErrorKind, OpenDevError

T = TypeVar("T")


async def uncut(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """Run ``work`` in a thread. When the caller is cancelled, wait until it ended, ``undo`` its result, then raise.

    So no git process runs on behind the back of whoever cleans up; each is bounded by its own time-out. What the operating
    system refuses (a full disk) is an ``OpenDevError`` (infra).
    """
    task = asyncio.ensure_future(asyncio.to_thread(_told, work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if undo is not None and not task.cancelled() and task.exception() is None:
            await asyncio.to_thread(undo, task.result())
        raise


def _told(work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise OpenDevError(
            ErrorKind.INFRA,
            f"The operating system refused work on a worktree: {error}.",
            "Free disk space, or point OPENDEV_HOME to another folder.",
        ) from error
