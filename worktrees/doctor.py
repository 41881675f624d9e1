"""After a crash: who holds what, what nobody holds, and what may go. Work is saved first; what is not proven safe is kept and named."""

import threading
from pathlib import Path

from ..core.errors import OpenDevError
from ..core.lease import Owner
from ..core.model import Frozen
from . import names
from .journal import LeaseRecord, gits_of, is_alive
from .keeper import Keeper
from .threads import uncut

OUTLAST_TRIES = 100  # of 0.1 s


class LeaseLine(Frozen):
    """One lease: its record, whether its holder's process lives, whether its folder is there."""

    record: LeaseRecord
    alive: bool
    exists: bool


class Checkup(Frozen):
    """What ``doctor`` finds. Nothing was changed."""

    leases: tuple[LeaseLine, ...]
    orphans: tuple[str, ...]  # folders that no lease claims
    broken_records: tuple[str, ...]  # lease files that cannot be read
    stale_locks: tuple[str, ...]  # git lock files in folders whose holder is dead
    branches: tuple[str, ...]  # branches of OpenDev that no lease holds
    rescued: tuple[str, ...]  # refs with saved work


class Tidy(Frozen):
    """What was done, as sentences; ``kept`` is what was not proven safe, with the reason."""

    done: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Doctor:
    """Checks and mends the worktrees of one repository (SWM-10)."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._git = keeper.repo.admin

    async def check(self) -> Checkup:
        """List everything; changes nothing."""
        return await uncut(self._check)

    async def repair(self) -> Tidy:
        """Save the work of dead holders under rescue refs and remove their folders. Living holders are not touched."""
        return await uncut(self._repair)

    async def prune(self, into: str = "") -> Tidy:
        """Delete what is proven safe: clean folders of dead holders, empty orphans, branches whose work is elsewhere or on ``into``."""
        return await uncut(lambda: self._prune(into))

    def _check(self) -> Checkup:
        keeper = self._keeper
        records = keeper.book.records()
        lines = tuple(
            LeaseLine(record=r, alive=is_alive(r.lease.owner), exists=Path(r.lease.path).exists())
            for r in records
        )
        dead = [line.record for line in lines if not line.alive]
        return Checkup(
            leases=lines,
            orphans=tuple(str(path) for path in self._orphans(records)),
            broken_records=tuple(str(path) for path in keeper.book.broken()),
            stale_locks=tuple(str(path) for record in dead for path in self._locks(record)),
            branches=self._free_branches(records),
            rescued=self._refs(names.RESCUE),
        )

    def _orphans(self, records: tuple[LeaseRecord, ...]) -> list[Path]:
        claimed = {record.lease.path for record in records}
        root = self._keeper.root
        return [path for path in sorted(root.glob("*")) if str(path) not in claimed] if root.exists() else []

    def _refs(self, prefix: str) -> tuple[str, ...]:
        return tuple(self._git.run("for-each-ref", "--format=%(refname)", prefix).text.split())

    def _free_branches(self, records: tuple[LeaseRecord, ...]) -> tuple[str, ...]:
        held = {record.lease.branch for record in records}
        branches = (ref.removeprefix("refs/heads/") for ref in self._refs(names.BRANCHES))
        return tuple(branch for branch in branches if branch not in held)

    def _locks(self, record: LeaseRecord) -> list[Path]:
        admin = self._keeper.checkout_at(Path(record.lease.path)).admin_dir()
        return sorted(admin.glob("*.lock")) if admin else []

    def _dead(self) -> list[LeaseRecord]:
        return [record for record in self._keeper.book.records() if not is_alive(record.lease.owner)]

    def _repair(self) -> Tidy:
        done: list[str] = []
        kept: list[str] = []
        for record in self._dead():
            if pids := _outlast(record.lease.owner):
                kept.append(
                    f"{record.lease.id}: kept at {record.lease.path}: git processes {pids} still work there"
                )
                continue
            for lock in self._locks(record):
                lock.unlink(missing_ok=True)
                done.append(f"removed the stale lock {lock}")
            try:
                self._settle(record, done, kept)
            except OpenDevError as error:
                kept.append(
                    f"{record.lease.id}: inspection failed, kept at {record.lease.path}: {error.info.message}"
                )
        kept += [
            f"{path}: no lease claims this folder" for path in self._orphans(self._keeper.book.records())
        ]
        kept += [f"{path}: this lease record cannot be read" for path in self._keeper.book.broken()]
        return Tidy(done=tuple(done), kept=tuple(kept))

    def _settle(self, record: LeaseRecord, done: list[str], kept: list[str]) -> None:
        """Give back what is clean; save, then remove, what is not."""
        lease, keeper = record.lease, self._keeper
        if record.state == "making" and self._unmade(record):
            keeper.undo(lease)
            done.append(f"{lease.id}: it was never made whole; removed")
            return
        answer = keeper.give_back(lease)
        if answer.startswith(("kept", "inspection")):
            ref = keeper.rescue(lease, f"Its holder (process {lease.owner.pid}) died.")
            after = keeper.book.get(lease.id)
            (kept if after else done).append(
                f"{lease.id}: {after.note if after else f'work saved as {ref}; folder removed'}"
            )
            return
        done.append(f"{lease.id}: {answer}")

    def _unmade(self, record: LeaseRecord) -> bool:
        """Whether the crash came before any file was written into the folder, or even before the folder."""
        path = Path(record.lease.path)
        return not record.shared and (
            not path.exists() or all(item.name == ".git" for item in path.iterdir())
        )

    def _prune(self, into: str) -> Tidy:
        done: list[str] = []
        kept: list[str] = []
        for record in self._dead():
            if pids := _outlast(record.lease.owner):
                kept.append(
                    f"{record.lease.id}: kept at {record.lease.path}: git processes {pids} still work there"
                )
                continue
            answer = f"{record.lease.id}: {self._keeper.give_back(record.lease)}"
            (kept if "kept at" in answer else done).append(answer)
        for path in self._orphans(self._keeper.book.records()):
            answer = self._prune_orphan(path)
            (kept if "kept" in answer else done).append(answer)
        for branch in self._free_branches(self._keeper.book.records()):
            answer = self._keeper.delete_proven(branch, into)
            (kept if " kept: " in answer else done).append(answer)
        kept += [f"{path}: this lease record cannot be read; kept" for path in self._keeper.book.broken()]
        return Tidy(done=tuple(done), kept=tuple(kept))

    def _prune_orphan(self, path: Path) -> str:
        """Remove a folder that no lease claims if it is empty, or a registered worktree that is proven clean."""
        checkout = self._keeper.checkout_at(path)
        with self._keeper.lock:
            try:
                if (
                    path.is_dir()
                    and not path.is_symlink()
                    and not any(path.iterdir())
                    and checkout.admin_dir() is None
                ):
                    path.rmdir()
                    return f"{path}: removed, it was empty"
                if risks := checkout.at_risk():
                    return f"{path}: kept, it holds {'; '.join(risks)}"
                checkout.remove(force=(path / ".gitmodules").exists())
            except (OpenDevError, OSError) as error:
                return f"{path}: inspection failed, kept: {error}"
        return f"{path}: removed, it was clean and its commit is held by a ref"


def _outlast(owner: Owner) -> tuple[int, ...]:
    """Wait for the git processes of a dead owner to end; those that did not."""
    pids = gits_of(owner)
    for _ in range(OUTLAST_TRIES):
        if not pids:
            break
        threading.Event().wait(0.1)
        pids = gits_of(owner)
    return pids
