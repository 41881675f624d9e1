"""Where a sub-agent works: in its parent's folder, in a private throw-away copy, or in a worktree and on a branch of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from ..core.agent import AgentReport, AgentSpec, AgentStatus, AgentTask
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event, LeaseEnded, LeaseGranted
from ..core.lease import Lease
from ..core.ports import LeaseDesk
from .fence import fence

Place = Literal["shared", "copy", "own"]
Work = Callable[[AgentTask], Awaitable[AgentReport]]
# Opening one takes twenty calls of git, and most prompts spawn no writer: a function opens it when the first agent needs it. Blocking.
Desk = LeaseDesk | Callable[[], LeaseDesk | None] | None
COPY_NOTE = (
    "Your working folder is a private copy of the project, made for you and thrown away when you end: run what you like, nothing you "
    "change is kept. The project's uncommitted changes, if it has any, are in the newest commit of the copy: `git show HEAD`. "
    "Files that git ignores are not in it."
)


class Isolation:
    """One run's leases. No two agents that may write ever share a folder (ACT-07); run_command counts as writing (C-36).

    ``hooks`` is the folder of the fence that keeps their git commands off the user's refs.
    """

    def __init__(self, desk: Desk, emit: Callable[[Event], None], hooks: Path) -> None:
        self._desk, self._emit, self._hooks = desk, emit, hooks
        self._opening = asyncio.Lock()
        self._leases: dict[str, Lease] = {}

    async def place(self, nature: AgentSpec, spec: AgentSpec) -> Place:
        """What an agent needs. ``nature`` is its type, ``spec`` what its parent's rights leave of it.

        A writer by its nature is isolated also when its parent may write less. Raises ``OpenDevError`` (git) where the project
        is no repository, at every approval level: a command approved by mistake or by policy would hit the user's own files.
        """
        runs = spec.tools is None or "run_command" in spec.tools
        if not nature.writes and not runs:
            return "shared"
        if await self._opened() is None:
            what = "write" if nature.writes else "run commands"
            raise OpenDevError(
                ErrorKind.GIT,
                f"{spec.name} may {what}, so it needs a folder of its own, but this project is no git repository with a commit.",
                "Run `git init` and commit, or use an agent that only reads.",
            )
        return "own" if nature.writes else "copy"

    async def run(self, task: AgentTask, place: Place, work: Work) -> AgentReport:
        """Run ``work`` on the task in its place. Raises ``OpenDevError`` when the folder cannot be made: then nothing runs."""
        desk = None if place == "shared" else await self._opened()
        if desk is None:
            return await work(task)
        lease = await desk.lease(
            write=place == "own",
            private=place == "copy",
            task=task.id,
            run_id=task.run_id,
            base=await self._base(desk, task, place),
        )
        self._leases[task.id] = lease
        self._emit(LeaseGranted(agent=task.id, lease=lease))
        try:
            fenced = await self._fence(desk, lease)
            task = task.model_copy(update={"root": self._root(task, lease), "env": {**task.env, **fenced}})
            return await (_in_copy if place == "copy" else _in_own)(desk, lease, task, work, self._emit)
        finally:
            self._leases.pop(task.id, None)

    async def _opened(self) -> LeaseDesk | None:
        async with self._opening:
            if callable(self._desk):
                self._desk = await asyncio.to_thread(self._desk)
        return self._desk

    async def _fence(self, desk: LeaseDesk, lease: Lease) -> dict[str, str]:
        try:
            return await asyncio.to_thread(fence, self._hooks, lease)
        except OpenDevError:
            await desk.release(lease)
            raise

    async def _base(self, desk: LeaseDesk, task: AgentTask, place: Place) -> str:
        """The parent's present state, uncommitted changes included: they are never silently dropped."""
        above = self._leases.get(task.parent)
        if above is not None and above.kind == "write" and place == "own":
            return await desk.commit(above, "Work in progress, before a sub-agent started")
        return await desk.snapshot(task.root)

    def _root(self, task: AgentTask, lease: Lease) -> str:
        """The folder inside the lease that corresponds to the parent's (which may be a part of the project)."""
        above = self._leases.get(task.parent)
        top = above.path if above is not None else lease.repo
        inside = Path(task.root).relative_to(top) if Path(task.root).is_relative_to(top) else Path()
        return str(Path(lease.path) / inside)


async def _in_copy(
    desk: LeaseDesk, lease: Lease, task: AgentTask, work: Work, emit: Callable[[Event], None]
) -> AgentReport:
    try:
        return await work(task.model_copy(update={"prompt": f"{task.prompt}\n\n{COPY_NOTE}"}))
    finally:
        try:
            detail = await desk.release(lease)
            emit(LeaseEnded(lease_id=lease.id, how="released", detail=detail))
        except OpenDevError as error:  # its report counts all the same
            emit(LeaseEnded(lease_id=lease.id, how="kept", detail=error.info.sentence()))


async def _in_own(
    desk: LeaseDesk, lease: Lease, task: AgentTask, work: Work, emit: Callable[[Event], None]
) -> AgentReport:
    """Commit what a finished writer left; a lost or cancelled one's work is saved under a rescue ref instead."""

    async def rescue(reason: str) -> str:
        saved = await desk.quarantine(lease, reason)
        emit(LeaseEnded(lease_id=lease.id, how="quarantined", detail=f"{reason}; saved as {saved}"))
        return saved

    try:
        report = await work(task)
        files = await desk.changed(lease)
        if report.status in (AgentStatus.INFRA, AgentStatus.CANCELLED, AgentStatus.TIMEOUT):
            saved = await rescue(f"the agent ended as {report.status}")
            return report.model_copy(update={"files_changed": files, "branch": saved if files else ""})
        commit = await desk.commit(lease, _title(report))
        detail = await desk.release(lease)
    except asyncio.CancelledError:
        await rescue("the agent was cancelled")
        raise
    emit(LeaseEnded(lease_id=lease.id, how="released", detail=detail))
    kept = commit != lease.base
    branch, commit = (lease.branch, commit) if kept else ("", "")
    return report.model_copy(update={"files_changed": files, "branch": branch, "commit": commit})


def _title(report: AgentReport) -> str:
    lines = report.text.strip().splitlines()
    return (lines[0] if lines else f"Work of {report.agent}")[:72]
