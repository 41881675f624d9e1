"""Which files of the project ``@prefix`` may mean: a listing that is made again when it is some seconds old (RET-07)."""

import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ...tools.walk import JUNK

SHOWN = 50
LISTED = 20_000  # files that are looked at
FRESH_S = 5.0


class ProjectFiles:
    """Of one project. Junk folders and git's own are left out; links are not followed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._listed: tuple[str, ...] = ()
        self._until = 0.0

    def matching(self, prefix: str) -> tuple[str, ...]:
        """Paths that begin with ``prefix``, then those that hold it anywhere, whatever the case. Blocking, some milliseconds."""
        if time.monotonic() >= self._until:
            self._listed = tuple(islice(self._walk(), LISTED))
            self._until = time.monotonic() + FRESH_S
        wanted = prefix.casefold()
        first = [path for path in self._listed if path.casefold().startswith(wanted)]
        rest = [path for path in self._listed if wanted in path.casefold() and path not in set(first)]
        return tuple([*first, *rest][:SHOWN])

    def _walk(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if name not in JUNK)
            for name in sorted(files):
                yield Path(folder, name).relative_to(self._root).as_posix()
