"""The transcript of one agent: one JSON line a message, on disk before the event that draws it; beside it the session's record."""

import asyncio
import contextlib
import re
from pathlib import Path

from ..core.agent import AgentStatus, AgentTask
from ..core.chat import Message, ToolMessage, Usage
from ..core.clock import Clock, iso
from ..core.errors import OpenDevError
from ..core.model import Persisted
from ..store.atomic import JsonlLog
from ..store.sessions import SessionMeta, read_meta, title_of, write_meta


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
        self._early: dict[str, ToolMessage] = {}  # of the batch that runs: on disk before they are noted
        self._meta: SessionMeta | None = None
        self._changed = False

    def note(self, message: Message) -> None:
        """Take a message up for the next ``flush``, unless it is on disk already."""
        if isinstance(message, ToolMessage) and self._early.pop(message.call_id, None) == message:
            return
        self._waiting.append(TranscriptLine(at=iso(self._clock.now()), message=message).to_json())

    async def result(self, message: ToolMessage) -> None:
        """Write the result of one call of a batch that still runs; on load the results stand in call order (``repair``).

        What the disk refuses is written, or fails, with the next ``flush``.
        """
        line = TranscriptLine(at=iso(self._clock.now()), message=message).to_json()
        with contextlib.suppress(OpenDevError):
            await asyncio.to_thread(self._log.append, line)
            self._early[message.call_id] = message

    async def flush(self) -> None:
        """Write what was noted, in order; only the last line waits for the disk."""
        while self._waiting:
            line = self._waiting.pop(0)
            await asyncio.to_thread(self._log.append, line, durable=not self._waiting)
        if self._changed and self._meta is not None:
            self._changed = False
            await asyncio.to_thread(write_meta, self._record, self._meta)

    async def begin(self, task: AgentTask) -> None:
        """Open the session's record; a resumed agent goes on with its earlier one. ``flush`` writes it."""
        now = iso(self._clock.now())
        subagent = task.spec.name if task.parent else ""
        self._meta = await asyncio.to_thread(read_meta, self._record) or SessionMeta(
            id=task.id,
            created_at=now,
            updated_at=now,
            working_directory=task.root,
            parent_id=task.parent,
            metadata={"title": title_of(task.prompt, subagent), "subagent_type": subagent},
        )
        self._changed = True

    def link(self, call_id: str, child: str) -> None:
        """A spawn call of this agent started or resumed ``child``."""
        if self._meta is not None:
            self._meta, self._changed = self._meta.with_child(call_id, child), True

    async def ended(self, status: AgentStatus, usage: Usage, calls: int) -> None:
        """This run of the agent is over. Raises ``OpenDevError`` (infra)."""
        if self._meta is not None:
            self._meta = self._meta.ended(iso(self._clock.now()), status.value, usage, calls)
            self._changed = True
            await self.flush()

    @property
    def _record(self) -> Path:
        return self.path.with_suffix(".json")


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
