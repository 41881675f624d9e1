"""A helper process of a tool: an argument list and no shell, lines read as they come, its group ended on time-out (S41)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from .started import ended, kill_group, let_go, started

_LINE_BYTES = 2_000_000
_STDERR_BYTES = 20_000


async def run_lines(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    on_line: Callable[[bytes], bool],
    timeout_s: float,
    stdin: bytes | None = None,
) -> tuple[int | None, str]:
    """Run ``argv`` in a process group of its own and hand each line of its output to ``on_line`` until it returns False.

    Returns the exit code (None when it was ended because no more was wanted) and the beginning of its standard error.
    The group is dead on return, also when this coroutine is cancelled.

    Raises:
        OpenDevError: ``TOOL`` when it cannot be started, ``TIMEOUT`` after ``timeout_s`` seconds.
    """
    try:
        start = asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LINE_BYTES,
        )
        process = await started(start, kill_group)
    except OSError as error:
        raise OpenDevError(ErrorKind.TOOL, f"{argv[0]} cannot be started ({error}).") from error
    try:
        async with asyncio.timeout(timeout_s):
            errors = asyncio.create_task(_head(process.stderr))
            try:
                if stdin is not None and process.stdin is not None:
                    process.stdin.write(stdin)
                    process.stdin.close()
                whole = await _feed(process.stdout, on_line)
                if not whole:
                    return None, ""
                return await ended(process), await errors
            finally:
                errors.cancel()
    except TimeoutError as error:
        name = Path(argv[0]).name
        raise OpenDevError(
            ErrorKind.TIMEOUT, f"{name} took more than {timeout_s:.0f} seconds and was ended."
        ) from error
    finally:
        await asyncio.shield(asyncio.ensure_future(kill_group(process)))
        let_go(process)


async def _feed(stream: asyncio.StreamReader | None, on_line: Callable[[bytes], bool]) -> bool:
    """False when ``on_line`` wanted no more."""
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # a line beyond the limit: the reader dropped it
            continue
        if not line:
            break
        if not on_line(line):
            return False
    return True


async def _head(stream: asyncio.StreamReader | None) -> str:
    """Drain the stream, keep its beginning."""
    kept = b""
    while stream is not None:
        chunk = await stream.read(8_192)
        if not chunk:
            break
        kept = (kept + chunk)[:_STDERR_BYTES]
    return kept.decode("utf-8", "replace").strip()
