"""The steps of a session that undo can reverse, one file a step, the newest 50 (K02)."""

import contextlib
from pathlib import Path

from ..core.undo import STEPS, Step, step_of
from .atomic import write_atomic


class UndoSteps:
    """``<n>.json`` in ``<run folder>/undo``. Blocking; writing raises ``OpenDevError`` (infra). Unreadable files are passed over."""

    def __init__(self, run: Path) -> None:
        self.session = run.name
        self.folder = run / "undo"

    def all(self) -> tuple[Step, ...]:
        """Oldest first."""
        found: list[Step] = []
        for path in self.folder.glob("*.json") if self.folder.is_dir() else ():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                found.append(step_of(path.read_text()))
        return tuple(sorted(found, key=lambda step: step.number))

    def fresh(self, at: str, prompt: str) -> Step:
        """A new step, not on disk yet."""
        numbers = [int(path.stem) for path in self.folder.glob("*.json") if path.stem.isdigit()]
        return Step(id=f"{self.session}.{max(numbers, default=0) + 1}", at=at, prompt=prompt)

    def save(self, *steps: Step) -> None:
        """Write steps."""
        for step in steps:
            write_atomic(self._path(step), (step.to_json() + "\n").encode())

    def trim(self) -> tuple[Step, ...]:
        """Forget all but the newest 50; the forgotten ones, whose objects may go."""
        dropped = self.all()[:-STEPS] if len(list(self.folder.glob("*.json"))) > STEPS else ()
        self.forget(*dropped)
        return dropped

    def forget(self, *steps: Step) -> None:
        """Remove steps."""
        for step in steps:
            self._path(step).unlink(missing_ok=True)

    def _path(self, step: Step) -> Path:
        return self.folder / f"{step.number}.json"
