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
from .started import ended, started

HOOK_MARK = "OPENDEV_HOOK"  # finds what a hook started, also outside of its group
_CAP = 100_000  # bytes kept of standard output and of standard error
_LEFT_S = 0.3  # for what is still in the pipes after the end
_GRACE_S = 0.5  # between SIGTERM and SIGKILL


async def run_hook(hook: Hook, letter: bytes, *, env: Mapping[str, str], cwd: str) -> Ended:
    """Run it to its end or to its time-out. Nothing it started lives on. Raises only ``CancelledError``, with it dead."""
    mark = uuid.uuid4().hex
    try:
        process = await started(
            _start(hook.command, {**env, HOOK_MARK: mark}, cwd), lambda half_made: _bury(half_made, mark)
        )
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
                code = await ended(process)
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
    await ended(process)


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
