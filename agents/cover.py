"""Covers the foreground agent's calls for undo: a picture of the project before and after, and what file tools wrote (UND-05).

Nothing here stops the work: when a picture fails or takes too long, a notice says that undo does not cover the step.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from ..core.agent import AgentTask
from ..core.approval import ApprovalLevel
from ..core.chat import ToolCall
from ..core.clock import iso
from ..core.errors import ErrorInfo, OpenDevError
from ..core.events import Notice
from ..core.hooks import Hooks
from ..core.session import SessionMeta
from ..core.tool import Effect
from ..core.undo import Blob, Change, Span, Step
from ..policy.mode import INTERNAL
from ..policy.rules import judge_command
from ..store.layout import Layout
from ..store.oplog import Operation, OperationLog
from ..store.session_files import SessionFiles
from ..store.undo_steps import UndoSteps
from ..tools.batch_tool import unfolded
from ..tools.dispatch import Dispatcher
from ..tools.registry import ToolRegistry
from ..worktrees.threads import uncut
from ..worktrees.undo_store import Picture, UndoStore
from .settings import AgentPorts, AgentSettings, UndoSettings
from .undo import begun, finish, open_store

SLOW = 2  # pictures that were not ready in time, until no more are made in this run
SPANS = 500  # of one step; the oldest go
NAMED = 50  # things that are not covered
LOGGED = frozenset(
    {
        "write_file",
        "edit_file",
        "notebook_edit",
        "replace_symbol_body",
        "insert_before_symbol",
        "insert_after_symbol",
        "rename_symbol",
        "replace_text",
        "rewrite_code",
    }
)  # everything they do is in the operation log


class Cover:
    """One run of the foreground agent, which is one step. ``log`` is what its file tools write to."""

    def __init__(
        self,
        task: AgentTask,
        ports: AgentPorts,
        settings: UndoSettings,
        files: SessionFiles,
        registry: ToolRegistry,
        *,
        as_sent: bool = False,
    ) -> None:
        self._task, self._settings, self._files, self._registry = task, settings, files, registry
        self._as_sent = as_sent
        self._env, self._home, self._clock = ports.child_env, ports.home, ports.clock
        self._emit = ports.emit
        run = Layout(ports.home).run_path(task.session)
        self._steps = UndoSteps(run)
        self._root = Path(task.root).resolve()
        self.log = OperationLog(run / "operations.jsonl", self._root, self._clock, self._say)
        self._store: UndoStore | None = None
        self._step: Step | None = None
        self._last: Picture | None = None
        self._first: asyncio.Task[Picture | None] | None = None  # made behind the work
        self._waited: asyncio.Task[Picture | None] | None = None
        self._slow, self._said = 0, set[str]()
        self._off = False
        self._opening = threading.Lock()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Make the first picture beside the first thoughts of the model."""
        self._first = asyncio.ensure_future(asyncio.to_thread(self._picture))

    def watch(self, dispatcher: Dispatcher) -> None:
        """Let the file tools of a dispatcher write to the log."""
        make = dispatcher.make_context
        dispatcher.make_context = lambda call_id: replace(make(call_id), operations=self.log)

    async def close(self) -> None:
        """Wait for what still runs behind."""
        if self._store is not None:
            self._store.given_up = True
        if self._first is not None:
            await asyncio.wait({self._first})

    @asynccontextmanager
    async def around(self, calls: Sequence[ToolCall]) -> AsyncGenerator[None]:
        """Record what the calls of one answer change."""
        kind = self._kind(calls)
        if not kind:
            yield
            return
        before = await self._ready() if kind == "exec" else None
        opened = await asyncio.to_thread(self._open, before)
        try:
            yield
            if kind == "write":
                await self._first_is_there()
        finally:
            await uncut(lambda: self._close(kind, before, opened))

    def _kind(self, calls: Sequence[ToolCall]) -> str:
        """ "exec" when only pictures can tell what happens, "write" when the log can, else empty."""
        kinds: set[str] = set()
        for call in unfolded(calls):
            tool = self._registry.resolve(call.name)
            if (
                isinstance(tool, ErrorInfo)
                or tool.name in INTERNAL
                or not tool.effects & {Effect.WRITE, Effect.EXEC}
            ):
                continue
            if not self._only_reads(call):
                kinds.add("write" if tool.name in LOGGED else "exec")
        return "exec" if "exec" in kinds else "write" if kinds else ""

    def _only_reads(self, call: ToolCall) -> bool:
        """A command that is known to change nothing, and that nobody changes on the way."""
        command = call.arguments.get("command")
        if call.name != "run_command" or not isinstance(command, str) or not self._as_sent:
            return False
        return judge_command(command, ApprovalLevel.SEMI_AUTO, (self._root,)).decision == "allow"

    async def _ready(self) -> Picture | None:
        """A picture of this moment; None when there is none in time."""
        if self._off:
            return None
        if not await self._first_is_there():
            self._say(
                "The first snapshot of this project is not ready yet, so undo does not cover what this command changes."
            )
            return None
        work = asyncio.ensure_future(asyncio.to_thread(self._picture))
        done, _ = await asyncio.wait({work}, timeout=self._settings.wait_s)
        if done:
            return work.result()
        self._first, self._slow = work, self._slow + 1
        self._off = self._slow >= SLOW
        more = "; no more snapshots are made in this run" if self._off else ""
        self._say(
            f"A snapshot took more than {self._settings.wait_s:g} s, so undo does not cover what this command changes{more}."
        )
        return None

    async def _first_is_there(self) -> bool:
        """Whether no picture is in the making any more; one holds up the work only once."""
        first = self._first
        if first is None or first.done():
            return True
        if first is not self._waited:
            self._waited = first
            await asyncio.wait({first}, timeout=self._settings.wait_s)
        return first.done()

    def _opened(self) -> UndoStore:
        with self._opening:
            if self._store is None:
                self._store = open_store(self._root, self._home, self._env, self._settings)
                if late := finish(self._store, Layout(self._home)):
                    self._say(
                        f"An undo that was cut off is finished now; changed since and left alone: {', '.join(late[:NAMED])}"
                    )
            return self._store

    def _picture(self) -> Picture | None:
        try:
            first, self._last = self._last is None, self._opened().picture()
            if first:
                self._clean(self._opened())
        except (OpenDevError, OSError) as error:
            self._fail(error)
            return None
        return self._last

    def _clean(self, store: UndoStore) -> None:
        """Let go of steps whose session or record is gone, and pack (T-07, UND-09)."""
        gone = [step for step in store.kept() if not _alive(self._home, step)]
        store.release(gone)
        store.prune(auto=True)

    def _open(self, before: Picture | None) -> Step | None:
        """Note that something begins, so that a killed process leaves a trace of it."""
        base = before or self._last
        try:
            step = self._step or begun(self._clock, self._steps, self._task.prompt)
            span = Span(at=iso(self._clock.now()), before=base.tree if base else "", open=True)
            self._steps.save(replace(step, spans=(*step.spans, span)))
        except (OpenDevError, OSError) as error:
            self._fail(error)
            return None
        return step

    def _close(self, kind: str, before: Picture | None, step: Step | None) -> None:
        taken = self.log.take()
        if step is None:
            return
        try:
            span = self._span(kind, before, taken)
            if span is None:
                self._take_back(step)
                return
            self._save(step, span)
        except (OpenDevError, OSError) as error:
            self._fail(error)

    def _span(self, kind: str, before: Picture | None, taken: tuple[Operation, ...] | None) -> Span | None:
        """What happened; None when nothing did."""
        if taken is None:
            self._say(
                "The files written in one go are too large for the operation log, so undo does not cover them."
            )
        if kind == "write" and not taken:
            return None
        store = self._opened()
        busy = self._first is not None and not self._first.done()
        after = None if self._off or busy else self._picture()
        known = before or self._last
        span = Span(
            at=iso(self._clock.now()),
            after=after.tree if after else "",
            writes=self._writes(store, taken or ()),
            empty=known.empty if known else (),
        )
        if kind == "write":
            return span
        if before is None or after is None:
            return replace(span, uncovered=("what commands changed",))
        changes, left = store.changes(before, after)
        folders = _folders(before, after, store)
        if not changes and not folders and not span.writes:
            return None
        return replace(
            span,
            before=before.tree,
            left=left,
            folders=folders,
            perms={
                c.path: before.perms[c.path] for c in changes if c.old is not None and c.path in before.perms
            },
            uncovered=after.uncovered[:NAMED],
        )

    def _writes(self, store: UndoStore, operations: Sequence[Operation]) -> tuple[Change, ...]:
        """The net effect of file tools, path by path."""
        first: dict[str, Operation] = {}
        last: dict[str, Operation] = {}
        for operation in operations:
            first.setdefault(operation.path, operation)
            last[operation.path] = operation
        contents = [
            data for path in first for data in (first[path].before, last[path].after) if data is not None
        ]
        ids = iter(store.put(contents))

        def blob(path: str, data: bytes | None, perm: int) -> Blob | None:
            if data is None:
                return None
            there = self._root / path
            runs = bool((perm or (there.stat().st_mode if there.exists() else 0)) & 0o100)
            return Blob("100755" if runs else "100644", next(ids), perm)

        return tuple(
            Change(
                store.path(path),
                blob(path, first[path].before, first[path].perm),
                blob(path, last[path].after, 0),
            )
            for path in first
        )

    def _save(self, step: Step, span: Span) -> None:
        spans = (*step.spans, span)
        kept = replace(step, spans=spans[-SPANS:], dropped=step.dropped + max(0, len(spans) - SPANS))
        store = self._store
        assert store is not None
        store.keep(kept)
        self._steps.save(kept)
        self._step = kept
        store.release(old.id for old in self._steps.trim())
        if span.after:
            self._files.update(
                lambda meta: _known(meta, self._task).with_snapshot(
                    span.after, span.at, before=span.before, step=kept.id
                )
            )

    def _take_back(self, step: Step) -> None:
        if step.spans:
            self._steps.save(step)
        else:
            self._steps.forget(step)

    def _fail(self, error: OpenDevError | OSError) -> None:
        why = error.info.message if isinstance(error, OpenDevError) else str(error)
        self._say(f"Undo does not cover what commands change now: {why}")

    def _say(self, text: str) -> None:
        if text not in self._said and len(self._said) < NAMED:
            self._said.add(text)
            notice = Notice(
                run=self._task.run_id,
                agent=self._task.id,
                at=iso(self._clock.now()),
                level="warning",
                text=text,
            )
            # Pictures are made in threads; mail is only sent from the loop.
            self._loop.call_soon_threadsafe(self._emit, notice)


def cover_of(
    task: AgentTask, settings: AgentSettings, ports: AgentPorts, files: SessionFiles, dispatcher: Dispatcher
) -> Cover | None:
    """A cover that has begun; None for an agent that works outside of the user's files, or when undo is turned off."""
    if not settings.undo.enabled or not task.session or task.parent:
        return None
    hooked = settings.hooks.own != Hooks() or settings.hooks.projects != Hooks()
    as_sent = not hooked and task.approve is not ApprovalLevel.MANUAL
    cover = Cover(task, ports, settings.undo, files, dispatcher.registry, as_sent=as_sent)
    cover.watch(dispatcher)
    cover.begin()
    return cover


def _folders(before: Picture, after: Picture, store: UndoStore) -> dict[str, bool]:
    """Empty folders that came (True) or went (False)."""
    was, now = _with_parents(before.empty), _with_parents(after.empty)
    came = {path for path in now - was if (store.top / path).is_dir()}
    known = store.folders_of(before.tree, sorted(came)) if came else frozenset[str]()
    went = {path for path in was - now if not (store.top / path).is_dir()}
    return {**dict.fromkeys(sorted(came - known), True), **dict.fromkeys(sorted(went), False)}


def _with_parents(folders: Sequence[str]) -> set[str]:
    return {
        "/".join(parts[:count])
        for parts in (folder.split("/") for folder in folders)
        for count in range(1, len(parts) + 1)
    }


def _alive(home: Path, step: str) -> bool:
    session, _, number = step.rpartition(".")
    return (Layout(home).run_path(session) / "undo" / f"{number}.json").exists()


def _known(meta: SessionMeta | None, task: AgentTask) -> SessionMeta:
    return meta or SessionMeta(id=task.session, working_directory=task.root)
