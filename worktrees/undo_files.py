"""The files of the work tree as undo reads and writes them: never through a link, each by temp file and rename."""

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.undo import Blob

FOLDER = "040000"
LINK = "120000"
_OPEN = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def oid_of(content: bytes) -> str:
    """The id that git gives a blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class WorkFiles:
    """Files below ``top``. Raises ``OSError``."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def look(self, path: str) -> Blob | None:
        """What stands at ``path``; None for nothing, also behind a link or a file; ``FOLDER`` for a folder, an odd thing as mode ``""``."""
        found = self.read(path)
        return found[0] if found else None

    def read(self, path: str) -> tuple[Blob, bytes] | None:
        """The same with its content."""
        name = os.path.basename(path)  # noqa: PTH119 - a name of git's
        try:
            with self._parent(path) as folder:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    return Blob(FOLDER, ""), b""
                if stat.S_ISLNK(status.st_mode):
                    target = os.fsencode(os.readlink(name, dir_fd=folder))
                    return Blob(LINK, oid_of(target)), target
                if not stat.S_ISREG(status.st_mode):
                    return Blob("", ""), b""
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
                    content = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        mode = "100755" if status.st_mode & 0o100 else "100644"
        return Blob(mode, oid_of(content), stat.S_IMODE(status.st_mode)), content

    def stage(self, path: str, blob: Blob, content: bytes, temp: str) -> None:
        """Write ``content`` beside ``path`` under the name ``temp``, folders included."""
        with self._parent(path, make=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(temp, dir_fd=folder)
            if blob.mode == LINK:
                os.symlink(os.fsdecode(content), temp, dir_fd=folder)
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temp, flags, 0o666, dir_fd=folder), "wb") as file:
                file.write(content)
                self._give_rights(path, folder, file.fileno(), blob)

    def put(self, path: str, temp: str) -> None:
        """Give the staged file its name."""
        name = os.path.basename(path)  # noqa: PTH119
        with self._parent(path) as folder:
            os.rename(temp, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, path: str) -> None:
        """Delete a file or a link; nothing happens when there is none."""
        with suppress(FileNotFoundError, NotADirectoryError), self._parent(path) as folder:
            os.unlink(os.path.basename(path), dir_fd=folder)  # noqa: PTH119

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it; one that is there is left."""
        with self._parent(f"{path}/x", make=True):
            pass

    def drop_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; whether it is gone."""
        try:
            with self._parent(path) as folder:
                os.rmdir(os.path.basename(path), dir_fd=folder)  # noqa: PTH119
        except OSError:
            return False
        return True

    def _give_rights(self, path: str, folder: int, handle: int, blob: Blob) -> None:
        """Those of the file in its place, but for the executable bits; of a new file what it had, else what the umask leaves."""
        mine = stat.S_IMODE(os.fstat(handle).st_mode)
        try:
            there = os.stat(os.path.basename(path), dir_fd=folder, follow_symlinks=False)  # noqa: PTH119
            perm = stat.S_IMODE(there.st_mode) if stat.S_ISREG(there.st_mode) else mine
        except FileNotFoundError:
            perm = blob.perm or mine
        if blob.mode == "100755":
            perm |= (perm & 0o444) >> 2
        else:
            perm &= ~0o111
        os.fchmod(handle, perm)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Generator[int]:
        """The folder of ``path``, held open; a link on the way is ``NotADirectoryError``."""
        handle = os.open(self.top, _OPEN)
        try:
            for part in path.split("/")[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                below = os.open(part, _OPEN, dir_fd=handle)
                os.close(handle)
                handle = below
            yield handle
        except OSError as error:
            if error.errno == 40:  # ELOOP: a link where a folder was expected
                raise NotADirectoryError(error.errno, os.strerror(20), path) from error
            raise
        finally:
            os.close(handle)
