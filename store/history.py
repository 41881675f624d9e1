"""CommandHistory: every decision about a call, one JSON line each, for audit (APR-07)."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from ..core.model import Persisted
from .atomic import JsonlLog, Lock

NAME = "decisions.jsonl"
MAX_BYTES = 2_000_000  # of the file; the one before it is kept beside it


class Decision(Persisted):
    """One decision. ``action``: allow, ask, deny (by a layer or rule); once, session, always, deny, no_answer (of a person)."""

    at: str
    run: str
    agent: str
    tool: str
    command: str  # or the path, or the arguments; redacted
    action: str
    layer: str = ""
    rule: str = ""
    by: str = ""  # empty = a layer decided, else who answered
    reason: str = ""


class CommandHistory(JsonlLog):
    """The file of one project; at ``MAX_BYTES`` it becomes ``decisions.1.jsonl`` and a new one begins."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / NAME)
        self._before = folder / "decisions.1.jsonl"

    def append(self, line: str, *, durable: bool = True) -> None:
        """Append; raises ``OpenDevError`` (infra)."""
        with self._lock:
            if self.path.exists() and self.path.stat().st_size > MAX_BYTES:
                self.path.replace(self._before)
            super().append(line, durable=durable)

    @cached_property
    def _lock(self) -> Lock:
        return Lock(self.path.with_suffix(".lock"))

    def decisions(self) -> Iterator[Decision]:
        """What is kept, oldest first; lines that cannot be read are passed over."""
        for log in (JsonlLog(self._before), self):
            for line in log.read():
                try:
                    yield Decision.model_validate_json(line)
                except ValidationError:
                    continue
