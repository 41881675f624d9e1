"""The user's uncommitted state: noticed, or made a commit, while files, index and HEAD stay byte-identical."""

import os
from pathlib import Path

import pytest
from opendev.core.errors import OpenDevError
from opendev.worktrees import snapshot as room
from opendev.worktrees.keeper import Keeper
from support.fixed_clock import FixedClock
from support.repos import commit_files, fingerprint, git, locks, make_repo, tree_files, write


async def test_a_clean_tree_is_its_own_snapshot(keeper: Keeper, repo: Path) -> None:
    write(repo, {"x.log": "ignored"})
    assert await keeper.is_dirty() == ()
    assert await keeper.snapshot() == keeper.base
    assert git(repo, "for-each-ref", "refs/opendev") == ""


@pytest.mark.req("SWM-03")
async def test_staged_unstaged_untracked_and_deleted_are_covered(keeper: Keeper, repo: Path) -> None:
    write(
        repo,
        {"a.py": "A = staged\n", "b.py": "B = 2\n", "new/n.txt": "n", "src/c.py": None, "x.log": "ignored"},
    )
    git(repo, "add", "a.py")
    write(repo, {"a.py": "A = unstaged\n"})
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("/etc/passwd")
    before = fingerprint(repo)
    assert await keeper.is_dirty() == ("a.py", "b.py", "src/c.py", "link", "new/n.txt", "run.sh")
    commit = await keeper.snapshot()
    assert tree_files(repo, commit) == {
        "a.py": "A = unstaged",
        "b.py": "B = 2",
        "new/n.txt": "n",
        "run.sh": "#!/bin/sh",
        "link": "/etc/passwd",
        ".gitignore": "*.log\nbuild/",
    }
    assert git(repo, "ls-tree", commit, "run.sh", "link").split()[::4] == ["120000", "100755"]
    assert git(repo, "rev-parse", f"{commit}^") == keeper.base
    assert git(repo, "for-each-ref", "--format=%(objectname)", "refs/opendev/snapshot") == commit
    assert (fingerprint(repo), locks(repo)) == (before, [])
    lease = await keeper.lease(write=True, task="t", run_id="r", base=commit)
    assert (Path(lease.path) / "new/n.txt").read_text() == "n"
    assert await keeper.changed(lease) == ()


async def test_an_edit_of_the_same_size_in_the_same_second_is_seen(keeper: Keeper, repo: Path) -> None:
    moment = (1_700_000_000, 1_700_000_000)
    git(repo, "config", "core.trustctime", "false")
    os.utime(repo / "a.py", moment)
    git(repo, "update-index", "--refresh")
    write(repo, {"a.py": "B = 2\n"})
    for path in ("a.py", ".git/index"):
        os.utime(repo / path, moment)
    assert tree_files(repo, await keeper.snapshot())["a.py"] == "B = 2"


async def test_odd_file_names_are_carried(keeper: Keeper, repo: Path) -> None:
    for name in (b"sp ace", b"new\nline", b"\xff\xfe", b":(top)magic", "ü".encode()):
        (repo / os.fsdecode(name)).write_bytes(b"x")
    commit = await keeper.snapshot()
    listed = git(repo, "ls-tree", "-z", "--name-only", commit).split("\0")
    assert {os.fsdecode(b"\xff\xfe"), "sp ace", "new\nline", ":(top)magic", "ü"} <= set(listed)
    assert "\\xff\\xfe" in await keeper.is_dirty()


async def test_unresolved_conflicts_are_refused(keeper: Keeper, repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "other")
    commit_files(repo, {"a.py": "A = 2\n"})
    git(repo, "checkout", "-q", "main")
    commit_files(repo, {"a.py": "A = 3\n"})
    with pytest.raises(AssertionError):
        git(repo, "merge", "-q", "other")
    before = fingerprint(repo)
    with pytest.raises(OpenDevError, match=r"unresolved conflicts \(a\.py\)"):
        await keeper.snapshot()
    assert fingerprint(repo) == before


@pytest.mark.parametrize("empty", [True, False])
async def test_a_nested_repository_is_refused_and_never_dropped(
    keeper: Keeper, repo: Path, empty: bool
) -> None:
    if empty:
        git(repo, "init", "-q", "inner")
    else:
        make_repo(repo / "inner")
    with pytest.raises(OpenDevError, match="nested repositories"):
        await keeper.snapshot()


async def test_a_file_that_cannot_be_read_makes_no_half_snapshot(keeper: Keeper, repo: Path) -> None:
    write(repo, {"a.py": "A = 2\n"})
    os.mkfifo(repo / "pipe")  # git passes over it
    (repo / "b.py").unlink()
    (repo / "b.py").symlink_to("a" * 200)
    commit = await keeper.snapshot()
    assert git(repo, "show", f"{commit}:b.py") == "a" * 200
    assert "pipe" not in tree_files(repo, commit)


async def test_a_heap_of_untracked_data_is_refused(
    keeper: Keeper, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_UNTRACKED_BYTES", 1000)
    write(repo, {"data.bin": b"x" * 2000})
    with pytest.raises(OpenDevError, match="gitignore"):
        await keeper.snapshot()


async def test_only_the_newest_snapshots_are_held_by_a_ref(
    keeper: Keeper, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "KEPT", 2)
    made: list[str] = []
    for number in range(4):
        keeper.clock = FixedClock(1_700_000_000.0 + number)
        write(repo, {"a.py": f"A = {number + 10}\n"})
        made.append(await keeper.snapshot())
    held = git(repo, "for-each-ref", "--format=%(objectname)", "refs/opendev/snapshot").split()
    assert sorted(held) == sorted(made[-2:])
