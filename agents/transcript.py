"""The transcript of one agent: one JSON line a message, on disk before the event that draws it."""

import asyncio
import re
from pathlib import Path

from ..core.chat import Message
from ..core.clock import Clock, iso
from ..core.model import Persisted
from ..store.atomic import JsonlLog


class TranscriptLine(Persisted):
    """One message and when it was said."""

    at: str
    message: Message


class Transcript:
    """Collects messages as they are said; ``flush`` makes them durable. Raises ``OpenDevError`` (infra) when the disk fails."""

    def __init__(self, home: Path, run_id: str, agent_id: str, clock: Clock) -> None:
        self.path = home / "transcripts" / _file_name(run_id or "run") / f"{_file_name(agent_id)}.jsonl"
        self._log = JsonlLog(self.path)
        self._clock = clock
        self._waiting: list[str] = []

    def note(self, message: Message) -> None:
        """Take a message up for the next ``flush``."""
        self._waiting.append(TranscriptLine(at=iso(self._clock.now()), message=message).to_json())

    async def flush(self) -> None:
        """Write what was noted, in order; only the last line waits for the disk."""
        while self._waiting:
            line = self._waiting.pop(0)
            await asyncio.to_thread(self._log.append, line, durable=not self._waiting)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
