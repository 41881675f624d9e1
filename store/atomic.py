"""Writes that cannot tear: temp + rename for whole files, append + fsync for JSON lines, locks with a time-out."""

import errno
import os
import tempfile
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from types import TracebackType

from ..core.errors import ErrorKind, OpenDevError

_POLL_S = 0.01  # between two looks at a lock that another process holds


def write_atomic(path: Path, data: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Replace ``path`` by ``data``: a reader sees the old or the new content, never a part. Raises ``OpenDevError`` (infra).

    ``durable`` False leaves it to the system when the disk has it, for what can be made again. A file that is a mount point
    cannot be renamed over: its content is replaced in place (D07).
    """
    try:
        make_private(path.parent)
        handle, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise disk_error("write", path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temp).chmod(mode)
        _rename(Path(temp), path, data)
    except OSError as error:
        Path(temp).unlink(missing_ok=True)
        raise disk_error("write", path, error) from error


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for the user alone (D19). Raises ``OSError``."""
    missing = list(takewhile(lambda place: not place.exists(), (folder, *folder.parents)))
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)


def _rename(temp: Path, path: Path, data: bytes) -> None:
    try:
        temp.replace(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        path.write_bytes(data)
        temp.unlink()


class JsonlLog:
    """An append-only file of JSON lines, 0600, one ``write`` and one ``fsync`` per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: str, *, durable: bool = True) -> None:
        """Append one line. A torn tail left by a crash is closed with a line break first. Raises ``OpenDevError`` (infra).

        What a full disk took of the line is taken back, so that a failed write leaves the file as it was.
        """
        try:
            make_private(self.path.parent)
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                append_bytes(fd, (b"\n" if torn else b"") + line.encode() + b"\n", durable=durable)
            finally:
                os.close(fd)
        except OSError as error:
            raise disk_error("append to", self.path, error) from error

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
        try:
            make_private(path.parent)
        except OSError as error:
            raise disk_error("lock", path, error) from error
        from filelock import FileLock  # 10 ms: many commands only read

        self._lock = FileLock(str(path), mode=0o600)

    def __enter__(self) -> "Lock":
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=self._timeout_s, poll_interval=_POLL_S)
        except OSError as error:
            if not isinstance(error, Timeout):
                raise disk_error("lock", self._path, error) from error
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


def append_bytes(fd: int, data: bytes, *, durable: bool) -> None:
    """Append to a file that was opened to append; when that fails, the file ends where it did. Raises ``OSError``."""
    size = os.fstat(fd).st_size
    rest = data
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
        if durable:
            os.fsync(fd)
    except OSError:
        if os.fstat(fd).st_size == size + len(data) - len(rest):  # nobody else has appended meanwhile
            os.ftruncate(fd, size)
        raise


def disk_error(verb: str, path: Path, error: OSError) -> OpenDevError:
    """The sentence about a disk that refused to ``verb`` the ``path``."""
    return OpenDevError(
        ErrorKind.INFRA,
        f"Could not {verb} {path}: {error.strerror or error}.",
        "Free disk space or make the folder writable, or point OPENDEV_HOME to another folder.",
    )
