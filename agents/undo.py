"""Undo and redo of a session's steps: plans them from what was recorded, shows, and carries them out (C-24, UND-07)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..core.clock import Clock, iso
from ..core.errors import ErrorKind, OpenDevError
from ..core.undo import Change, Span, Step
from ..store.layout import Layout
from ..store.undo_steps import UndoSteps
from ..tools.edit.diff import diff
from ..worktrees.git import show
from ..worktrees.undo_apply import Applier
from ..worktrees.undo_files import FOLDER, LINK, WorkFiles
from ..worktrees.undo_plan import Plan, Planner
from ..worktrees.undo_scan import Rules
from ..worktrees.undo_store import UndoStore
from .settings import UndoSettings

DIFF_FILES = 200
DIFF_CHARS = 100_000
NAMED = 5  # files that a description names


@dataclass(frozen=True, slots=True)
class Prepared:
    """What would be done: nothing has changed yet. ``refused`` and ``uncovered`` name files, for people."""

    kind: Literal["undo", "redo"]
    plan: Plan
    steps: tuple[Step, ...]  # as they will be recorded
    tree: str = ""
    uncovered: tuple[str, ...] = ()
    late: tuple[str, ...] = ()  # files a killed undo left alone

    @property
    def refused(self) -> tuple[str, ...]:
        """One line for each file that stands against it."""
        return tuple(f"{show(path)}: {why}" for path, why in self.plan.refused)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that would change."""
        return tuple(show(move.path) for move in self.plan.moves)

    def describe(self) -> str:
        """One sentence: the steps and the files, by name when they are few."""
        which = ", ".join(step.id for step in self.steps)
        count = len(self.plan.moves)
        named = ", ".join(self.files) if count <= NAMED else f"{count} files"
        verb = "Undo" if self.kind == "undo" else "Redo"
        return f"{verb} of step {which}: {named or 'no file differs'}"


class Undo:
    """The steps of one session. Blocking; raises ``OpenDevError``. To be used while no agent of the session runs."""

    def __init__(
        self,
        project: Path,
        layout: Layout,
        session: str,
        env: Mapping[str, str],
        settings: UndoSettings,
        clock: Clock,
    ) -> None:
        self._layout = layout
        self._steps = UndoSteps(layout.run_path(session))
        self.store = open_store(project, layout.home, env, settings)
        self._clock = clock

    def steps(self) -> tuple[Step, ...]:
        """Oldest first, undone ones too."""
        return self._steps.all()

    def prepare(self, kind: Literal["undo", "redo"] = "undo", to: str = "") -> Prepared:
        """Plan to reverse the last step, or back to before step ``to``; ``redo`` (or an undone ``to``) brings steps back.

        Raises:
            OpenDevError: usage when there is no such step or nothing to do.
        """
        late = finish(self.store, self._layout)
        self._close_open()
        named = self._find(to) if to else None
        if named is not None:
            kind = "redo" if named.undone else "undo"
        chosen = self._undone(named) if kind == "redo" else self._standing(named)
        found = self._redo(chosen) if kind == "redo" else self._undo(chosen, asked=bool(to))
        return replace(found, late=late)

    def carry_out(self, prepared: Prepared) -> str:
        """Do it, all or nothing; a sentence about what was done. Raises ``OpenDevError`` (conflict, infra): then nothing is changed."""
        prepared.plan.check()
        with self.store.locked():
            _applier(self.store, self._layout).carry_out(prepared.plan, prepared.steps)
        done = prepared.describe().replace("Undo of", "Undid", 1).replace("Redo of", "Redid", 1)
        if prepared.plan.merged:
            done += f". Your later edits were kept in {', '.join(map(show, prepared.plan.merged))}"
        if prepared.uncovered and prepared.kind == "undo":
            done += f". Not covered, so perhaps still changed: {', '.join(prepared.uncovered[:20])}"
        return done + "."

    def diff(self, prepared: Prepared) -> str:
        """The change to come as a unified diff, bounded."""
        files = WorkFiles(self.store.top)

        def present(move: Change) -> bytes:
            found = files.read(move.path)
            return found[1] if found else b""

        return self._bounded(prepared.plan.moves, present)

    def _bounded(self, moves: Sequence[Change], present: Callable[[Change], bytes]) -> str:
        parts: list[str] = []
        size = 0
        for move in moves:
            if len(parts) >= DIFF_FILES or size > DIFF_CHARS:
                parts.append(f"… and {len(moves) - len(parts)} more files\n")
                break
            parts.append(self._one(move, present))
            size += len(parts[-1])
        return "".join(parts)

    def changed(self, to: str = "") -> str:
        """What differs now from before step ``to`` (the last one), as a diff; the user's own edits are in it."""
        steps = [step for step in self.steps() if step.trees]
        named = self._find(to) if to else steps[-1] if steps else None
        if named is None or not named.trees:
            raise OpenDevError(
                ErrorKind.USAGE, f"Session {self._steps.session} has no snapshot to compare with."
            )
        self.store.make()
        first = next(span for span in named.spans if span.trees)
        found = self.store.compare(first.trees[0], self.store.picture().tree)
        moves = {move.path: move for move in found}
        if not first.before:  # the oldest tree is the one after it: what its file tools wrote over is known
            for write in reversed(first.writes):
                later = moves.get(write.path)
                moves[write.path] = replace(write, new=later.new if later else write.new)
        changed = [move for move in moves.values() if move.old != move.new]
        return self._bounded(changed, lambda move: self.store.get(move.old.oid) if move.old else b"")

    def _one(self, move: Change, present: Callable[[Change], bytes]) -> str:
        before = present(move) if move.old is not None else b""
        after = self.store.get(move.new.oid) if move.new is not None else b""
        name = show(move.path)
        if b"\0" in before + after:
            return f"Binary file {name}: {len(before):,} bytes become {len(after):,}\n"
        links = [blob for blob in (move.old, move.new) if blob is not None and blob.mode in (LINK, FOLDER)]
        head = f"{name}: {_kind(move)}\n" if links or _kind(move) != "changed" else ""
        text = diff(name, before.decode(errors="replace"), after.decode(errors="replace"))
        return head + (text if text.endswith("\n") or not text else f"{text}\n")

    def _find(self, to: str) -> Step:
        for step in self.steps():
            if to in (step.id, str(step.number)):
                return step
        raise OpenDevError(
            ErrorKind.USAGE,
            f"There is no step {to} in session {self._steps.session}.",
            "`opendev undo --list` shows them.",
        )

    def _standing(self, named: Step | None) -> tuple[Step, ...]:
        standing = [step for step in self.steps() if not step.undone]
        chosen = [step for step in standing if step.number >= named.number] if named else standing[-1:]
        if not chosen:
            raise OpenDevError(
                ErrorKind.USAGE,
                f"Session {self._steps.session} has no step that could be undone.",
                "`opendev undo --list` shows the steps of every session of this project.",
            )
        return tuple(reversed(chosen))

    def _undone(self, named: Step | None) -> tuple[Step, ...]:
        steps = self.steps()
        last = max((step.number for step in steps if not step.undone), default=0)
        undone = [step for step in steps if step.undone and (named is not None or step.number > last)]
        chosen = [step for step in undone if step.number <= named.number] if named else undone[:1]
        if not chosen:
            raise OpenDevError(ErrorKind.USAGE, "No step was undone, so there is nothing to redo.")
        return tuple(chosen)

    def _undo(self, chosen: Sequence[Step], *, asked: bool) -> Prepared:
        planner = Planner(self.store)
        uncovered: dict[str, None] = {}
        tree = ""
        for step in chosen:
            if step.cut and not asked:
                raise self._cut(step)
            for span in reversed(step.spans):
                planner.span(span, changes=self._changes(span))
                uncovered |= dict.fromkeys(span.uncovered)
                tree = span.before or tree
            planner.part(step.id)
        plan = planner.plan(tree)
        parts = dict(plan.parts)
        after = tuple(replace(step, undone=True, undo=parts[step.id]) for step in chosen)
        return Prepared("undo", plan, after, tree, tuple(uncovered))

    def _redo(self, chosen: Sequence[Step]) -> Prepared:
        planner = Planner(self.store)
        for step in chosen:
            for change in step.undo:
                planner.change(change)
            for span in step.spans:
                planner.folders_again(span)
            planner.part(step.id)
        plan = planner.plan()
        return Prepared("redo", plan, tuple(replace(step, undone=False, undo=()) for step in chosen))

    def _changes(self, span: Span) -> tuple[Change, ...]:
        perms, left = span.perms or {}, set(span.left)
        found = self.store.compare(span.before, span.after) if span.before and span.after else ()
        trees = [change for change in found if change.path not in left]
        known = {change.path for change in trees}
        writes = [change for change in span.writes if change.path not in known]
        return tuple(
            replace(change, old=replace(change.old, perm=perms[change.path]))
            if change.old is not None and change.path in perms
            else change
            for change in (*trees, *writes)
        )

    def _close_open(self) -> None:
        """A run that was killed left a step without an end: what differs now is all that can be known of it."""
        for step in self.steps():
            if not any(span.open for span in step.spans):
                continue
            spans: list[Span] = []
            for span in step.spans:
                if span.open and span.before:
                    now = self.store.picture()
                    span = replace(span, after=now.tree, uncovered=now.uncovered[:NAMED])
                spans.append(replace(span, open=False, cut=True) if span.open else span)
            step = replace(step, spans=tuple(spans))
            self.store.keep(step)
            self._steps.save(step)

    def _cut(self, step: Step) -> OpenDevError:
        files = sorted(
            {show(change.path) for span in step.spans if span.cut for change in self._changes(span)}
        )
        listed = ", ".join(files[:50]) + (f" and {len(files) - 50} more" if len(files) > 50 else "")
        return OpenDevError(
            ErrorKind.CONFLICT,
            f"Nothing was undone: the process of step {step.id} was killed before its end was recorded, so edits of yours cannot be told"
            f" from its own. Changed since it began: {listed or 'no file'}.",
            f"If all of that may go: opendev undo --to {step.id}.",
        )


def open_store(project: Path, home: Path, env: Mapping[str, str], settings: UndoSettings) -> UndoStore:
    """The shadow repository of a project. Raises ``OpenDevError`` where none may be made (the home folder)."""
    rules = Rules(
        settings.ignored,
        settings.max_files,
        settings.max_file_mb * 1_000_000,
        settings.max_new_mb * 1_000_000,
    )
    return UndoStore(project, home, env, rules)


def finish(store: UndoStore, layout: Layout) -> tuple[str, ...]:
    """Finish undos that killed processes began, of any session of the project; files changed since, which were left alone."""
    store.make()
    with store.locked():
        return _applier(store, layout).recover()


def _applier(store: UndoStore, layout: Layout) -> Applier:
    def record(steps: tuple[Step, ...]) -> None:
        for step in steps:
            UndoSteps(layout.run_path(step.id.rpartition(".")[0])).save(step)

    return Applier(store, record)


def begun(clock: Clock, steps: UndoSteps, prompt: str) -> Step:
    """A new step of a session."""
    return steps.fresh(iso(clock.now()), " ".join(prompt.split())[:80])


def _kind(move: Change) -> str:
    if move.old is None:
        return "comes back"
    if move.new is None:
        return "is removed"
    if move.old.mode != move.new.mode:
        return f"mode {move.old.mode} becomes {move.new.mode}"
    return "changed"
