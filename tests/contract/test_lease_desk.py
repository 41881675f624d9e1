"""The contract of the port ``LeaseDesk``: whoever hands out folders must pass this suite."""

from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.lease import Lease
from opendev.core.ports import LeaseDesk
from opendev.worktrees.journal import this_process
from opendev.worktrees.keeper import Keeper
from support.repos import ENV, exists, fingerprint, git, make_repo, write

Desk = tuple[LeaseDesk, Path]


def keeper_desk(tmp_path: Path) -> Desk:
    repo = make_repo(tmp_path / "repo")
    return Keeper(repo=repo, home=tmp_path / "home", clock=SystemClock(), env=ENV), repo


@pytest.fixture(params=[keeper_desk])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    make: Callable[[Path], Desk] = request.param
    return make(tmp_path)


@pytest.mark.req("SWM-03")
async def test_write_leases_never_share_a_folder_or_a_branch(desk: Desk) -> None:
    keeper, repo = desk
    leases = [await keeper.lease(write=True, task="same", run_id="r") for _ in range(3)]
    assert len({lease.id for lease in leases}) == len({lease.path for lease in leases}) == 3
    assert len({lease.branch for lease in leases}) == 3
    for lease in leases:
        assert (lease.kind, lease.repo, lease.owner) == ("write", str(repo), this_process())
        assert not Path(lease.path).is_relative_to(repo)
        assert git(Path(lease.path), "branch", "--show-current") == lease.branch


async def test_a_read_lease_has_no_branch_and_the_bases_content(desk: Desk) -> None:
    keeper, repo = desk
    lease = await keeper.lease(write=False, task="look", run_id="r")
    assert (lease.kind, lease.branch, lease.base) == ("read", "", git(repo, "rev-parse", "HEAD"))
    assert (Path(lease.path) / "a.py").read_bytes() == (repo / "a.py").read_bytes()


async def test_what_is_committed_is_what_is_changed(desk: Desk) -> None:
    keeper, repo = desk
    lease = await keeper.lease(write=True, task="t", run_id="r")
    assert await keeper.changed(lease) == ()
    assert await keeper.commit(lease, "none") == lease.base
    write(Path(lease.path), {"b.py": None, "new.py": "N = 1\n", "a.log": "ignored"})
    seen = await keeper.changed(lease)
    commit = await keeper.commit(lease, "work")
    assert seen == ("b.py", "new.py") == await keeper.changed(lease)
    assert tuple(git(repo, "diff", "--name-only", lease.base, commit).splitlines()) == seen
    assert git(repo, "log", "-1", "--format=%s", commit) == "work"


@pytest.mark.req("SWM-10")
async def test_release_removes_durable_work_and_keeps_the_rest(desk: Desk) -> None:
    keeper, repo = desk
    before = fingerprint(repo)
    safe = await keeper.lease(write=True, task="safe", run_id="r")
    risky = await keeper.lease(write=True, task="risky", run_id="r")
    for lease in (safe, risky):
        write(Path(lease.path), {"a.py": "A = 2\n"})
    commit = await keeper.commit(safe, "work")
    await keeper.release(safe)
    answer = await keeper.release(risky)
    assert not exists(safe.path)
    assert git(repo, "rev-parse", safe.branch) == commit
    assert (Path(risky.path) / "a.py").read_text() == "A = 2\n"
    assert risky.path in answer
    assert await keeper.release(safe)  # twice is no error
    assert fingerprint(repo) == before


@pytest.mark.req("SWM-10")
async def test_quarantine_makes_a_ref_with_everything(desk: Desk) -> None:
    keeper, repo = desk
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 2\n", "new.py": "N = 1\n"})
    ref = await keeper.quarantine(lease, "it died")
    assert ref == f"refs/opendev/rescue/{lease.id}"
    assert (git(repo, "show", f"{ref}:a.py"), git(repo, "show", f"{ref}:new.py")) == ("A = 2", "N = 1")
    assert not exists(lease.path)


async def test_a_lease_survives_its_json(desk: Desk) -> None:
    keeper, _ = desk
    lease = Lease.model_validate_json((await keeper.lease(write=True, task="t", run_id="r")).to_json())
    write(Path(lease.path), {"a.py": "A = 2\n"})
    assert await keeper.changed(lease) == ("a.py",)
    assert await keeper.commit(lease, "x") != lease.base
    assert (await keeper.release(lease)).startswith("removed")


async def test_failures_are_git_errors_that_name_the_place(desk: Desk) -> None:
    keeper, _ = desk
    with pytest.raises(OpenDevError) as caught:
        await keeper.lease(write=True, task="t", run_id="r", base="no-such-commit")
    assert caught.value.info.kind == ErrorKind.GIT
    lease = await keeper.lease(write=True, task="t", run_id="r")
    (Path(lease.path) / ".git").unlink()
    with pytest.raises(OpenDevError) as caught:
        await keeper.commit(lease, "x")
    assert (caught.value.info.kind, lease.path in caught.value.info.message) == (ErrorKind.GIT, True)
