"""Writes that cannot tear: temp + rename for whole files, append + fsync for JSON lines, locks with a time-out."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from ..core.errors import ErrorKind, OpenDevError


def write_atomic(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` by ``data``: a reader sees the old or the new content, never a part. Raises ``OpenDevError`` (infra)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _disk_error("write", path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temp).chmod(mode)
        Path(temp).replace(path)
    except OSError as error:
        Path(temp).unlink(missing_ok=True)
        raise _disk_error("write", path, error) from error


class JsonlLog:
    """An append-only file of JSON lines, 0600, one ``write`` and one ``fsync`` per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: str, *, durable: bool = True) -> None:
        """Append one line. A torn tail left by a crash is closed with a line break first. Raises ``OpenDevError`` (infra)."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                _write_all(fd, (b"\n" if torn else b"") + line.encode() + b"\n")
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _disk_error("append to", self.path, error) from error

    def read(self) -> Iterator[str]:
        """The whole lines, oldest first; lenient: a torn tail, NUL bytes and blank lines are passed over."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for raw in file:
                line = raw.strip(b"\0\r\n \t")
                if line and raw.endswith(b"\n") and b"\0" not in line:
                    yield line.decode(errors="replace")


class Lock:
    """A lock between processes. A time-out is a failure, never a silent go-ahead."""

    def __init__(self, path: Path, timeout_s: float = 10.0) -> None:
        self._path = path
        self._timeout_s = timeout_s
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FileLock(str(path))

    def __enter__(self) -> "Lock":
        try:
            self._lock.acquire(timeout=self._timeout_s)
        except Timeout as error:
            raise OpenDevError(
                ErrorKind.INFRA,
                f"Another process held the lock {self._path} for more than {self._timeout_s:.0f} s.",
                "Wait for it to end, or look for it with `opendev worktrees doctor`.",
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _disk_error(verb: str, path: Path, error: OSError) -> OpenDevError:
    return OpenDevError(
        ErrorKind.INFRA,
        f"Could not {verb} {path}: {error.strerror or error}.",
        "Free disk space or make the folder writable, or point OPENDEV_HOME to another folder.",
    )
