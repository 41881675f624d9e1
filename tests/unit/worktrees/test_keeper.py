"""Leases: folders of their own, commits on their own branch, removal only after a proof, the user's checkout untouched."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.worktrees import names
from opendev.worktrees.journal import LeaseBook, repository_lock, this_process
from opendev.worktrees.keeper import Keeper
from support.fixed_clock import FixedClock
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


@pytest.mark.req("SWM-03")
@pytest.mark.req("ACT-07")
async def test_a_writer_works_on_a_branch_of_its_own_outside_the_users_tree(
    keeper: Keeper, repo: Path, home: Path
) -> None:
    write(repo, {"b.py": "B = 99\n", "mine.txt": "untracked\n"})
    git(repo, "add", "b.py")
    before = fingerprint(repo)
    lease = await keeper.lease(write=True, task="fix it", run_id="run1")
    folder = Path(lease.path)
    assert folder.is_relative_to(home / "worktrees")
    assert lease.model_dump(exclude={"id", "path", "schema_version"}) == {
        "kind": "write",
        "repo": str(repo),
        "base": git(repo, "rev-parse", "HEAD"),
        "branch": "opendev/run1/fix-it-1",
        "task": "fix it",
        "run_id": "run1",
        "owner": this_process().model_dump(),
    }
    assert (folder / "b.py").read_text() == "B = 1\n"
    write(folder, {"a.py": "A = 2\n", "new/d.py": "D = 1\n", "src/c.py": None, "x.log": "ignored"})
    assert await keeper.changed(lease) == ("a.py", "new/d.py", "src/c.py")
    commit = await keeper.commit(lease, "Fix it")
    assert tree_files(repo, commit).keys() == {"a.py", "b.py", "new/d.py", ".gitignore"}
    assert git(repo, "log", "-1", "--format=%an|%cn|%s|%P", commit) == f"OpenDev|Ada|Fix it|{lease.base}"
    assert git(repo, "rev-parse", lease.branch) == commit
    assert git(folder, "status", "--porcelain") == ""
    assert await keeper.changed(lease) == ("a.py", "new/d.py", "src/c.py")
    assert await keeper.release(lease) == f"removed; branch {lease.branch} stays at {commit[:12]}"
    assert not exists(folder)
    assert worktrees(repo) == []
    assert locks(repo) == []
    assert fingerprint(repo) == before
    assert keeper.book.records() == ()


async def test_a_commit_without_a_change_is_the_base(keeper: Keeper) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    assert await keeper.commit(lease, "nothing") == lease.base
    assert await keeper.changed(lease) == ()


async def test_each_step_is_a_commit_and_the_agents_own_commits_count(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 2\n"})
    first = await keeper.commit(lease, "one")
    own = commit_files(Path(lease.path), {"a.py": "A = 3\n"}, "by hand")
    assert await keeper.commit(lease, "two") == own
    assert git(repo, "rev-list", f"{lease.base}..{own}").splitlines() == [own, first]


async def test_commits_are_stamped_by_the_clock(repo: Path, home: Path) -> None:
    keeper = Keeper(repo=repo, home=home, clock=FixedClock(1_700_000_000.0), env=ENV)
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 2\n"})
    assert (
        git(repo, "log", "-1", "--format=%at %ct", await keeper.commit(lease, "x")) == "1700000000 1700000000"
    )


async def test_the_base_is_pinned_when_the_keeper_opens(keeper: Keeper, repo: Path) -> None:
    pinned = keeper.base
    later = commit_files(repo, {"a.py": "A = 9\n"})
    lease = await keeper.lease(write=True, task="t", run_id="r")
    other = await keeper.lease(write=True, task="t", run_id="r", base=later)
    assert (lease.base, other.base) == (pinned, later)
    assert other.branch == "opendev/r/t-2"
    assert (Path(other.path) / "a.py").read_text() == "A = 9\n"
    with pytest.raises(OpenDevError, match="names no commit"):
        await keeper.lease(write=True, task="t", run_id="r", base="nowhere")


@pytest.mark.req("ACT-07")
async def test_readers_share_a_checkout_and_the_last_one_removes_it(keeper: Keeper, repo: Path) -> None:
    first, second = [await keeper.lease(write=False, task="look", run_id="r") for _ in range(2)]
    assert first.path == second.path
    assert first.branch == ""
    assert git(Path(first.path), "rev-parse", "HEAD") == first.base
    assert "still used by 1" in await keeper.release(first)
    assert exists(first.path)
    assert (await keeper.release(second)).startswith("removed")
    assert worktrees(repo) == []


async def test_a_reviewer_gets_a_disposable_checkout_of_its_own(keeper: Keeper, repo: Path) -> None:
    shared = await keeper.lease(write=False, task="look", run_id="r")
    own = await keeper.lease(write=False, task="review", run_id="r", private=True)
    assert own.path != shared.path
    write(Path(own.path), {"a.py": "vandalised", "junk.txt": "x"})
    assert (Path(shared.path) / "a.py").read_text() == "A = 1\n"
    assert (await keeper.release(own)).startswith("removed")
    assert not exists(own.path)
    with pytest.raises(OpenDevError, match="for reading"):
        await keeper.commit(shared, "x")


async def test_a_shared_checkout_that_a_reader_dirtied_is_not_handed_out_again(keeper: Keeper) -> None:
    first = await keeper.lease(write=False, task="look", run_id="r")
    write(Path(first.path), {"a.py": "vandalised"})
    second = await keeper.lease(write=False, task="look", run_id="r")
    assert second.path != first.path
    assert (Path(second.path) / "a.py").read_text() == "A = 1\n"


async def test_a_readers_commits_are_saved_before_its_folder_goes(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=False, task="review", run_id="r", private=True)
    commit = commit_files(Path(lease.path), {"a.py": "A = 7\n"})
    assert names.RESCUE in await keeper.release(lease)
    assert git(repo, "rev-parse", f"{names.RESCUE}{lease.id}") == commit


def modify(folder: Path) -> None:
    write(folder, {"a.py": "A = 2\n"})


def add_untracked(folder: Path) -> None:
    write(folder, {"new.txt": "x"})


def stage_and_delete(folder: Path) -> None:
    add_untracked(folder)
    git(folder, "add", "-A")
    write(folder, {"new.txt": None})


def hide_by_assuming(folder: Path) -> None:
    modify(folder)
    git(folder, "update-index", "--assume-unchanged", "a.py")


def hide_by_skipping(folder: Path) -> None:
    modify(folder)
    git(folder, "update-index", "--skip-worktree", "a.py")


def nest(folder: Path) -> None:
    make_repo(folder / "nested")


def nest_empty(folder: Path) -> None:
    git(folder, "init", "-q", "empty")


def commit_detached(folder: Path) -> None:
    git(folder, "checkout", "-q", "--detach")
    commit_files(folder, {"a.py": "A = 3\n"})


@pytest.mark.req("SWM-10")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (modify, "1 uncommitted files (a.py)"),
        (add_untracked, "1 uncommitted files (new.txt)"),
        (stage_and_delete, "staged changes"),
        (hide_by_assuming, "(a.py)"),
        (hide_by_skipping, "(a.py)"),
        (nest, "nested repositories that no commit covers (nested/)"),
        (nest_empty, "nested repositories that no commit covers (empty/)"),
        (commit_detached, "that no ref holds"),
    ],
)
async def test_work_that_is_nowhere_else_keeps_the_folder(
    keeper: Keeper, change: Callable[[Path], object], reason: str
) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    change(Path(lease.path))
    answer = await keeper.release(lease)
    assert answer.startswith(f"kept at {lease.path}")
    assert reason in answer
    assert exists(lease.path)
    record = keeper.book.get(lease.id)
    assert record is not None
    assert (record.state, record.note) == ("kept", answer)


@pytest.mark.req("SWM-10")
@pytest.mark.parametrize("damage", ["gone", "garbage", "elsewhere", "folder", "link"])
async def test_a_folder_that_cannot_be_inspected_is_kept(
    keeper: Keeper, repo: Path, tmp_path: Path, damage: str
) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    folder = Path(lease.path)
    write(folder, {"precious.txt": "work"})
    evil = make_repo(tmp_path / "evil")
    pointer = folder / ".git"
    pointer.unlink()
    if damage == "garbage":
        pointer.write_text("garbage")
    elif damage == "elsewhere":
        pointer.write_text(f"gitdir: {evil}/.git\n")
    elif damage == "folder":
        git(folder, "init", "-q")
    elif damage == "link":
        pointer.symlink_to(evil / ".git")
    with pytest.raises(OpenDevError, match="cannot be trusted"):
        await keeper.assert_toplevel(lease)
    with pytest.raises(OpenDevError, match="cannot be trusted"):
        await keeper.commit(lease, "x")
    with pytest.raises(OpenDevError, match="cannot be trusted"):
        await keeper.changed(lease)
    answer = await keeper.release(lease)
    assert answer.startswith(f"inspection failed, kept at {folder}")
    assert (folder / "precious.txt").read_text() == "work"
    # The admin folder is believed, not the pointer: the work can still be saved.
    ref = await keeper.quarantine(lease, "tampered")
    assert git(repo, "show", f"{ref}:precious.txt") == "work"
    assert exists(folder) == (damage == "folder")
    assert git(evil, "status", "--porcelain") == ""


async def test_a_commit_is_refused_when_head_left_the_branch(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    folder = Path(lease.path)
    git(folder, "switch", "-q", "-c", "other")
    write(folder, {"a.py": "A = 2\n"})
    with pytest.raises(OpenDevError, match="left its branch"):
        await keeper.commit(lease, "x")
    git(folder, "switch", "-q", "--detach", "HEAD")
    with pytest.raises(OpenDevError, match="detached"):
        await keeper.commit(lease, "x")
    assert git(repo, "rev-parse", lease.branch) == lease.base


async def test_a_commit_is_refused_when_the_branch_was_reset_below_its_base(
    keeper: Keeper, repo: Path
) -> None:
    later = commit_files(repo, {"a.py": "A = 2\n"})
    lease = await keeper.lease(write=True, task="t", run_id="r", base=later)
    git(Path(lease.path), "reset", "-q", "--hard", "HEAD~1")
    with pytest.raises(OpenDevError, match="no longer built on its base"):
        await keeper.commit(lease, "x")


async def test_a_nested_repository_is_left_out_and_named(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    make_repo(Path(lease.path) / "vendor" / "lib")
    write(Path(lease.path), {"a.py": "A = 2\n"})
    commit = await keeper.commit(lease, "work")
    assert git(repo, "ls-tree", "-r", "--name-only", commit).splitlines() == [
        ".gitignore",
        "a.py",
        "b.py",
        "src/c.py",
    ]
    assert "Not included: nested repository vendor/lib/" in git(repo, "log", "-1", "--format=%B", commit)
    git(Path(lease.path), "-c", "advice.addEmbeddedRepo=false", "add", "-A")
    assert await keeper.changed(lease) == ("a.py",)
    assert "nested repositories" in await keeper.release(lease)


@pytest.mark.req("SWM-10")
async def test_quarantine_saves_everything_and_removes_the_folder(keeper: Keeper, repo: Path) -> None:
    before = fingerprint(repo)
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 2\n"})
    first = await keeper.commit(lease, "one")
    write(Path(lease.path), {"a.py": "A = 3\n", "new.txt": "x", "b.py": None})
    ref = await keeper.quarantine(lease, "the worker died")
    assert ref == f"refs/opendev/rescue/{lease.id}"
    assert git(repo, "rev-parse", f"{ref}^") == first
    assert tree_files(repo, ref) == {
        "a.py": "A = 3",
        "new.txt": "x",
        "src/c.py": "C = 1",
        ".gitignore": "*.log\nbuild/",
    }
    assert "the worker died" in git(repo, "log", "-1", "--format=%B", ref)
    assert not exists(lease.path)
    assert git(repo, "rev-parse", lease.branch) == first
    assert fingerprint(repo) == before
    assert await keeper.release(lease) == f"{lease.id} was given back before"


@pytest.mark.slow
@pytest.mark.req("ACT-15")
@pytest.mark.parametrize("count", [5, pytest.param(16, marks=pytest.mark.soak)])
async def test_many_leases_at_once_leave_no_lock(keeper: Keeper, repo: Path, count: int) -> None:
    before = fingerprint(repo)
    leases = await asyncio.gather(*(keeper.lease(write=True, task="t", run_id="r") for _ in range(count)))
    assert {lease.branch for lease in leases} == {f"opendev/r/t-{n}" for n in range(1, count + 1)}
    assert len({lease.path for lease in leases}) == count
    for number, lease in enumerate(leases):
        write(Path(lease.path), {f"f{number}.txt": str(number)})
    commits = await asyncio.gather(*(keeper.commit(lease, "x") for lease in leases))
    for number, commit in enumerate(commits):
        assert git(repo, "show", f"{commit}:f{number}.txt") == str(number)
    answers = await asyncio.gather(*(keeper.release(lease) for lease in leases))
    assert all(answer.startswith("removed") for answer in answers), answers
    assert (locks(repo), worktrees(repo)) == ([], [])
    assert fingerprint(repo) == before


async def test_it_works_from_a_linked_worktree_and_leaves_both_checkouts_alone(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", "-b", "feature", str(linked))
    commit_files(linked, {"a.py": "A = 5\n"})
    write(linked, {"dirty.txt": "x"})
    before = fingerprint(repo), fingerprint(linked)
    keeper = Keeper(repo=linked / "src", home=home, clock=SystemClock(), env=ENV)
    main = Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)
    assert keeper.lock_path == main.lock_path
    assert await keeper.is_dirty() == ("dirty.txt",)
    lease = await keeper.lease(write=True, task="t", run_id="r")
    assert (Path(lease.path) / "a.py").read_text() == "A = 5\n"
    write(Path(lease.path), {"a.py": "A = 6\n"})
    await keeper.commit(lease, "x")
    assert (await keeper.release(lease)).startswith("removed")
    assert (fingerprint(repo), fingerprint(linked)) == before


async def test_a_lock_that_another_process_holds_is_a_failure(keeper: Keeper, repo: Path) -> None:
    keeper.lock_timeout_s = 0.1
    with repository_lock(keeper.lock_path), pytest.raises(OpenDevError, match="held the repository lock"):
        await keeper.lease(write=True, task="t", run_id="r")
    assert (worktrees(repo), keeper.book.records()) == ([], ())


async def test_a_cancelled_lease_leaves_nothing(keeper: Keeper, repo: Path) -> None:
    for delay in (0.0, 0.01, 0.03):
        task = asyncio.ensure_future(keeper.lease(write=True, task="t", run_id="r"))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (worktrees(repo), keeper.book.records()) == ([], ())
    assert git(repo, "for-each-ref", "refs/heads/opendev") == ""


async def test_a_lease_that_cannot_be_made_leaves_nothing(keeper: Keeper, repo: Path) -> None:
    admin = repo / ".git" / "worktrees"
    admin.write_text("in the way")
    with pytest.raises(OpenDevError) as caught:
        await keeper.lease(write=True, task="t", run_id="r")
    assert caught.value.info.kind == ErrorKind.GIT
    assert keeper.book.records() == ()
    assert git(repo, "for-each-ref", "refs/heads/opendev") == ""


async def test_a_lease_of_another_folder_is_refused(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    forged = lease.model_copy(update={"path": str(repo)})
    for call in (keeper.changed(forged), keeper.commit(forged, "x"), keeper.quarantine(forged, "x")):
        with pytest.raises(OpenDevError, match="is not one of the worktrees"):
            await call
    assert (repo / "a.py").exists()


async def test_branches_are_deleted_only_when_their_work_is_elsewhere(keeper: Keeper, repo: Path) -> None:
    lease = await keeper.lease(write=True, task="t", run_id="r")
    assert "checked out" in await keeper.drop_branch(lease.branch)
    write(Path(lease.path), {"a.py": "A = 2\n"})
    commit = await keeper.commit(lease, "x")
    await keeper.release(lease)
    assert "not merged" in await keeper.drop_branch(lease.branch, into="main")
    assert "not one of OpenDev's" in await keeper.drop_branch("main")
    git(repo, "merge", "-q", "--ff-only", commit)
    config = (repo / ".git" / "config").stat()
    assert "deleted" in await keeper.drop_branch(lease.branch)
    assert (repo / ".git" / "config").stat() == config
    assert git(repo, "branch", "--list", "opendev/*") == ""
    assert "does not exist" in await keeper.drop_branch(lease.branch)


def sub_repo(repo: Path, tmp_path: Path) -> Path:
    library = make_repo(tmp_path / "library", {"lib.py": "L = 1\n"})
    git(repo, "submodule", "add", "-q", str(library), "lib")
    git(repo, "commit", "-q", "-m", "add lib")
    return library


@pytest.mark.slow
async def test_submodule_commits_keep_the_folder_until_a_remote_has_them(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    library = sub_repo(repo, tmp_path)
    keeper = Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)
    assert any("submodules" in text for text in keeper.warnings)
    clean = await keeper.lease(write=True, task="t", run_id="r")
    assert (await keeper.release(clean)).startswith("removed")
    lease = await keeper.lease(write=True, task="t", run_id="r")
    folder = Path(lease.path)
    git(folder, "submodule", "update", "-q", "--init")
    git(folder / "lib", "checkout", "-q", "-b", "work")
    commit_files(folder / "lib", {"lib.py": "L = 2\n"})
    await keeper.commit(lease, "bump lib")
    assert "commits in submodule lib that none of its remotes has" in await keeper.release(lease)
    ref = await keeper.quarantine(lease, "x")
    assert exists(folder)
    assert git(repo, "rev-parse", ref) == git(repo, "rev-parse", lease.branch)
    git(folder / "lib", "push", "-q", "origin", "work")
    assert (await keeper.release(lease)).startswith("removed")
    assert git(library, "log", "-1", "--format=%s", "work") == "change"


async def test_a_sparse_cone_is_inherited_and_new_files_outside_it_are_not_lost(
    repo: Path, home: Path
) -> None:
    commit_files(repo, {"big/one.py": "1\n", "big/two.py": "2\n"})
    git(repo, "sparse-checkout", "set", "src")
    before = fingerprint(repo)
    keeper = Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)
    assert any("sparse" in text for text in keeper.warnings)
    lease = await keeper.lease(write=True, task="t", run_id="r")
    folder = Path(lease.path)
    assert not (folder / "big").exists()
    assert await keeper.changed(lease) == ()
    write(folder, {"big/three.py": "3\n", "big/one.py": "changed\n"})
    assert await keeper.changed(lease) == ("big/one.py", "big/three.py")
    commit = await keeper.commit(lease, "x")
    assert git(repo, "show", f"{commit}:big/two.py") == "2"
    assert fingerprint(repo) == before


@pytest.mark.parametrize("kind", ["none", "bare", "empty", "inside", "opendev-branch", "base"])
def test_a_repository_that_cannot_be_worked_on_is_refused_with_a_sentence(tmp_path: Path, kind: str) -> None:
    place, home, base = tmp_path / "place", tmp_path / "home", ""
    match kind:
        case "none":
            place.mkdir()
            words = "not inside the working tree"
        case "bare":
            place.mkdir()
            git(place, "init", "-q", "--bare")
            words = "bare"
        case "empty":
            place.mkdir()
            git(place, "init", "-q")
            words = "has no commit yet"
        case "inside":
            home, words = make_repo(place) / "state", "lies inside the repository"
        case "opendev-branch":
            git(make_repo(place), "branch", "opendev")
            words = "branch `opendev`"
        case _:
            make_repo(place)
            base, words = "nowhere", "`nowhere` names no commit"
    with pytest.raises(OpenDevError, match=words):
        Keeper(repo=place, home=home, clock=SystemClock(), base=base, env=ENV)


def test_a_home_inside_the_repository_is_fine_when_it_is_ignored(repo: Path) -> None:
    Keeper(repo=repo, home=repo / "build" / "state", clock=SystemClock(), env=ENV)


def test_a_shallow_clone_is_warned_of(repo: Path, home: Path, tmp_path: Path) -> None:
    commit_files(repo, {"a.py": "A = 2\n"})
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    keeper = Keeper(repo=tmp_path / "shallow", home=home, clock=SystemClock(), env=ENV)
    assert any("shallow" in text for text in keeper.warnings)


async def test_a_record_that_cannot_be_written_is_told_and_nothing_is_made(
    keeper: Keeper, repo: Path
) -> None:
    keeper.book.folder.rmdir()
    keeper.book.folder.write_text("in the way")
    with pytest.raises(OpenDevError, match="could not be written"):
        await keeper.lease(write=True, task="t", run_id="r")
    assert worktrees(repo) == []


def test_lease_records_survive_a_torn_file(tmp_path: Path) -> None:
    book = LeaseBook(tmp_path / "book")
    (tmp_path / "book" / "torn.json").write_text('{"schema": 1, "lea')
    assert book.records() == ()
    assert [path.name for path in book.broken()] == ["torn.json"]
    assert book.get("torn") is None
