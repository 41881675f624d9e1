"""Who holds what, on disk before it exists: lease records with the holder's pid and start time, and the repository's lock."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import ValidationError

from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.lease import Lease, Owner
from ..core.model import Persisted

LOCK_TIMEOUT_S = 120.0
KEEPER_MARK = (
    "OPENDEV_KEEPER"  # in the environment of every git process: whose it is, also after that one's death
)


class LeaseRecord(Persisted):
    """A lease with its life: ``making`` before the folder is whole, ``held``, or ``kept`` when it was not proven safe to remove."""

    lease: Lease
    shared: bool = False
    state: Literal["making", "held", "kept"] = "held"
    note: str = ""


def started(pid: int) -> int | None:
    """Start time of process ``pid`` in clock ticks since boot; None when it is gone or a zombie; 0 where there is no ``/proc``."""
    if not Path("/proc/self/stat").exists():
        return 0 if _signalable(pid) else None
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command may hold spaces and parentheses
    return None if fields[0] in "ZX" else int(fields[19])


def _signalable(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def this_process() -> Owner:
    """The identity of the calling process."""
    return Owner(pid=os.getpid(), started=started(os.getpid()) or 0)


def is_alive(owner: Owner) -> bool:
    """Whether that very process still runs; a later one with the same number does not count (CC 2.1.200)."""
    return started(owner.pid) == owner.started


def keeper_mark(owner: Owner) -> str:
    """The value of ``KEEPER_MARK`` for git processes that ``owner`` starts."""
    return f"{owner.pid}:{owner.started}"


def gits_of(owner: Owner) -> tuple[int, ...]:
    """Pids of git processes that ``owner`` started and that still run; they outlive a killed owner by a moment."""
    mark = f"{KEEPER_MARK}={keeper_mark(owner)}".encode()
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return tuple(found)


class LeaseBook:
    """One JSON file a lease, in ``folder``. A record that cannot be read is reported, never thrown away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, record: LeaseRecord) -> None:
        """Put the record on disk, whole or not at all. Raises ``OpenDevError`` (infra)."""
        path = self._path(record.lease.id)
        temp = path.with_suffix(f".{new_id()}.tmp")
        try:
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(record.to_json())
                file.flush()
                os.fsync(fd)
            temp.replace(path)
        except OSError as error:
            with suppress(OSError):
                temp.unlink()
            raise OpenDevError(
                ErrorKind.INFRA,
                f"The lease record {path} could not be written: {error.strerror}.",
                "Free disk space or make the folder writable.",
            ) from error

    def remove(self, lease_id: str) -> None:
        """Forget a lease."""
        self._path(lease_id).unlink(missing_ok=True)

    def get(self, lease_id: str) -> LeaseRecord | None:
        """The record of one lease, or None."""
        return self._read(self._path(lease_id))

    def records(self) -> tuple[LeaseRecord, ...]:
        """All readable records, by name."""
        found = (self._read(path) for path in sorted(self.folder.glob("*.json")))
        return tuple(record for record in found if record is not None)

    def broken(self) -> tuple[Path, ...]:
        """Record files that cannot be read."""
        return tuple(path for path in sorted(self.folder.glob("*.json")) if self._read(path) is None)

    def _read(self, path: Path) -> LeaseRecord | None:
        try:
            return LeaseRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None

    def _path(self, lease_id: str) -> Path:
        return self.folder / f"{lease_id}.json"


@contextmanager
def repository_lock(path: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Generator[None]:
    """Hold the lock of one repository against every thread and process; a time-out is a failure (openagents#5818)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(
        str(path), mode=0o600
    )  # a new object each time: one held object would let its own thread in twice
    try:
        lock.acquire(timeout=timeout_s, poll_interval=0.02)
    except Timeout as error:
        raise OpenDevError(
            ErrorKind.INFRA,
            f"Another process held the repository lock {path} for more than {timeout_s:g} s.",
            "Wait for it to end, or look at `opendev worktrees doctor`.",
        ) from error
    try:
        yield
    finally:
        lock.release()
