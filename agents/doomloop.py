"""Notices when an agent repeats itself: first a warning, then a question to a person (LOOP-09, LOOP-10, C-05)."""

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..core.chat import ToolCall, ToolMessage, canonical
from ..core.errors import ErrorInfo
from ..core.tool import Effect, Tool
from ..policy.mode import INTERNAL
from ..tools.registry import ToolRegistry

WINDOW = 20
REPEATS = 3
_TIMES = re.compile(r"\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds)\b")  # no run takes as long as the one before


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
    only while nothing was written in between, so that tests may be run again after each edit; a command whose output changed
    since it ran last is no repetition either, and a command may have changed what is read after it (T-02).
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._window: deque[str] = deque(maxlen=WINDOW)
        self._warned: set[str] = set()  # a subset of what is in the window
        self._edits = 0
        self._runs = 0
        self._outputs: OrderedDict[str, tuple[str, int]] = (
            OrderedDict()
        )  # of commands: latest output, how often it changed

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

    def note(self, call: ToolCall, result: ToolMessage) -> None:
        """Take in a result: after something was written, what is read or run from then on is not a repetition."""
        tool = self._registry.resolve(call.name)
        if isinstance(tool, ErrorInfo) or tool.name in INTERNAL:
            return
        if Effect.EXEC in tool.effects:
            self._runs += 1
            self._note_output(call, result.content)
        elif not result.is_error and tool.effects & {Effect.WRITE, Effect.SPAWN}:
            self._edits += 1  # a sub-agent may have changed what is read or shown next

    def _note_output(self, call: ToolCall, text: str) -> None:
        key = canonical([call.name, call.arguments])
        seen = hashlib.md5(_TIMES.sub("", text).encode(), usedforsecurity=False).hexdigest()
        before, changes = self._outputs.pop(key, (seen, 0))
        self._outputs[key] = (seen, changes + (seen != before))
        while len(self._outputs) > 2 * WINDOW:
            self._outputs.popitem(last=False)

    def _fingerprint(self, call: ToolCall) -> str:
        tool = self._registry.resolve(call.name)
        known = not isinstance(tool, ErrorInfo)
        if known and (tool.poller or tool.category == "completion"):
            return ""  # claims of completion have caps of their own
        text = canonical([call.name, call.arguments, self._state(call, tool)])
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    def _state(self, call: ToolCall, tool: Tool[Any] | ErrorInfo) -> tuple[int, int]:
        """What may have changed since an equal call: nothing for a write, files and own output for a command, files for a reader."""
        if isinstance(tool, ErrorInfo):
            return 0, 0
        if Effect.EXEC in tool.effects:
            _, changes = self._outputs.get(canonical([call.name, call.arguments]), ("", 0))
            return self._edits, changes
        # A plan that is shown again after the Planner changed it is new, like a test that runs again after an edit.
        if Effect.WRITE in tool.effects and Effect.ASK not in tool.effects:
            return 0, 0
        return self._edits, self._runs
