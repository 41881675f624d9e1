"""After a crash: dead holders' work is saved, living ones are left alone, and only what is proven safe goes."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opendev.core.lease import Lease, Owner
from opendev.worktrees.doctor import Doctor
from opendev.worktrees.git import Git
from opendev.worktrees.journal import LeaseRecord, gits_of, is_alive, started, this_process
from opendev.worktrees.keeper import Keeper
from opendev.worktrees.names import RESCUE
from support.repos import (
    ENV,
    commit_files,
    exists,
    fingerprint,
    git,
    locks,
    make_repo,
    tree_files,
    worktrees,
    write,
)

TESTS = Path(__file__).parents[2]
DEAD = Owner(pid=os.getpid(), started=1)  # this pid, but another process: the number was used again


@contextmanager
def driver(
    repo: Path, home: Path, *mode: str
) -> Generator[tuple[dict[str, Lease], Path, "subprocess.Popen[str]"]]:
    """A child process that holds leases of ``repo``."""
    child = subprocess.Popen(
        [sys.executable, "-m", "support.lease_holder", str(repo), str(home), *mode],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        told = json.loads(child.stdout.readline())
        yield (
            {name: Lease.model_validate(data) for name, data in told.get("leases", {}).items()},
            Path(told.get("verify", "/")),
            child,
        )
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.slow
@pytest.mark.req("SWM-10")
async def test_a_killed_driver_costs_no_work_and_leaves_no_trace_in_the_users_checkout(
    repo: Path, home: Path, open_keeper: Callable[[], Keeper]
) -> None:
    write(repo, {"b.py": "B = 99\n", "mine.txt": "untracked"})
    git(repo, "add", "b.py")
    before = fingerprint(repo)
    with driver(repo, home) as (leases, verify, child):
        keeper = open_keeper()
        doctor = Doctor(keeper)
        living = await doctor.check()
        assert [line.alive for line in living.leases] == [True] * 5
        assert (await doctor.repair()).done == ()
        assert (await doctor.prune()).done == ()
        child.send_signal(signal.SIGKILL)
        child.wait()
        (Path(git(Path(leases["dirty"].path), "rev-parse", "--absolute-git-dir")) / "index.lock").touch()
        found = await doctor.check()
        assert [(line.alive, line.exists) for line in found.leases] == [(False, True)] * 5
        assert len(found.stale_locks) == 1
        pruned = await doctor.prune()
        assert exists(leases["dirty"].path)
        assert not exists(leases["clean"].path)
        assert not exists(verify)
        assert any(leases["dirty"].path in line for line in pruned.kept)
        tidy = await doctor.repair()
    assert tidy.kept == ()
    assert any("work saved as" in line for line in tidy.done), tidy
    rescued = f"{RESCUE}{leases['dirty'].id}"
    assert tree_files(repo, rescued)["new.txt"] == "precious"
    assert tree_files(repo, rescued)["a.py"] == "A = 2"
    assert tree_files(repo, leases["done"].branch)["b.py"] == "B = 2"
    assert git(repo, "rev-parse", "swarm/x") == git(repo, "rev-parse", "main")
    assert (worktrees(repo), locks(repo), list(keeper.root.iterdir())) == ([], [], [])
    assert (await doctor.check()).leases == ()
    assert (await doctor.check()).rescued == (rescued,)
    assert fingerprint(repo) == before


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.05, 0.2, 0.45])
async def test_a_kill_at_any_step_can_be_repaired(
    repo: Path, home: Path, open_keeper: Callable[[], Keeper], delay_s: float
) -> None:
    commit_files(repo, {f"many/f{number}.py": "x = 1\n" * 50 for number in range(200)})
    before = fingerprint(repo)
    with driver(repo, home, "churn") as (_, _, child):
        await asyncio.sleep(delay_s)
        child.kill()
        child.wait()
        keeper = open_keeper()
        tidy = await Doctor(keeper).repair()
    assert tidy.kept == ()
    assert (worktrees(repo), locks(repo), keeper.book.records()) == ([], [], ())
    assert list(keeper.root.glob("*")) == []
    assert fingerprint(repo) == before


def test_git_processes_that_outlive_their_owner_are_found(repo: Path) -> None:
    slow = Git(repo, ENV, config=(("alias.wait", "!echo started >up; sleep 0.5"),))
    thread = threading.Thread(target=slow.run, args=("wait",))
    thread.start()
    while not exists(repo / "up"):
        threading.Event().wait(0.01)
    assert gits_of(this_process())
    assert gits_of(DEAD) == ()
    thread.join()
    assert gits_of(this_process()) == ()


def empty(folder: Path) -> None:
    """Remove everything but ``.git``: the state between ``worktree add`` and the first file."""
    for item in folder.iterdir():
        if item.is_dir():
            shutil.rmtree(item)
        elif item.name != ".git":
            item.unlink()


def dead(keeper: Keeper, lease: Lease, **changes: object) -> Lease:
    """Make the lease's holder a process that is gone."""
    gone = lease.model_copy(update={"owner": DEAD})
    keeper.book.write(LeaseRecord(lease=gone).model_copy(update=changes))
    return gone


def test_a_used_again_pid_is_not_the_holder() -> None:
    assert is_alive(this_process())
    assert not is_alive(DEAD)
    assert started(2**22 + 1) is None
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert started(child.pid) is None  # a zombie works no more
    child.wait()


async def test_prune_works_in_both_directions(keeper: Keeper, repo: Path) -> None:
    doctor = Doctor(keeper)
    merged = await keeper.lease(write=True, task="merged", run_id="r")
    unmerged = await keeper.lease(write=True, task="unmerged", run_id="r")
    dirty = await keeper.lease(write=True, task="dirty", run_id="r")
    held = await keeper.lease(write=True, task="held", run_id="r")
    write(Path(merged.path), {"a.py": "A = 2\n"})
    write(Path(unmerged.path), {"a.py": "A = 3\n"})
    write(Path(dirty.path), {"a.py": "A = 4\n"})
    git(repo, "update-ref", "refs/heads/swarm/x", await keeper.commit(merged, "m"))
    await keeper.commit(unmerged, "u")
    for lease in (merged, unmerged, dirty):
        dead(keeper, lease)
    (keeper.root / "empty").mkdir()
    write(keeper.root / "stranger", {"file.txt": "whose?"})
    (keeper.book.folder / "torn.json").write_text("{")
    tidy = await doctor.prune("swarm/x")
    assert not exists(merged.path)
    assert not exists(unmerged.path)
    assert not (keeper.root / "empty").exists()
    assert exists(dirty.path)
    assert exists(held.path)
    assert (keeper.root / "stranger" / "file.txt").exists()
    assert git(repo, "branch", "--list", "opendev/r/*", "--format=%(refname:short)").split() == [
        "opendev/r/dirty-1",
        "opendev/r/held-1",
        "opendev/r/unmerged-1",
    ]
    kept = "\n".join(tidy.kept)
    for word in (dirty.path, "stranger", "torn.json", "opendev/r/unmerged-1"):
        assert word in kept
    assert held.path not in kept
    found = await doctor.check()
    assert found.orphans == (str(keeper.root / "stranger"),)
    assert [Path(path).name for path in found.broken_records] == ["torn.json"]
    assert found.branches == ("opendev/r/unmerged-1",)


async def test_a_registered_folder_without_a_lease_goes_only_when_clean(keeper: Keeper, repo: Path) -> None:
    clean = await keeper.lease(write=True, task="clean", run_id="r")
    dirty = await keeper.lease(write=True, task="dirty", run_id="r")
    write(Path(dirty.path), {"new.txt": "x"})
    for lease in (clean, dirty):
        keeper.book.remove(lease.id)
    tidy = await Doctor(keeper).prune()
    assert not exists(clean.path)
    assert (Path(dirty.path) / "new.txt").exists()
    assert any(dirty.path in line and "new.txt" in line for line in tidy.kept)


async def test_a_crash_while_a_lease_was_made_is_taken_back(keeper: Keeper, repo: Path) -> None:
    doctor = Doctor(keeper)
    ghost = await keeper.lease(write=True, task="ghost", run_id="r")
    await keeper.release(ghost)
    dead(keeper, ghost, state="making")  # recorded, branch made, folder not
    bare = await keeper.lease(write=True, task="bare", run_id="r")
    empty(Path(bare.path))
    dead(keeper, bare, state="making")
    tidy = await doctor.repair()
    assert tidy.kept == ()
    assert (keeper.book.records(), worktrees(repo)) == ((), [])
    assert git(repo, "for-each-ref", "refs/heads/opendev", "refs/opendev") == ""


async def test_a_folder_that_the_user_deleted_is_forgotten_and_its_branch_stays(
    keeper: Keeper, repo: Path
) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 2\n"})
    commit = await keeper.commit(lease, "x")
    git(repo, "worktree", "unlock", lease.path)
    git(repo, "worktree", "remove", "--force", lease.path)
    dead(keeper, lease)
    tidy = await Doctor(keeper).repair()
    assert tidy.kept == ()
    assert git(repo, "rev-parse", lease.branch) == commit
    gone = await keeper.lease(write=True, task="u", run_id="r")
    shutil.rmtree(gone.path)
    dead(keeper, gone)
    assert (await Doctor(keeper).repair()).kept == ()
    assert worktrees(repo) == []


async def test_what_cannot_be_saved_is_kept_and_named(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    inner = make_repo(Path(lease.path) / "nested")
    commit_files(inner, {"x.txt": "only here"})
    dead(keeper, lease)
    tidy = await Doctor(keeper).repair()
    assert any("nested/" in line for line in tidy.kept), tidy
    assert (inner / "x.txt").exists()
    again = await Doctor(keeper).repair()
    assert any(lease.path in line for line in again.kept)
