"""Plan files: ``plans/<adjective>-<verb>-<noun>.md`` under the state root, and their index (TSK-06; format of upstream §6.6)."""

import json
import secrets
from pathlib import Path

from pydantic import ValidationError

from ..core.clock import Clock, iso
from ..core.model import Frozen
from .atomic import Lock, write_atomic

TRIES = 50
KEPT = 500  # entries of the index, newest kept; a plan file itself is never deleted
_ADJECTIVES = (
    *(
        "amber",
        "brave",
        "calm",
        "clear",
        "crisp",
        "deep",
        "eager",
        "early",
        "fair",
        "fine",
        "fresh",
        "gentle",
    ),
    *(
        "glad",
        "green",
        "keen",
        "kind",
        "light",
        "lively",
        "lucid",
        "mild",
        "neat",
        "nimble",
        "plain",
        "proud",
    ),
    *(
        "quick",
        "quiet",
        "ready",
        "sharp",
        "silver",
        "sound",
        "steady",
        "sunny",
        "swift",
        "tidy",
        "warm",
        "wise",
    ),
)
_VERBS = (
    *("building", "carving", "casting", "chasing", "climbing", "drawing", "drifting", "finding", "flying"),
    *("folding", "forging", "gliding", "growing", "holding", "joining", "leading", "lifting", "linking"),
    *("making", "mending", "moving", "pacing", "painting", "planting", "reading", "rising", "running"),
    *("sailing", "shaping", "singing", "solving", "sorting", "tracing", "turning", "walking", "weaving"),
)
_NOUNS = (
    *(
        "anchor",
        "arrow",
        "badger",
        "beacon",
        "birch",
        "bridge",
        "brook",
        "canyon",
        "cedar",
        "comet",
        "compass",
    ),
    *("falcon", "fern", "garden", "harbor", "heron", "hill", "island", "kite", "lantern", "maple", "meadow"),
    *(
        "mill",
        "oak",
        "orbit",
        "otter",
        "pebble",
        "pine",
        "river",
        "robin",
        "sparrow",
        "stone",
        "tower",
        "valley",
    ),
)


class _Entry(Frozen):
    """One plan. The first four names are upstream's; ``agentId`` finds the plan of an agent that goes on with it."""

    name: str
    sessionId: str = ""
    projectPath: str = ""
    created: str = ""
    agentId: str = ""


class _Index(Frozen):
    version: int = 1
    entries: tuple[_Entry, ...] = ()


class PlanShelf:
    """The plans of all projects. Blocking; call it in a thread. Raises ``OpenDevError`` (infra) when the disk fails."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self.folder = home / "plans"
        self._index = self.folder / "plans-index.json"
        self._clock = clock

    def reserve(self, *, agent: str, session: str, project: Path) -> Path:
        """The file that ``agent`` writes its plan to; the same one when it is asked again. The file itself is not made."""
        with Lock(self.folder / ".lock"):
            entries = self._read()
            known = next(
                (e for e in reversed(entries) if e.agentId == agent and e.sessionId == session), None
            )
            if known is not None:
                return self.folder / f"{known.name}.md"
            name = self._free({entry.name for entry in entries})
            new = _Entry(
                name=name,
                sessionId=session,
                projectPath=str(project),
                created=iso(self._clock.now()),
                agentId=agent,
            )
            self._write((*entries, new)[-KEPT:])
        return self.folder / f"{name}.md"

    def latest(self, *, session: str, project: Path) -> Path | None:
        """The newest plan that was written in this session of this project."""
        for entry in reversed(self._read()):
            path = self.folder / f"{entry.name}.md"
            if (entry.sessionId, entry.projectPath) == (session, str(project)) and path.is_file():
                return path
        return None

    def _free(self, taken: set[str]) -> str:
        name = ""
        for _ in range(TRIES):
            name = "-".join(secrets.choice(words) for words in (_ADJECTIVES, _VERBS, _NOUNS))
            if not self._used(name, taken):
                return name
        number = 2
        while self._used(f"{name}-{number}", taken):
            number += 1
        return f"{name}-{number}"

    def _used(self, name: str, taken: set[str]) -> bool:
        return name in taken or (self.folder / f"{name}.md").exists()

    def _read(self) -> tuple[_Entry, ...]:
        """Lenient: a damaged index is an empty one; the plan files stay."""
        try:
            return _Index.model_validate_json(self._index.read_bytes()).entries
        except (OSError, ValidationError):
            return ()

    def _write(self, entries: tuple[_Entry, ...]) -> None:
        data = _Index(entries=entries).model_dump(mode="json")
        write_atomic(self._index, (json.dumps(data, indent=1) + "\n").encode())
