"""Processes with pipes: a start that a cancellation cannot cut in two, and an end that does not wait for who else holds the pipes."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

_POLL_S = (0.002, 0.02)


async def started(
    start: Coroutine[Any, Any, Process], end: Callable[[Process], Coroutine[Any, Any, object]]
) -> Process:
    """The process that ``start`` (of asyncio) makes. Cancelled meanwhile, it is ended by ``end`` before this returns.

    Asyncio itself would kill the process alone, and wait until the last of its children has closed the pipes.
    """
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await asyncio.shield(asyncio.ensure_future(_undo(starting, end)))
        raise


async def _undo(starting: Awaitable[Process], end: Callable[[Process], Awaitable[object]]) -> None:
    process = await starting
    await end(process)
    let_go(process)


def let_go(process: Process) -> None:
    """Close the pipes of a process that has ended: a child of it may hold them open, and asyncio would keep them as long."""
    process._transport.close()  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - no public way


async def ended(process: Process) -> int:
    """Wait for the process alone: ``wait()`` of Python 3.11 also waits for its pipes, which a child may hold open."""
    pause, longest = _POLL_S
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(longest, pause * 1.5)
    return process.returncode


async def kill_group(process: Process) -> None:
    """End the process and its group at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await ended(process)
