"""The operation log of a session: what file tools created, modified and deleted, with the content before (UND-01, UND-02)."""

import base64
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

from ..core.clock import Clock, iso
from ..core.errors import OpenDevError
from ..core.ids import new_id
from .atomic import JsonlLog

KEPT = 50  # K02: in memory
FILE_BYTES = 20_000_000  # of operations.jsonl; the part before it is kept as operations.1.jsonl
CONTENT_BYTES = 1_000_000  # of one content in the file
ANSWER_BYTES = 100_000_000  # of contents held until the calls of one answer are over


@dataclass(frozen=True, slots=True)
class Operation:
    """One write of a file tool; ``before`` and ``after`` are whole contents, None = no file."""

    id: str
    at: str
    type: Literal["create", "modify", "delete"]
    path: str  # relative to the project
    before: bytes | None
    after: bytes | None
    perm: int = 0  # of the file before


class OperationLog:
    """``core.ports.Operations``: the newest 50 in memory, all of them, best effort, in ``path``. Safe from any thread."""

    def __init__(self, path: Path, root: Path, clock: Clock, on_failure: Callable[[str], None]) -> None:
        self._log, self._root, self._clock = JsonlLog(path), root, clock
        self._on_failure = on_failure
        self._failed = False
        self._lock = Lock()
        self.latest: deque[Operation] = deque(maxlen=KEPT)
        self._answer: list[Operation] = []
        self._held = 0

    def note(self, path: Path, before: bytes | None, after: bytes | None, perm: int = 0) -> None:
        """A file tool replaces ``before`` by ``after``. Never raises: a disk that refuses is told once and stops no work."""
        if not path.is_relative_to(self._root):
            return  # the agent's own scratch folder
        kind = "create" if before is None else "delete" if after is None else "modify"
        name = path.relative_to(self._root).as_posix()
        operation = Operation(new_id(), iso(self._clock.now()), kind, name, before, after, perm)
        with self._lock:
            self.latest.append(operation)
            self._held += len(before or b"") + len(after or b"")
            if self._held <= ANSWER_BYTES:
                self._answer.append(operation)
            self._write(operation)

    def take(self) -> tuple[Operation, ...] | None:
        """The operations since the last call of this; None when they were too large to hold."""
        with self._lock:
            taken = None if self._held > ANSWER_BYTES else tuple(self._answer)
            self._answer, self._held = [], 0
        return taken

    def _write(self, operation: Operation) -> None:
        try:
            if self._log.path.exists() and self._log.path.stat().st_size > FILE_BYTES:
                self._log.path.replace(self._log.path.with_name("operations.1.jsonl"))
            self._log.append(_line(operation), durable=False)
        except (OSError, OpenDevError) as error:
            if not self._failed:
                self._on_failure(f"The operation log {self._log.path} cannot be written: {error}")
            self._failed = True


def _line(operation: Operation) -> str:
    before, row = operation.before, {"id": operation.id, "at": operation.at, "type": operation.type}
    row["path"] = operation.path
    if before is not None and len(before) <= CONTENT_BYTES:
        try:
            row["before"] = before.decode()
        except UnicodeDecodeError:
            row["before_base64"] = base64.b64encode(before).decode()
    return json.dumps({**row, "bytes_before": None if before is None else len(before)})
