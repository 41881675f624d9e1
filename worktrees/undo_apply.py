"""Carries out a plan of undo: all of it or nothing, with a journal, so that a kill in the middle is finished by the next start."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.undo import Blob, Change, Step, step_of
from .git import show
from .undo_files import FOLDER, WorkFiles
from .undo_plan import Plan
from .undo_store import UndoStore

BYTES = 50_000_000  # of contents put into the store at once


@dataclass(frozen=True, slots=True)
class Journal:
    """A plan on its way, and the steps as they will be recorded once it is done."""

    token: str
    plan: Plan
    steps: tuple[Step, ...]

    def temp(self, number: int) -> str:
        """The name of a staged file."""
        return f".opendev-undo-{self.token}-{number}.tmp"


class Applier:
    """Blocking; raises ``OpenDevError``. ``record`` makes the new state of the steps durable. Call it with the store held."""

    def __init__(self, store: UndoStore, record: Callable[[tuple[Step, ...]], None]) -> None:
        self._store, self._files, self._record = store, WorkFiles(store.top), record
        self._folder = store.folder / "journal"

    def carry_out(self, plan: Plan, steps: Sequence[Step]) -> None:
        """Raises ``OpenDevError``: conflict when a file changed since the plan was made, infra when the disk refuses; then
        every file is as it was."""
        plan.check()
        journal = Journal(new_id(), plan, tuple(steps))
        self._save_present(plan)
        for step in steps:
            self._store.keep(step)
        path = self._write(journal)
        done: list[Change] = []
        try:
            self._stage(journal, plan.moves)
            self._check_unchanged(plan)
            self._commit(journal, done)
        except (OSError, OpenDevError) as error:
            how = "is finished at the next start"
            if self._take_back(journal, done):
                path.unlink(missing_ok=True)
                how = "was taken back"
            if isinstance(error, OpenDevError):
                raise
            raise OpenDevError(
                ErrorKind.INFRA,
                f"The undo was stopped and {how}: {error}.",
                "Free disk space or make the file writable.",
            ) from error
        self._record(journal.steps)
        path.unlink(missing_ok=True)

    def recover(self) -> tuple[str, ...]:
        """Finish what a killed process began: forward, but never over an edit made since. Paths that were left, for people."""
        left: list[str] = []
        for path in sorted(self._folder.glob("*.json")) if self._folder.is_dir() else ():
            try:
                journal = _read(path)
            except (OSError, ValueError, KeyError, TypeError):
                path.replace(path.with_suffix(".broken"))
                continue
            todo: list[Change] = []
            for move in journal.plan.moves:
                now = self._files.look(move.path)
                if _is(now, move.old) or (now is None and move.old == Blob(FOLDER, "")):
                    todo.append(move)
                elif not _is(now, move.new):
                    left.append(show(move.path))
            try:
                self._stage(journal, todo)
                self._commit(journal, [], todo)
            except OSError as error:
                raise OpenDevError(
                    ErrorKind.INFRA,
                    f"An undo that was cut off cannot be finished: {error}.",
                    "Make the file writable.",
                ) from error
            self._drop_temps(journal)
            self._record(journal.steps)
            path.unlink(missing_ok=True)
        return tuple(left)

    def _save_present(self, plan: Plan) -> None:
        """What stands there now, where the store does not have it: for a redo."""
        waiting: list[bytes] = []
        size = 0
        for move in plan.moves:
            found = self._files.read(move.path) if move.old is not None and move.old.oid else None
            if found is not None:
                waiting.append(found[1])
                size += len(found[1])
            if size > BYTES:
                self._store.put(waiting)
                waiting, size = [], 0
        self._store.put(waiting)

    def _stage(self, journal: Journal, moves: Sequence[Change]) -> None:
        """The contents to come, beside their targets where the folder can be there already."""
        numbers = {move.path: number for number, move in enumerate(journal.plan.moves)}
        coming = [move for move in moves if move.new is not None and not self._blocked(move.path)]
        self._stage_all(journal, coming, numbers)

    def _stage_all(self, journal: Journal, moves: Sequence[Change], numbers: dict[str, int]) -> None:
        wanted = [(move, move.new) for move in moves if move.new is not None]
        contents = self._store.contents([blob.oid for _, blob in wanted])
        for (move, blob), (_, content) in zip(wanted, contents, strict=True):
            self._files.stage(move.path, blob, content, journal.temp(numbers[move.path]))

    def _blocked(self, path: str) -> bool:
        """Whether a file stands where a folder must come: it is staged once that is gone."""
        parts = path.split("/")
        return any(
            (there := self._files.look("/".join(parts[:count]))) is not None and there.mode != FOLDER
            for count in range(1, len(parts))
        )

    def _check_unchanged(self, plan: Plan) -> None:
        changed = [show(m.path) for m in plan.moves if not _is(self._files.look(m.path), m.old)]
        if changed:
            raise OpenDevError(
                ErrorKind.CONFLICT,
                f"Nothing was undone: {', '.join(changed[:20])} changed at this very moment.",
                "Try again.",
            )

    def _commit(self, journal: Journal, done: list[Change], moves: Sequence[Change] | None = None) -> None:
        """Deletions first, so that a folder can give way to a file and the other way round."""
        plan = journal.plan
        todo = plan.moves if moves is None else moves
        for move in (move for move in todo if move.new is None):
            done.append(move)
            self._files.remove(move.path)
        for move in (move for move in todo if move.new is not None and move.old is not None):
            if move.old == Blob(FOLDER, ""):
                self._drop_tree(move.path)
        for folder in plan.prune:
            self._files.drop_folder(folder)
        self._put_all(journal, done, [move for move in todo if move.new is not None])
        for folder in plan.drop:
            self._files.drop_folder(folder)
        for folder in plan.make:
            with suppress(OSError):  # something of the user's stands there
                self._files.make_folder(folder)

    def _put_all(self, journal: Journal, done: list[Change], coming: Sequence[Change]) -> None:
        numbers = {move.path: number for number, move in enumerate(journal.plan.moves)}
        late: list[Change] = []
        for move in coming:
            done.append(move)
            try:
                self._files.put(move.path, journal.temp(numbers[move.path]))
            except FileNotFoundError:
                late.append(move)  # its folder could not be there before
        self._stage_all(journal, late, numbers)
        for move in late:
            self._files.put(move.path, journal.temp(numbers[move.path]))

    def _drop_tree(self, path: str) -> None:
        """A tree of folders that holds no file any more."""
        for place, _, _ in os.walk(self._store.top / path, topdown=False):
            Path(place).rmdir()

    def _take_back(self, journal: Journal, done: Sequence[Change]) -> bool:
        """Put everything back as it was; False when the disk refuses that too: then the journal stays for ``recover``."""
        back = [Change(move.path, move.new, move.old) for move in reversed(done)]
        numbers = {move.path: number for number, move in enumerate(journal.plan.moves)}
        try:
            self._drop_temps(journal)
            for move in back:
                if (move.new is None or not move.new.oid) and _is(self._files.look(move.path), move.old):
                    self._files.remove(move.path)
            again = [
                m
                for m in back
                if m.new is not None and m.new.oid and not _is(self._files.look(m.path), m.new)
            ]
            for move in again:
                if self._files.look(move.path) == Blob(FOLDER, ""):  # made for what was coming
                    self._drop_tree(move.path)
            self._stage_all(journal, again, numbers)
            for move in again:
                self._files.put(move.path, journal.temp(numbers[move.path]))
        except (OSError, OpenDevError):
            return False
        return True

    def _drop_temps(self, journal: Journal) -> None:
        for number, move in enumerate(journal.plan.moves):
            folder = move.path.rpartition("/")[0]
            self._files.remove(f"{folder}/{journal.temp(number)}" if folder else journal.temp(number))

    def _write(self, journal: Journal) -> Path:
        path = self._folder / f"{journal.token}.json"
        row = {
            "token": journal.token,
            "plan": asdict(journal.plan),
            "steps": [step.to_json() for step in journal.steps],
        }
        try:
            self._folder.mkdir(exist_ok=True, mode=0o700)
            temp = path.with_suffix(".tmp")
            with temp.open("w") as file:
                file.write(json.dumps(row))
                file.flush()
                os.fsync(file.fileno())
            temp.replace(path)
        except OSError as error:
            raise OpenDevError(
                ErrorKind.INFRA,
                f"The journal of undo cannot be written: {error}. Nothing was changed.",
                "Free disk space.",
            ) from error
        return path


def _read(path: Path) -> Journal:
    raw: dict[str, Any] = json.loads(path.read_text())
    plan = raw["plan"]
    names = {name: tuple(plan[name]) for name in ("make", "drop", "prune")}
    moves = tuple(Change(m["path"], _blob(m["old"]), _blob(m["new"])) for m in plan["moves"])
    return Journal(raw["token"], Plan(moves=moves, **names), tuple(map(step_of, raw["steps"])))


def _blob(row: dict[str, Any] | None) -> Blob | None:
    return None if row is None else Blob(**row)


def _is(now: Blob | None, expected: Blob | None) -> bool:
    return now is None if expected is None else expected.same(now)
