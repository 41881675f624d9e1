"""The keeper hands out working folders and takes them back; it alone administers the repository (SWM-03, ACT-07, T-16).

The user's files, index, HEAD and configuration are never written. A folder is removed only when its work is proven to be elsewhere.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..core.clock import Clock
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.lease import Lease
from ..core.ports import LeaseDesk
from . import names
from .branches import delete_proven
from .checkout import Checkout, reachable
from .git import NO_OBJECT, Git, show
from .journal import LOCK_TIMEOUT_S, LeaseBook, LeaseRecord, repository_lock, this_process
from .repository import Repository, open_repository
from .snapshot import dirty_paths, snapshot, write_commit
from .threads import uncut

MIN_FREE_BYTES = 200_000_000
_MAX_ATTEMPTS = 1000


class Keeper(LeaseDesk):
    """The lease desk of one repository. ``base`` (default HEAD) is resolved once; every lease without its own base starts there.

    State is under ``home``: ``worktrees/<repo>/<lease>`` (folders), ``leases/<repo>/<lease>.json``, ``locks/<repo>.lock``.
    Raises ``OpenDevError`` when the repository cannot be worked on; ``warnings`` says what a worktree will lack.
    """

    def __init__(
        self, *, repo: Path, home: Path, clock: Clock, base: str = "", env: Mapping[str, str] | None = None
    ) -> None:
        self.repo: Repository = open_repository(repo, env or {})
        self.clock = clock
        home = home.resolve()
        _assert_outside(self.repo, home)
        self.root = home / "worktrees" / self.repo.key
        self.scratch = home / "scratch" / self.repo.key
        self.book = LeaseBook(home / "leases" / self.repo.key)
        self.lock_path = home / "locks" / f"{self.repo.key}.lock"
        self.lock_timeout_s = LOCK_TIMEOUT_S
        self.base = self.commit_of(base or "HEAD", ErrorKind.USAGE)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know before work starts."""
        return self.repo.warnings

    @property
    def lock(self) -> contextlib.AbstractContextManager[None]:
        """The lock of this repository, for one ``with``."""
        return repository_lock(self.lock_path, self.lock_timeout_s)

    def commit_of(self, name: str, kind: ErrorKind = ErrorKind.GIT) -> str:
        """The commit that ``name`` names in the user's checkout. Raises ``OpenDevError`` of ``kind``."""
        if commit := self.repo.user_tree().resolve(name):
            return commit
        raise OpenDevError(
            kind,
            f"`{name}` names no commit in {self.repo.toplevel}.",
            "Name a branch, tag or commit.",
        )

    def checkout_at(self, path: Path) -> Checkout:
        """The folder ``path`` of this keeper. Raises ``OpenDevError`` for any other folder."""
        if path.parent != self.root:
            raise OpenDevError(
                ErrorKind.GIT, f"The folder {path} is not one of the worktrees in {self.root}."
            )
        return Checkout(self.repo, path, self.scratch)

    async def is_dirty(self) -> tuple[str, ...]:
        """The uncommitted paths of the user's checkout, empty when it is clean."""
        return await asyncio.to_thread(dirty_paths, self.repo)

    async def snapshot(self, folder: str = "") -> str:
        """See the port; see ``snapshot.snapshot``."""
        return await uncut(
            lambda: snapshot(self.repo, self._git_of(Path(folder)), self.scratch, self.clock.now())
        )

    async def assert_toplevel(self, lease: Lease) -> None:
        """Raise ``OpenDevError`` unless the lease's folder is still its own worktree: asked before every write."""
        await asyncio.to_thread(self.checkout_at(Path(lease.path)).assert_pointer)

    async def lease(
        self, *, write: bool, task: str, run_id: str, base: str = "", private: bool = False
    ) -> Lease:
        """See the port. ``private``: a read lease with a disposable folder of its own, for agents with run_command (C-36)."""
        if write or private:
            return await uncut(lambda: self._make_own(write, task, run_id, base), self.undo)
        return await uncut(lambda: self._make_shared(task, run_id, base), self.undo)

    async def commit(self, lease: Lease, message: str) -> str:
        """See the port. Refuses (git) when HEAD left the lease's branch or the ``.git`` file was tampered with."""
        return await uncut(lambda: self._commit(lease, message))

    async def changed(self, lease: Lease) -> tuple[str, ...]:
        """See the port. Paths in order; bytes that are no UTF-8 as ``\\xNN``."""
        return await uncut(lambda: self._changed(lease))

    async def release(self, lease: Lease) -> str:
        """See the port. Without proof the folder stays, and the answer starts with "kept at" or "inspection failed, kept at"."""
        return await uncut(lambda: self.give_back(lease))

    async def quarantine(self, lease: Lease, reason: str) -> str:
        """See the port. The branch stays too."""
        return await uncut(lambda: self.rescue(lease, reason))

    async def drop_branch(self, branch: str, into: str = "") -> str:
        """Delete ``branch`` (short name) if its commits are proven to be elsewhere, or squashed on ``into``; says what happened."""
        return await uncut(lambda: self.delete_proven(branch, into))

    def _git_of(self, folder: Path) -> Git:
        if folder.is_relative_to(self.root) and folder != self.root:
            checkout = self.checkout_at(self.root / folder.relative_to(self.root).parts[0])
            checkout.assert_pointer()
            return checkout.git()
        if folder == Path() or folder.is_relative_to(self.repo.toplevel):
            return self.repo.user_tree()
        raise OpenDevError(
            ErrorKind.GIT,
            f"The folder {folder} is no part of {self.repo.toplevel} and was not leased from it.",
        )

    def _record(
        self, *, write: bool, task: str, run_id: str, commit: str, shared: Path | None = None
    ) -> LeaseRecord:
        lease_id = f"{names.slug(task)[:24].strip('-.')}-{new_id(8)}"
        lease = Lease(
            id=lease_id,
            kind="write" if write else "read",
            repo=str(self.repo.toplevel),
            path=str(shared or self.root / lease_id),
            base=commit,
            branch=self._free_branch(run_id, task) if write else "",
            task=task,
            run_id=run_id,
            owner=this_process(),
        )
        return LeaseRecord(lease=lease, shared=shared is not None, state="making")

    def _free_branch(self, run_id: str, task: str) -> str:
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            branch = names.branch_name(run_id, task, attempt)
            if not self.repo.admin.resolve(f"refs/heads/{branch}"):
                return branch
        raise OpenDevError(
            ErrorKind.GIT,
            f"{_MAX_ATTEMPTS} branches of task {task} exist.",
            "Delete some: opendev worktrees prune",
        )

    def _make_own(self, write: bool, task: str, run_id: str, base: str) -> Lease:
        commit = self._room_for(base)
        with self.lock:
            record = self._record(write=write, task=task, run_id=run_id, commit=commit)
            self._register(record)
        try:
            self.checkout_at(Path(record.lease.path)).populate(commit)
            self.book.write(record.model_copy(update={"state": "held"}))
        except OpenDevError:
            self.undo(record.lease)
            raise
        return record.lease

    def _make_shared(self, task: str, run_id: str, base: str) -> Lease:
        commit = self._room_for(base)
        with self.lock:
            for number in range(_MAX_ATTEMPTS):
                path = self.root / f"read-{commit[:12]}{f'-{number}' if number else ''}"
                holders = self._holders(path)
                if holders and not self._pristine(path, commit):
                    continue  # a reader wrote into it: nobody else may see that
                if not holders and path.exists():
                    continue  # left by a crash: the doctor's business
                record = self._record(write=False, task=task, run_id=run_id, commit=commit, shared=path)
                if not holders:
                    self._register(record)
                    self._populate_shared(record)
                self.book.write(record.model_copy(update={"state": "held"}))
                return record.lease
        raise OpenDevError(
            ErrorKind.GIT, f"{_MAX_ATTEMPTS} checkouts of {commit} exist.", "Run: opendev worktrees prune"
        )

    def _populate_shared(self, record: LeaseRecord) -> None:
        try:
            self.checkout_at(Path(record.lease.path)).populate(record.lease.base)
        except OpenDevError:
            self._undo_locked(record.lease)
            raise

    def _register(self, record: LeaseRecord) -> None:
        """Record first, then make: a crash in between leaves a record without a folder, never a folder without a record."""
        lease = record.lease
        self.book.write(record)
        try:
            if lease.branch:
                self.repo.admin.run("update-ref", f"refs/heads/{lease.branch}", lease.base, NO_OBJECT)
            reason = f"opendev lease {lease.id} of run {lease.run_id}"
            self.checkout_at(Path(lease.path)).add(lease.base, lease.branch, reason)
        except OpenDevError:
            self._undo_locked(lease)
            raise

    def _room_for(self, base: str) -> str:
        commit = self.commit_of(base) if base else self.base
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (free := shutil.disk_usage(self.root).free) < MIN_FREE_BYTES:
            raise OpenDevError(
                ErrorKind.INFRA,
                f"Only {free // 1_000_000} MB are free under {self.root}: too little for another worktree.",
                "Free disk space, or run `opendev worktrees prune`.",
            )
        return commit

    def _holders(self, path: Path) -> int:
        return sum(1 for record in self.book.records() if record.lease.path == str(path))

    def _pristine(self, path: Path, commit: str) -> bool:
        checkout = self.checkout_at(path)
        try:
            return checkout.head() == commit and not checkout.at_risk()
        except OpenDevError:
            return False

    def undo(self, lease: Lease) -> None:
        """Take back a lease that nobody has worked in yet: its folder, its branch if unmoved, its record."""
        with self.lock:
            self._undo_locked(lease)

    def _undo_locked(self, lease: Lease) -> None:
        """Take back a lease that nobody has worked in yet."""
        path = Path(lease.path)
        if self._holders(path) <= 1 and (path.exists() or self.checkout_at(path).admin_dir() is not None):
            self.checkout_at(path).remove(force=True)
        if lease.branch and self.repo.admin.resolve(f"refs/heads/{lease.branch}") == lease.base:
            self.repo.admin.run("update-ref", "-d", f"refs/heads/{lease.branch}", lease.base)
        self.book.remove(lease.id)

    def _commit(self, lease: Lease, message: str) -> str:
        if lease.kind != "write":
            raise OpenDevError(
                ErrorKind.GIT, f"Lease {lease.id} is for reading: nothing can be committed in {lease.path}."
            )
        checkout = self.checkout_at(Path(lease.path))
        checkout.assert_pointer()
        head, ref = checkout.head(), f"refs/heads/{lease.branch}"
        if checkout.branch() != ref:
            raise OpenDevError(
                ErrorKind.GIT,
                f"HEAD of {lease.path} left its branch {lease.branch} (it is now {checkout.branch() or 'detached'}), so nothing was committed.",
                f"Switch back: git -C {lease.path} switch {lease.branch}",
            )
        if not self.repo.admin.test("merge-base", "--is-ancestor", lease.base, head):
            raise OpenDevError(
                ErrorKind.GIT,
                f"Branch {lease.branch} is no longer built on its base {lease.base[:12]}, so nothing was committed.",
            )
        tree = checkout.tree()
        if tree.id != self.repo.admin.line("rev-parse", f"{head}^{{tree}}"):
            text = (
                message.strip()
                + "".join(f"\n\nNot included: nested repository {path}" for path in tree.nested)
                + "\n"
            )
            commit = write_commit(
                self.repo.admin, tree.id, (head,), text, self.repo.identity(self.clock.now())
            )
            self.repo.admin.run("update-ref", "-m", "opendev: commit", ref, commit, head)
            head = commit
        checkout.git().run("reset", "--quiet")  # the folder's own index follows; its files are not touched
        return head

    def _changed(self, lease: Lease) -> tuple[str, ...]:
        checkout = self.checkout_at(Path(lease.path))
        checkout.assert_pointer()
        return tuple(
            show(path) for path in self.repo.admin.diff_names(lease.base, checkout.tree().id, "--name-only")
        )

    def give_back(self, lease: Lease) -> str:
        """Remove the lease's folder if that loses nothing; what became of it, as a sentence."""
        record = self.book.get(lease.id)
        if record is None:
            return f"{lease.id} was given back before"
        with self.lock:
            if record.shared and (others := self._holders(Path(lease.path)) - 1):
                self.book.remove(lease.id)
                return f"the shared checkout {lease.path} is still used by {others} other leases"
            try:
                answer = self._take_down(record)
            except OpenDevError as error:
                answer = f"inspection failed, kept at {lease.path}: {error.info.message}"
            if answer.startswith(("kept", "inspection")):
                self.book.write(record.model_copy(update={"state": "kept", "note": answer}))
            else:
                self.book.remove(lease.id)
            return answer

    def _take_down(self, record: LeaseRecord) -> str:
        lease = record.lease
        checkout = self.checkout_at(Path(lease.path))
        if not checkout.path.exists():
            if checkout.admin_dir() is not None:
                checkout.remove(force=False)
            return f"the folder {lease.path} was already gone" + (
                f"; branch {lease.branch} stays" if lease.branch else ""
            )
        if lease.kind == "read":
            return self._drop_read(lease, checkout)
        if risks := checkout.at_risk():
            return f"kept at {lease.path}: it holds {'; '.join(risks)}"
        head = checkout.head()
        checkout.remove(force=(checkout.path / ".gitmodules").exists())
        return f"removed; branch {lease.branch} stays at {head[:12]}"

    def _drop_read(self, lease: Lease, checkout: Checkout) -> str:
        """A read-only folder is disposable: its files go whatever they are. Commits made in it are saved first."""
        checkout.assert_pointer()
        head, saved = checkout.head(), ""
        if not reachable(self.repo.admin, head) and head != lease.base:
            saved = f"; its commit {head[:12]} is saved as {self._save(lease, head)}"
        checkout.remove(force=True, disposable=True)
        return f"removed the read-only checkout{saved}"

    def _save(self, lease: Lease, commit: str) -> str:
        ref = f"{names.RESCUE}{lease.id}"
        self.repo.admin.run("update-ref", ref, commit)
        if self.repo.admin.resolve(ref) != commit:
            raise OpenDevError(ErrorKind.GIT, f"The rescue ref {ref} could not be read back.")
        return ref

    def rescue(self, lease: Lease, reason: str) -> str:
        """Save everything in the folder as a commit, then remove the folder; the ref. Without a commit nothing is removed.

        A nested repository or an unpushed submodule keeps the folder; the lease record then says so.
        """
        checkout = self.checkout_at(Path(lease.path))
        with self.lock:
            head, tree = checkout.head(), checkout.tree()
            text = f"Work in progress of {lease.task or lease.id}\n\n{reason.strip()}\n"
            same = tree.id == self.repo.admin.line("rev-parse", f"{head}^{{tree}}")
            signature = self.repo.identity(self.clock.now())
            commit = head if same else write_commit(self.repo.admin, tree.id, (head,), text, signature)
            ref = self._save(lease, commit)
            risks = list(checkout.submodules_at_risk(tree.id))
            risks += [f"nested repository {path}" for path in tree.nested]
            if checkout.tree().id != tree.id:
                risks.append("files that changed while they were saved: something still writes there")
            if not risks and not checkout.repair_pointer():
                risks.append("a repository in place of its .git file")
            if risks:
                note = f"kept at {lease.path}: it holds {'; '.join(risks)}; the rest is saved as {ref}"
                self.book.write(LeaseRecord(lease=lease, state="kept", note=note))
                return ref
            checkout.remove(force=True)
            self.book.remove(lease.id)
            return ref

    def delete_proven(self, branch: str, into: str) -> str:
        """See ``branches.delete_proven``."""
        with self.lock:
            return delete_proven(self.repo, branch, into)


def _assert_outside(repo: Repository, home: Path) -> None:
    if not home.is_relative_to(repo.toplevel) or home.is_relative_to(repo.common):
        return
    if (
        repo.user_tree()
        .run("check-ignore", "--quiet", f"{home.relative_to(repo.toplevel)}/x", ok=(0, 1, 128))
        .code
        == 0
    ):
        return
    raise OpenDevError(
        ErrorKind.CONFIG,
        f"The state folder {home} lies inside the repository {repo.toplevel}, whose files OpenDev must not touch.",
        "Set OPENDEV_HOME to a folder outside of it, or add that folder to .gitignore.",
    )
