"""A folder held open while something in it is read or written, so that no link can be slid in on the way meanwhile (T02)."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

# O_PATH: a folder that may only be passed through can be held, too.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def held(folder: Path) -> Generator[int]:
    """A descriptor for ``dir_fd``. ``folder`` is a real path: a part of it that has become a link since is an ``OSError``."""
    handle = os.open("/", _FOLDER)
    try:
        for part in folder.parts[1:]:
            below = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)
