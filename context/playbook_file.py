"""The playbook of a project on disk, shared by processes, and the snapshot of one session (MEM-10, C-21). Blocking."""

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from ..core.errors import OpenDevError
from ..store.atomic import Lock, write_atomic
from .playbook import MAX_BYTES, Playbook

LOCK_S = 5.0


class PlaybookFile:
    """``path`` is the project's file, ``snapshot`` the copy that stays with the session."""

    def __init__(self, path: Path, snapshot: Path) -> None:
        self._path = path
        self._snapshot = snapshot

    def load(self) -> Playbook:
        """The playbook; an empty one when there is none that can be read."""
        return self._read() or Playbook()

    def change(self, step: Callable[[Playbook], Playbook]) -> Playbook:
        """Apply ``step`` to what is on disk now, under a lock, and write the result in one piece; the result.

        Whatever ``step`` raises leaves the file as it was. A file that cannot be read is kept beside the new one.
        Raises ``OpenDevError`` (infra): the lock is held too long, or the disk fails.
        """
        with Lock(self._path.with_suffix(".lock"), LOCK_S):
            found = self._read()
            changed = _within(step(found or Playbook()))
            if found is None and self._path.is_file():
                self._path.replace(self._path.with_suffix(".unreadable.json"))
            write_atomic(self._path, changed.to_json().encode())
        write_atomic(self._snapshot, changed.to_json().encode())
        return changed

    def keep_snapshot(self, playbook: Playbook) -> None:
        """Write what the session began with. A failure has no effect on the session (MEM-12)."""
        try:
            write_atomic(self._snapshot, playbook.to_json().encode())
        except OpenDevError:
            return

    def _read(self) -> Playbook | None:
        """None when there is no file, or one that is torn, foreign, or larger than the cap (C17)."""
        try:
            if self._path.stat().st_size > MAX_BYTES:
                return None
            return Playbook.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None


def _within(playbook: Playbook) -> Playbook:
    """``playbook`` with at most ``MAX_BYTES`` on disk: the oldest of the least effective bullets go first."""
    bullets = list(playbook.bullets)
    while bullets and len(playbook.to_json().encode()) > MAX_BYTES:
        bullets.remove(min(bullets, key=lambda bullet: (bullet.effectiveness, bullet.created)))
        playbook = playbook.model_copy(update={"bullets": tuple(bullets)})
    return playbook
