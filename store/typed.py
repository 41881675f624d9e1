"""What was typed in this project: one JSON string a line, mode 0600, the newest 1,000 kept. A history that cannot be written is no error."""

import contextlib
import json
import os
from pathlib import Path

from ..core.errors import OpenDevError
from .atomic import write_atomic

KEPT = 1_000
ENTRY_MAX = 10_000  # characters; a longer paste is not kept


class HistoryFile:
    """Both methods block for a moment. Several processes may append at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[str]:
        """The entries, oldest first; lines that cannot be read are left out. A file of twice the bound is cut."""
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return []
        entries = [entry for line in lines if (entry := _entry(line))][-KEPT:]
        if len(lines) > 2 * KEPT:
            self._rewrite(entries)
        return entries

    def add(self, text: str) -> None:
        """Append an entry."""
        if not text.strip() or len(text) > ENTRY_MAX:
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, _line(text))
            finally:
                os.close(file)

    def _rewrite(self, entries: list[str]) -> None:
        with contextlib.suppress(OSError, OpenDevError):
            write_atomic(self.path, b"".join(map(_line, entries)))


def _line(text: str) -> bytes:
    return (json.dumps(text) + "\n").encode("ascii")


def _entry(line: bytes) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""
