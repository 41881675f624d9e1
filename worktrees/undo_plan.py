"""What reversing an agent's changes would write: by three-way merge with what stands there now, or a refusal that names the files (D13)."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..core.errors import ErrorKind, OpenDevError
from ..core.undo import Blob, Change, Span
from .git import show
from .undo_files import FOLDER, LINK, WorkFiles, oid_of
from .undo_store import UndoStore

MAX_BYTES = 50_000_000  # of a file that is read to see whether it is still as the agent left it


@dataclass(frozen=True, slots=True)
class Plan:
    """``moves`` go from what is there (``old``) to what will be (``new``). With ``refused`` (path -> why) nothing may be done.

    ``parts`` are the moves of each part by its name; ``make`` and ``drop`` are folders, ``prune`` those that may go with their last file.
    """

    moves: tuple[Change, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    merged: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[Change, ...]], ...] = ()
    make: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    prune: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise ``OpenDevError`` (conflict) with the list of files when it is refused."""
        if not self.refused:
            return
        listed = "; ".join(f"{show(path)}: {why}" for path, why in self.refused[:50])
        more = f"; and {len(self.refused) - 50} more" if len(self.refused) > 50 else ""
        raise OpenDevError(
            ErrorKind.CONFLICT,
            f"Nothing was undone, because later edits would be lost: {listed}{more}.",
            "Save or move these edits, or reverse the change by hand.",
        )


class Planner:
    """Reverses changes in mind, newest first. ``part`` closes what belongs together. Blocking; raises ``OpenDevError``."""

    def __init__(self, store: UndoStore) -> None:
        self._store, self._files = store, WorkFiles(store.top)
        self._disk: dict[str, Blob | None] = {}
        self._now: dict[str, Blob | None] = {}
        self._closed: dict[str, Blob | None] = {}
        self._made: dict[str, bytes] = {}  # contents of merges, by id
        self._refused: dict[str, str] = {}
        self._merged: set[str] = set()
        self._parts: list[tuple[str, tuple[Change, ...]]] = []
        self._folders: dict[str, bool] = {}
        self._kept: set[str] = set()

    def span(self, span: Span, *, changes: Iterable[Change]) -> None:
        """Reverse one span, whose changes are given."""
        for change in changes:
            self.change(change)
        for folder, came in (span.folders or {}).items():
            self._folders[folder] = not came
        self._kept.update(span.empty)

    def folders_again(self, span: Span) -> None:
        """Folders as the span left them."""
        self._folders |= span.folders or {}

    def change(self, change: Change) -> None:
        """Reverse one change."""
        path = change.path
        if path not in self._now:
            self._disk[path] = self._now[path] = self._look(path)
        if path not in self._refused:
            self._now[path] = self._reversed(path, self._now[path], change)

    def part(self, name: str) -> None:
        """Everything since the last call of this is the part ``name``."""
        was = {
            path: None if blob and blob.mode == FOLDER else blob for path, blob in self._disk.items()
        } | self._closed
        changes = tuple(Change(path, was[path], now) for path, now in self._now.items() if now != was[path])
        self._closed = dict(self._now)
        self._parts.append((name, changes))

    def plan(self, tree: str = "") -> Plan:
        """The whole. ``tree``: the folders in it are not removed when they become empty."""
        moves = tuple(Change(p, self._disk[p], now) for p, now in self._now.items() if now != self._disk[p])
        self._clear(moves)
        if self._made and not self._refused:
            self._store.put(list(self._made.values()))
        gone = {folder for move in moves if move.new is None for folder in _above(move.path)}
        known = self._store.folders_of(tree, sorted(gone)) if tree and gone else frozenset[str]()
        return Plan(
            moves,
            tuple(sorted(self._refused.items())),
            tuple(sorted(self._merged)),
            tuple(self._parts),
            tuple(sorted(f for f, wanted in self._folders.items() if wanted)),
            tuple(sorted((f for f, wanted in self._folders.items() if not wanted), reverse=True)),
            tuple(sorted(gone - known - self._kept, key=lambda f: -f.count("/"))),
        )

    def _look(self, path: str) -> Blob | None:
        try:
            place = self._store.top / path
            if not place.is_symlink() and place.is_file() and place.stat().st_size > MAX_BYTES:
                self._refused[path] = "it is too large to be compared"
                return None
            return self._files.look(path)
        except OSError as error:
            self._refused[path] = f"it cannot be read ({error.strerror})"
            return None

    def _reversed(self, path: str, now: Blob | None, change: Change) -> Blob | None:
        old, new = change.old, change.new
        if now is not None and now.mode == FOLDER:
            now = None if new is None else now  # `_clear` looks whether it will be gone
        if (now is None and new is None) or (now is not None and now.same(new)):
            return replace(old, perm=old.perm or (now.perm if now else 0)) if old else None
        if (now is None and old is None) or (now is not None and now.same(old)):
            return now  # reversed already
        if now is None:
            self._refused[path] = "it was deleted since"
        elif new is None:
            self._refused[path] = "it was created again since"
        elif old is None:
            self._refused[path] = "it was created by the step and changed since"
        else:
            return self._merge(path, now, old, new)
        return now

    def _merge(self, path: str, now: Blob, old: Blob, new: Blob) -> Blob:
        if now.oid == new.oid:
            oid = old.oid
        elif old.oid in (new.oid, now.oid):
            oid = now.oid
        elif LINK in (now.mode, old.mode, new.mode) or "" in (now.oid, old.oid, new.oid):
            oid = ""
        else:
            oid = self._merged_text(path, now, old, new)
        mode = old.mode if now.mode == new.mode else now.mode if new.mode == old.mode else ""
        if not oid or not mode:
            self._refused[path] = "it was changed since in the same place"
            return now
        return Blob(mode, oid, now.perm)

    def _merged_text(self, path: str, now: Blob, old: Blob, new: Blob) -> str:
        mine = self._made.get(now.oid)
        if mine is None:
            found = self._files.read(path)
            mine = found[1] if found is not None and found[0].same(now) else self._store.get(now.oid)
        base, theirs = (self._made.get(b.oid) or self._store.get(b.oid) for b in (new, old))
        merged = self._store.merge(mine, base, theirs)
        if merged is None:
            return ""
        oid = oid_of(merged)
        self._made[oid] = merged
        self._merged.add(path)
        return oid

    def _clear(self, moves: Sequence[Change]) -> None:
        """A folder that stands where a file comes back must hold nothing but what goes."""
        going = {move.path for move in moves if move.new is None}
        for move in moves:
            if move.new is None or move.old is None or move.old.mode != FOLDER:
                continue
            top = self._store.top
            for place, folders, files in os.walk(top / move.path):
                links = [name for name in folders if (top / place / name).is_symlink()]
                for name in (*files, *links):
                    path = os.path.relpath(os.path.join(place, name), top)  # noqa: PTH118 - names of any bytes
                    if path not in going:
                        self._refused[move.path] = f"a folder with {show(path)} stands in its place"
                        return


def _above(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
