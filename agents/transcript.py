"""The transcript of one agent: one JSON line a message, on disk before the event that draws it; beside it the session's record."""

import asyncio
import contextlib
import re
from pathlib import Path

from ..core.agent import AgentStatus, AgentTask
from ..core.chat import AssistantMessage, Message, SystemMessage, ToolMessage, Usage
from ..core.clock import Clock, iso
from ..core.errors import OpenDevError
from ..core.model import JsonObject
from ..core.session import SUMMARY, TITLE, SessionMeta, title_of
from ..policy.redact import redact, redact_line
from ..store.layout import Layout
from ..store.records import TranscriptLine
from ..store.session_files import SessionFiles
from ..store.sessions import SessionStore


class Transcript:
    """Collects messages as they are said; ``flush`` makes them durable. Raises ``OpenDevError`` (infra) when the disk fails.

    The record is written when it begins and ends, when its state or its sub-agents change, and every ``autosave`` turns (SES-04).
    """

    def __init__(self, files: SessionFiles, clock: Clock, autosave: int) -> None:
        self.path = files.transcript
        self._files = files
        self._clock = clock
        self._autosave = autosave
        self._waiting: list[str] = []
        self._early: dict[str, ToolMessage] = {}  # of the batch that runs: on disk before they are noted
        self._task: AgentTask | None = None
        self._links: dict[str, str] = {}  # spawn calls since the last write of the record
        self._values: JsonObject = {}  # of ``metadata``, as they are to be
        self._spent: tuple[Usage, int] | None = None  # of the run that has just ended
        self._messages = self._turns = 0
        self._changed = False

    def note(self, message: Message) -> None:
        """Take a message up for the next ``flush``, unless it is on disk already."""
        if isinstance(message, ToolMessage) and self._early.pop(message.call_id, None) == message:
            return
        self._count(message)
        self._waiting.append(self._line(message))

    async def result(self, message: ToolMessage) -> None:
        """Write the result of one call of a batch that still runs; on load the results stand in call order (``repair``).

        What the disk refuses is written, or fails, with the next ``flush``.
        """
        with contextlib.suppress(OpenDevError):
            await asyncio.to_thread(self._files.append, (self._line(message),))
            self._early[message.call_id] = message
            self._count(message)

    async def flush(self) -> None:
        """Write what was noted, in order; only the last line waits for the disk."""
        if self._waiting:
            lines, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._files.append, lines)
            except OpenDevError:
                self._waiting = [*lines, *self._waiting]
                raise
        if self._changed and self._task is not None:
            self._changed = False
            await asyncio.to_thread(self._files.update, self._merged)

    async def begin(self, task: AgentTask) -> SessionMeta | None:
        """Open the session's record, which ``flush`` writes; the earlier one of an agent that goes on, else None."""
        meta = await asyncio.to_thread(self._files.meta)
        self._task, self._changed = task, True
        if task.history:  # the record may be older than the transcript: a killed run did not write it
            self._messages = len(await asyncio.to_thread(self._files.history))
        return meta

    def keep(self, state: JsonObject) -> None:
        """The agent's state, for a later resume; what has changed is written with the next ``flush``."""
        new = {key: value for key, value in state.items() if self._values.get(key) != value}
        if new:
            self._values |= new
            self._changed = True

    def link(self, call_id: str, child: str) -> None:
        """A spawn call of this agent started or resumed ``child``."""
        self._links[call_id], self._changed = child, True

    async def ended(self, status: AgentStatus, usage: Usage, calls: int, said: str = "") -> None:
        """This run of the agent is over. Raises ``OpenDevError`` (infra)."""
        self._values["status"] = status.value
        if summary := title_of(redact(said), length=SUMMARY):
            self._values["summary"] = summary
        self._spent, self._changed = (usage, calls), True
        await self.flush()

    def _merged(self, before: SessionMeta | None) -> SessionMeta:
        """The record with what this agent knows; keys that others write stay as they are."""
        task = self._task
        assert task is not None
        now = iso(self._clock.now())
        meta = before or self._fresh(task, now)
        if not meta.title:
            meta = meta.with_metadata(title=_title(task))
        for call_id, child in self._links.items():
            meta = meta.with_child(call_id, child)
        if self._spent and not task.session:  # what a session cost is told by the ledger, sub-agents included
            meta = meta.ended(now, str(self._values["status"]), *self._spent)
        self._links, self._spent = {}, None
        meta = meta.with_metadata(**self._values, message_count=self._messages)
        return meta.model_copy(
            update={"updated_at": now, "working_directory": meta.working_directory or task.root}
        )

    def _fresh(self, task: AgentTask, now: str) -> SessionMeta:
        return SessionMeta(
            id=self._files.id,
            created_at=now,
            updated_at=now,
            working_directory=task.root,
            parent_id=task.parent,
            metadata={
                "title": _title(task),
                "subagent_type": task.spec.name if task.parent else "",
                "agent": task.spec.name,
            },
        )

    def _line(self, message: Message) -> str:
        return redact_line(TranscriptLine(at=iso(self._clock.now()), message=message).to_json())

    def _count(self, message: Message) -> None:
        self._messages += not isinstance(message, SystemMessage)
        if isinstance(message, AssistantMessage):
            self._turns += 1
            self._changed |= self._turns % self._autosave == 0


def files_of(home: Path, task: AgentTask) -> SessionFiles:
    """Where an agent's conversation is kept: a session's in its project's folder, any other in the run's (C-34)."""
    layout = Layout(home)
    if task.session:
        return SessionStore(layout, Path(task.root)).files(task.session)
    return SessionFiles(layout.transcripts(_file_name(task.run_id or "run")), _file_name(task.id))


def _title(task: AgentTask) -> str:
    prompt = redact(task.prompt)  # a key that is cut short would not be known as one later
    return title_of(prompt, task.spec.name) if task.parent else title_of(prompt, length=TITLE)


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
