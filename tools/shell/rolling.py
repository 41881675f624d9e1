"""The output file of a background task: private, bounded by giving up its oldest part, read from its end (SHL-10, SHL-13)."""

import contextlib
import os
import re
import stat
import threading
from pathlib import Path

CAP = 5_000_000  # bytes of one file; beyond it the older half goes
TAIL = 262_144  # bytes that are read for the last lines
FILES = 100  # in one folder of output files; the oldest go first
_NOTE = b"[earlier output was given up, the file is at its size limit]\n"


class RollingFile:
    """A new file of mode 0600. Written by one thread, read by others; readable until ``release``."""

    def __init__(self, path: Path, cap: int = CAP) -> None:
        """Raises ``OSError`` when it exists or cannot be made."""
        self.path = path
        self._cap = cap
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append. Raises ``OSError`` when the disk is full."""
        with self._lock:
            if self._fd < 0:
                return
            self._put(data)
            if self._size > self._cap:
                kept = os.pread(self._fd, self._cap // 2, self._size - self._cap // 2)
                os.ftruncate(self._fd, 0)
                self._size = 0
                self._put(_NOTE + kept)

    def close(self) -> None:
        """Nothing more will be written; what is there can still be read."""

    def tail(self) -> bytes:
        """The last 256 KiB; nothing after ``release``."""
        with self._lock:
            return b"" if self._fd < 0 else os.pread(self._fd, TAIL, max(self._size - TAIL, 0))

    def release(self) -> None:
        """Give the file handle back; the file stays."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self._fd, view, self._size)
            self._size += done
            view = view[done:]


def task_folders(base: Path, root: Path) -> tuple[Path, Path]:
    """Where the output files of ``root`` lie: below ``base``, or below the folder that takes its place."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(root)).strip("-.")[-100:] or "root"
    other = base.with_name(f"{base.name}-{os.getuid()}")
    return base / name / "tasks", other / name / "tasks"


def task_folder(base: Path, root: Path) -> Path:
    """``<base>/<sanitized root>/tasks``, private to this user; with the user's number where others could write in ``base``.

    Raises ``OSError`` when it cannot be made, or is not ours.
    """
    own = os.getuid()
    for folder in task_folders(base, root):
        place = folder.parents[1]
        with contextlib.suppress(FileExistsError):  # a file, or a link that leads nowhere
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
        if status.st_uid == own and stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o022:
            break
    else:
        raise OSError(f"{base} is open to others, or not a folder of ours")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = sorted(folder.glob("*.output"), key=lambda file: file.lstat().st_mtime_ns)
    for old in files[: 1 - FILES]:
        old.unlink(missing_ok=True)
    return folder
