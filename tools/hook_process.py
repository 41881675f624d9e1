"""Runs one hook: JSON on standard input, bounded output, a process group of its own that is ended in any case (HOK-03, HOK-09)."""

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import Mapping

from ..core.errors import OpenDevError
from ..core.hooks import Hook
from ..policy.hooks import Ended
from .shell.reap import HAS_PROC, end, family

HOOK_MARK = "OPENDEV_HOOK"  # finds what a hook started, also outside of its group
_CAP = 100_000  # bytes kept of standard output and of standard error
_LEFT_S = 0.3  # for what is still in the pipes after the end
_POLL_S = (0.002, 0.02)
_GRACE_S = 0.5  # between SIGTERM and SIGKILL


async def run_hook(hook: Hook, letter: bytes, *, env: Mapping[str, str], cwd: str) -> Ended:
    """Run it to its end or to its time-out. Nothing it started lives on. Raises only ``CancelledError``, with it dead."""
    mark = uuid.uuid4().hex
    starting = asyncio.ensure_future(_start(hook.command, {**env, HOOK_MARK: mark}, cwd))
    try:
        process = await asyncio.shield(starting)
    except (
        asyncio.CancelledError
    ):  # a half-made process of asyncio would be waited for until its last child ends
        with contextlib.suppress(OSError, ValueError):
            await asyncio.shield(asyncio.ensure_future(_bury(await asyncio.shield(starting), mark)))
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the command
        return Ended(None, trouble=f"it could not be started: {error}")
    out, err = bytearray(), bytearray()
    pipes = [
        asyncio.ensure_future(_feed(process.stdin, letter)),
        asyncio.ensure_future(_keep(process.stdout, out)),
        asyncio.ensure_future(_keep(process.stderr, err)),
    ]
    code: int | None = None
    trouble = f"it did not end within {hook.timeout:g} s"
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(hook.timeout):
                code = await _exit_code(process)
        if code is not None:
            trouble = ""
            await asyncio.wait(pipes, timeout=_LEFT_S)  # a child of its own may hold them open
    finally:
        await asyncio.shield(asyncio.ensure_future(_bury(process, mark)))
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
    said, complaint = (bytes(stream[:_CAP]).decode(errors="replace") for stream in (out, err))
    return Ended(code, said, complaint, trouble, cut=len(out) > _CAP)


async def _start(command: str, env: Mapping[str, str], cwd: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", command),
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )


async def _bury(process: asyncio.subprocess.Process, mark: str) -> None:
    """End the group and whatever it started; after a clean end there is mostly nothing left."""
    group = process.pid
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return
    with contextlib.suppress(OpenDevError):  # what survives SIGKILL is named by the hub when the run ends
        if HAS_PROC:
            await end(lambda: family(marker={HOOK_MARK: mark}, group=group), _GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    await _exit_code(process)


async def _exit_code(process: asyncio.subprocess.Process) -> int:
    """Wait for the process alone: ``wait()`` of Python 3.11 also waits for its pipes, which a child may hold open."""
    pause, longest = _POLL_S
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(longest, pause * 1.5)
    return process.returncode


async def _feed(stream: asyncio.StreamWriter | None, letter: bytes) -> None:
    if stream is None:
        return
    with contextlib.suppress(OSError):  # it need not read
        stream.write(letter)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _keep(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    """The first bytes, and one more as a sign that there were others; the rest is read and dropped, so that it never waits."""
    while stream is not None and (data := await stream.read(65_536)):
        into.extend(data[: max(0, _CAP + 1 - len(into))])
