"""What undo knows of an agent's work: what stood at a path, what one answer's calls changed, and the steps made of them (UND, SES-11)."""

import json
from dataclasses import asdict, dataclass
from typing import Any

STEPS = 50  # kept of a session (K02)


@dataclass(frozen=True, slots=True)
class Blob:
    """What stands at a path: git's mode, the object's id, and the file's permissions where they are not the usual ones."""

    mode: str
    oid: str
    perm: int = 0

    def same(self, other: "Blob | None") -> bool:
        """Same kind and content."""
        return other is not None and (self.mode, self.oid) == (other.mode, other.oid)


@dataclass(frozen=True, slots=True)
class Change:
    """One path, relative to the work tree's top, bytes that are no UTF-8 as surrogates; None = nothing stands there."""

    path: str
    old: Blob | None
    new: Blob | None


@dataclass(frozen=True, slots=True)
class Span:
    """What the calls of one answer did: ``before`` and ``after`` are trees when commands ran, ``writes`` what file tools wrote.

    ``left`` stood there before but was not covered then (ignored, huge, nested): it was not created. ``empty`` are the empty
    folders before, ``folders`` those that came (True) or went (False). ``cut``: the process died before the end was known.
    """

    at: str
    before: str = ""
    after: str = ""
    writes: tuple[Change, ...] = ()
    left: tuple[str, ...] = ()
    perms: dict[str, int] | None = None
    empty: tuple[str, ...] = ()
    folders: dict[str, bool] | None = None
    uncovered: tuple[str, ...] = ()
    open: bool = False
    cut: bool = False

    @property
    def trees(self) -> tuple[str, ...]:
        """The trees that must stay in the store for it."""
        return tuple(oid for oid in (self.before, self.after) if oid)


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the conversation that changed something: ``<session>.<number>``.

    ``undo`` is what reversing it changed: reversing that brings the step back. Empty = the step stands.
    """

    id: str
    at: str
    prompt: str
    spans: tuple[Span, ...] = ()
    undone: bool = False
    undo: tuple[Change, ...] = ()
    dropped: int = 0  # oldest spans that no longer fit

    @property
    def number(self) -> int:
        """Its place in the session."""
        return int(self.id.rpartition(".")[2])

    @property
    def trees(self) -> tuple[str, ...]:
        """The trees that must stay in the store for it."""
        return tuple(dict.fromkeys(oid for span in self.spans for oid in span.trees))

    @property
    def blobs(self) -> tuple[str, ...]:
        """The contents that must stay in the store for it, besides those in its trees."""
        changes = (*self.undo, *(change for span in self.spans for change in span.writes))
        found = (blob.oid for change in changes for blob in (change.old, change.new) if blob and blob.oid)
        return tuple(dict.fromkeys(found))

    @property
    def cut(self) -> bool:
        """The end of it is not known: a process died."""
        return any(span.cut or span.open for span in self.spans)

    def to_json(self) -> str:
        """One line; any file name can be written."""
        return json.dumps(asdict(self), separators=(",", ":"))


def step_of(text: str) -> Step:
    """The step in a line that ``to_json`` wrote. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for any other."""
    raw: dict[str, Any] = json.loads(text)
    raw["spans"] = tuple(_span(row) for row in raw["spans"])
    raw["undo"] = _changes(raw["undo"])
    return Step(**raw)


def _span(row: dict[str, Any]) -> Span:
    for name in ("left", "empty", "uncovered"):
        row[name] = tuple(row[name])
    row["writes"] = _changes(row["writes"])
    return Span(**row)


def _changes(rows: list[dict[str, Any]]) -> tuple[Change, ...]:
    return tuple(Change(row["path"], _blob(row["old"]), _blob(row["new"])) for row in rows)


def _blob(row: dict[str, Any] | None) -> Blob | None:
    return None if row is None else Blob(**row)
