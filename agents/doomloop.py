"""Notices when an agent repeats itself: first a warning, then a question to a person (LOOP-09, LOOP-10, C-05)."""

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..core.chat import ToolCall, canonical
from ..core.errors import ErrorInfo
from ..core.tool import Effect
from ..tools.registry import ToolRegistry

WINDOW = 20
REPEATS = 3


class Level(Enum):
    """How far the repetition has gone."""

    WARN = "warn"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Repetition:
    """A call of the present batch that was seen ``count`` times."""

    call: ToolCall
    count: int
    level: Level


class DoomLoop:
    """The fingerprints of the last 20 calls of one agent.

    Only calls of the present batch are judged (T-01). Pollers are exempt, and a reading or running call counts as repeated
    only while nothing was written in between, so that tests may be run again after each edit (T-02).
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._window: deque[str] = deque(maxlen=WINDOW)
        self._warned: set[str] = set()  # a subset of what is in the window
        self._edits = 0

    def check(self, calls: Sequence[ToolCall]) -> Repetition | None:
        """Record a batch; its worst repetition, if any."""
        prints = [(call, self._fingerprint(call)) for call in calls]
        known = [(call, mark) for call, mark in prints if mark]
        self._window.extend(mark for _, mark in known)
        self._warned.intersection_update(self._window)
        hits = [(self._window.count(mark), call, mark) for call, mark in known]
        hits = [hit for hit in hits if hit[0] >= REPEATS]
        if not hits:
            return None
        count, call, mark = next((hit for hit in hits if hit[2] in self._warned), hits[0])
        if mark in self._warned:
            return Repetition(call, count, Level.ASK)
        self._warned.update(mark for _, _, mark in hits)
        return Repetition(call, count, Level.WARN)

    def reset(self) -> None:
        """Start over: a person decided, or guidance was given."""
        self._window.clear()
        self._warned.clear()

    def note_edit(self) -> None:
        """Something was written: what is read or run from now on is not a repetition."""
        self._edits += 1

    def _fingerprint(self, call: ToolCall) -> str:
        tool = self._registry.resolve(call.name)
        known = not isinstance(tool, ErrorInfo)
        if known and (tool.poller or tool.category == "completion"):
            return ""  # claims of completion have caps of their own
        # A plan that is shown again after the Planner changed it is new, like a test that runs again after an edit.
        writes = known and Effect.WRITE in tool.effects and not tool.effects & {Effect.EXEC, Effect.ASK}
        state = 0 if writes else self._edits
        text = canonical([call.name, call.arguments, state])
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
