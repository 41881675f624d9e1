"""The user's stdout and stderr, kept for what OpenDev says; whatever else writes to fds 1 and 2 lands in a log (ray.md rule 3)."""

import contextlib
import io
import os
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..core.errors import ErrorKind, OpenDevError, exit_of
from ..core.exits import Exit, combine


@dataclass(frozen=True, slots=True)
class Stdio:
    """``out`` and ``err`` reach the user also while ``diverted``; on a terminal they are that terminal."""

    out: TextIO
    err: TextIO

    @contextlib.contextmanager
    def diverted(self, log: Path) -> Generator[None]:
        """While inside, fds 1 and 2 append to ``log`` (0600): Ray's threads, C++ code and libraries write to the fds themselves.

        They are put back at the end, however it ends.
        """
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _flush()
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        saved = [os.dup(fd) for fd in (1, 2)]
        try:
            for fd in (1, 2):
                os.dup2(target, fd)
            yield
        finally:
            _flush()
            for fd, own in zip((1, 2), saved, strict=True):
                os.dup2(own, fd)
            for fd in (target, *saved):
                os.close(fd)


class Murmur(io.TextIOWrapper):
    """Standard error: what cannot be written there (a full disk, nobody reads) is lost, and costs the command nothing else."""

    def write(self, s: str, /) -> int:
        with contextlib.suppress(OSError):
            super().write(s)
        return len(s)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def murmur(stream: TextIO, fd: int) -> TextIO:
    """``stream``, which is on ``fd``, as such a stream."""
    raw = os.fdopen(fd, "wb", closefd=fd != 2)
    return Murmur(raw, encoding=stream.encoding, errors="backslashreplace", line_buffering=True)


@contextlib.contextmanager
def own_stdio() -> Generator[Stdio]:
    """Streams for one command; what was written is flushed at the end, and a reader that went away is no error."""
    stdio = Stdio(_copy(sys.stdout, 1), _copy(sys.stderr, 2))
    try:
        yield stdio
    finally:
        for stream in (stdio.out, stdio.err):
            if stream not in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.close()


def say(text: str) -> None:
    """Write ``text`` to standard output, at once. A reader that went away is no error; raises ``OpenDevError`` (infra) for any
    other reason why it cannot be written, such as a full disk."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _forget()
        if not isinstance(error, BrokenPipeError):
            raise lost(error) from error


def deliver(text: str, code: int, before: OSError | None = None) -> int:
    """``say`` the result of a run that ended with ``code``; the exit code. ``before``: why a part of it is lost already."""
    try:
        if before is not None:
            raise lost(before)
        say(text)
    except OpenDevError as error:
        sys.stderr.write(f"opendev: {error.info.sentence()}\n")
        return int(combine((Exit(code), exit_of(error.info.kind))))
    return code


def lost(why: OSError) -> OpenDevError:
    """The error of output that could not be written."""
    return OpenDevError(
        ErrorKind.INFRA,
        f"Standard output cannot be written: {why.strerror or why}.",
        "What was done stays done; only its report is lost.",
    )


def _forget() -> None:
    """What is still buffered goes nowhere: it would fail again when the interpreter ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _copy(stream: TextIO, fd: int) -> TextIO:
    """The same file by another fd. A stream that is not on ``fd`` (a test's buffer) cannot be diverted, so it is its own copy."""
    if _fd_of(stream) != fd:
        return stream
    stream.flush()
    if isinstance(stream, Murmur):
        return murmur(stream, os.dup(fd))
    return os.fdopen(os.dup(fd), "w", buffering=1, encoding=stream.encoding, errors=stream.errors)


def _fd_of(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # it is in memory, or closed
        return -1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader has gone, or it was closed
            stream.flush()
