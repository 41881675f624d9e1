"""The merge train: one task at a time onto the integration branch, each composed state verified, the ref moved by compare-and-swap.

The branch is never checked out by anybody while it moves, nothing is left behind by a failure, and nothing is reported that was not
read back (SWM-06, 07, 09, 14; swarm.md 3.2).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..core.clock import Clock
from ..core.errors import ErrorKind, OpenDevError
from ..core.lease import Lease
from ..core.model import Frozen
from ..core.ticket import VerifyOutcome
from . import names
from .git import NO_OBJECT, show
from .keeper import Keeper
from .snapshot import write_commit
from .threads import uncut

Verify = Callable[[Path, str], Awaitable[VerifyOutcome]]
Outcome = Literal["landed", "conflict", "red", "moved", "empty", "infra"]


class Landing(Frozen):
    """How one landing ended. ``head`` is the branch as read at the end; ``files`` the paths that landed (or clash, for ``conflict``)."""

    outcome: Outcome
    head: str
    merged_as: str = ""
    files: tuple[str, ...] = ()
    detail: str = ""
    verify: VerifyOutcome | None = None


@dataclass(frozen=True, slots=True)
class Squash:
    """A task's work: everything between ``base`` and ``commit``, to become one commit with ``message``."""

    base: str
    commit: str
    message: str


class Train:
    """The train of one integration branch ``into`` (a short branch name)."""

    def __init__(self, keeper: Keeper, into: str, clock: Clock) -> None:
        self._keeper = keeper
        self._admin = keeper.repo.admin
        self._clock = clock
        self._one = asyncio.Lock()
        self._folders: dict[Path, Lease] = {}
        self.into = into
        self.ref = f"refs/heads/{into}"

    async def check(self) -> None:
        """Raise ``OpenDevError`` (usage) for a bad name or a branch that is checked out; touches nothing."""
        await asyncio.to_thread(self._check)

    async def prepare(self, base: str) -> str:
        """Make the branch at ``base`` if it is missing; its head. Raises ``OpenDevError`` for a bad name or a checked-out branch."""
        return await asyncio.to_thread(self._prepare, base)

    async def land(
        self, *, task: str, commit: str, base: str, message: str, verify: Verify, max_rounds: int = 3
    ) -> Landing:
        """Put ``base..commit`` on top of the branch as one commit, if the composed state is clean and ``verify`` passes.

        ``verify`` gets a clean checkout and its commit. When the branch moves meanwhile, everything is done again, ``max_rounds``
        times at most. A failure of git or of ``verify`` (``OpenDevError``) is the outcome ``infra``; cancellation is raised.
        """
        async with self._one:
            landing = None
            try:
                for _ in range(max_rounds):
                    work = Squash(base, commit, _message(message, task, commit))
                    landing = await self._round(work, verify)
                    if landing.outcome != "moved":
                        break
            except OpenDevError as error:
                return Landing(outcome="infra", head=await self._head(), detail=error.info.sentence())
            return landing or Landing(outcome="moved", head=await self._head(), detail="no round was allowed")

    async def checkout(self, commit: str) -> Path:
        """A clean, private, detached checkout of ``commit`` outside the user's tree; give it back with ``drop``."""
        lease = await self._keeper.lease(
            write=False, private=True, task="verify", run_id=self.into, base=commit
        )
        path = Path(lease.path)
        self._folders[path] = lease
        return path

    async def drop(self, path: Path) -> None:
        """Remove a folder that ``checkout`` made; a second time does nothing. Raises ``OpenDevError`` when it could not be removed."""
        lease = self._folders.pop(path, None)
        if lease is None:
            return
        answer = await self._keeper.release(lease)
        if not answer.startswith("removed"):
            raise OpenDevError(ErrorKind.INFRA, f"The verification checkout could not be removed: {answer}.")

    def _prepare(self, base: str) -> str:
        self._check()
        with self._keeper.lock:
            if not self._admin.resolve(self.ref):
                commit = self._keeper.commit_of(base)
                self._admin.run(
                    "update-ref", "-m", "opendev: start of integration", self.ref, commit, NO_OBJECT
                )
        return self._read_head()

    def _check(self) -> None:
        shape = self._admin.run("check-ref-format", "--branch", self.into, ok=(0, 1, 128))
        if shape.code or shape.text != self.into:
            raise OpenDevError(
                ErrorKind.USAGE,
                f"`{self.into}` is no legal branch name for `into`.",
                "Choose one like swarm/my-change.",
            )
        self._assert_free()

    def _assert_free(self) -> None:
        if (place := self._keeper.repo.checked_out().get(self.into)) is not None:
            raise OpenDevError(
                ErrorKind.USAGE,
                f"The branch {self.into} is checked out in {place}, so it cannot be the integration branch.",
                "Name another branch as `into`, or switch that checkout to another branch.",
            )

    def _read_head(self) -> str:
        if head := self._admin.resolve(self.ref):
            return head
        raise OpenDevError(
            ErrorKind.GIT,
            f"The integration branch {self.into} does not exist.",
            "It was deleted while the train ran.",
        )

    async def _head(self) -> str:
        return await asyncio.to_thread(self._admin.resolve, self.ref)

    async def _round(self, work: Squash, verify: Verify) -> Landing:
        head = await asyncio.to_thread(self._read_head)
        composed = await asyncio.to_thread(self._compose, work, head)
        if isinstance(composed, Landing):
            return composed
        new, files = composed
        path = await self.checkout(new)
        try:
            outcome = await verify(path, new)
        except BaseException:
            with contextlib.suppress(OpenDevError):  # what ended the verification is what the caller must see
                await self.drop(path)
            raise
        await self.drop(path)
        if not _green(outcome):
            kind: Outcome = "infra" if outcome.outcome == "infra" else "red"
            detail = f"`{outcome.command}` ended with {outcome.outcome} on the composed state"
            return Landing(outcome=kind, head=await self._head(), files=files, detail=detail, verify=outcome)
        return await uncut(lambda: self._swap(head, new, files, outcome))

    def _compose(self, work: Squash, head: str) -> tuple[str, tuple[str, ...]] | Landing:
        """The squashed commit on ``head`` and the paths it changes, or why there is none; objects only, no ref, no folder."""
        if not self._admin.test("merge-base", "--is-ancestor", work.base, work.commit):
            return Landing(
                outcome="conflict",
                head=head,
                detail=f"{work.commit} is not built on its base {work.base}",
            )
        signature = self._keeper.repo.identity(self._clock.now())
        # Both sides as children of the task's base: then that base is the merge base, whatever the branch's own history is.
        ours = write_commit(self._admin, f"{head}^{{tree}}", (work.base,), "ours", signature)
        theirs = write_commit(self._admin, f"{work.commit}^{{tree}}", (work.base,), "theirs", signature)
        reply = self._admin.run(
            "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, ok=(0, 1)
        )
        tree, *clashes = reply.fields
        if reply.code:
            paths = tuple(dict.fromkeys(map(show, clashes)))
            return Landing(
                outcome="conflict",
                head=head,
                files=paths,
                detail=f"conflict with {head[:12]} in {', '.join(paths)}",
            )
        if tree == self._admin.line("rev-parse", f"{head}^{{tree}}"):
            return Landing(outcome="empty", head=head, detail=f"it changes nothing on {head[:12]}")
        if strays := self._strays(work, head, tree):
            detail = (
                f"the composed state deletes or brings back files that the task did not: {', '.join(strays)}"
            )
            return Landing(outcome="conflict", head=head, files=strays, detail=detail)
        new = write_commit(self._admin, tree, (head,), work.message, signature)
        return new, tuple(show(path) for path in self._admin.diff_names(head, new, "--name-only"))

    def _strays(self, work: Squash, head: str, tree: str) -> tuple[str, ...]:
        """Deletions and additions of the composed state that are not in the task's own diff (gsd#2075, #1756)."""
        flags = ("--name-status", "--diff-filter=AD")
        own = self._admin.diff_names(work.base, work.commit, *flags)
        composed = self._admin.diff_names(head, tree, *flags)
        allowed = set(zip(own[::2], own[1::2], strict=True))
        return tuple(
            show(path)
            for kind, path in zip(composed[::2], composed[1::2], strict=True)
            if (kind, path) not in allowed
        )

    def _swap(self, old: str, new: str, files: tuple[str, ...], outcome: VerifyOutcome) -> Landing:
        """Move the branch from ``old`` to ``new`` if it is still at ``old`` and free, then read it back."""
        said = ""
        with self._keeper.lock:
            self._assert_free()
            if self._read_head() == old:
                said = self._admin.run(
                    "update-ref", "-m", "opendev: land", self.ref, new, old, ok=(0, 128)
                ).err
            now = self._read_head()
        if now == old:
            raise OpenDevError(ErrorKind.GIT, f"git did not move {self.into}: {said}")
        if now != new:
            detail = f"{self.into} moved from {old[:12]} to {now[:12]} during the verification"
            return Landing(outcome="moved", head=now, files=files, detail=detail, verify=outcome)
        return Landing(outcome="landed", head=now, merged_as=new, files=files, verify=outcome)


def _green(outcome: VerifyOutcome) -> bool:
    """Only a pass lands; with no command at all there is nothing to pass."""
    return outcome.outcome == "pass" or (outcome.outcome == "not_run" and not outcome.command)


def _message(message: str, task: str, commit: str) -> str:
    """The landed commit's message; its trailer proves later that ``commit`` was merged, so no other line may look like it."""
    mark = f"{names.SOURCE_TRAILER}:"
    kept = "\n".join(
        line for line in message.strip().splitlines() if not line.lower().lstrip().startswith(mark.lower())
    )
    return f"{kept.strip() or task}\n\nOpenDev-Task: {names.slug(task)}\n{mark} {commit}\n"
