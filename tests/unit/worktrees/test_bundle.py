"""Work on a node without this disk: out as a bundle, back as a thin one, under a ref of its own."""

from pathlib import Path

import pytest
from opendev.core.clock import SystemClock
from opendev.core.errors import OpenDevError
from opendev.worktrees.bundle import NodeCache, accept, pack
from opendev.worktrees.keeper import Keeper
from support.repos import ENV, commit_files, exists, fingerprint, git, locks, tree_files, write


async def test_dirty_state_travels_out_and_commits_travel_back(
    keeper: Keeper, repo: Path, tmp_path: Path
) -> None:
    for n in range(5):
        commit_files(repo, {f"big{n}.txt": str(n) * 2000})
    write(repo, {"a.py": "A = dirty\n", "new.txt": "x"})
    tip = await keeper.snapshot()
    before, refs = fingerprint(repo), git(repo, "for-each-ref")
    parcel = pack(keeper.repo.admin, keeper.repo.key, tip)
    assert git(repo, "for-each-ref") == refs
    node = NodeCache(tmp_path / "node", ENV)
    assert not node.has(parcel.key, tip)
    folder = node.worktree(parcel, "agent 1")
    assert (folder / "a.py").read_text() == "A = dirty\n"
    assert (folder / "new.txt").read_text() == "x"
    commit = commit_files(folder, {"a.py": "A = 2\n", "made.py": "M = 1\n"})
    back = node.send_back(parcel.key, commit, tip)
    assert len(back.data) < 1500 < len(parcel.data)
    ref = accept(keeper.repo, "agent 1", back)
    assert ref == "refs/opendev/agents/agent-1"
    node.drop(parcel.key, folder)
    assert not exists(folder)
    with pytest.raises(OpenDevError, match="no worktree"):
        node.drop(parcel.key, repo)
    assert git(repo, "rev-parse", ref) == commit
    assert tree_files(repo, ref)["made.py"] == "M = 1"
    assert (fingerprint(repo), locks(repo)) == (before, [])


async def test_a_node_that_knows_the_base_is_sent_the_rest_only(
    keeper: Keeper, repo: Path, tmp_path: Path
) -> None:
    node = NodeCache(tmp_path / "node", ENV)
    node.receive(pack(keeper.repo.admin, keeper.repo.key, keeper.base))
    later = commit_files(repo, {"a.py": "A = 2\n"})
    assert node.has(keeper.repo.key, keeper.base)
    thin = pack(keeper.repo.admin, keeper.repo.key, later, keeper.base)
    folder = node.worktree(thin, "x")
    assert (folder / "a.py").read_text() == "A = 2\n"
    assert git(folder, "rev-parse", "HEAD") == later
    same = pack(keeper.repo.admin, keeper.repo.key, later, later)
    assert same.data == b""
    assert git(node.worktree(same, "y"), "rev-parse", "HEAD") == later
    assert accept(keeper.repo, "x", node.send_back(keeper.repo.key, later, later)) == "refs/opendev/agents/x"


async def test_a_bundle_that_is_not_what_it_says_is_refused(
    keeper: Keeper, repo: Path, tmp_path: Path
) -> None:
    node = NodeCache(tmp_path / "node", ENV)
    folder = node.worktree(pack(keeper.repo.admin, keeper.repo.key, keeper.base), "x")
    parcel = node.send_back(keeper.repo.key, commit_files(folder, {"a.py": "A = 2\n" * 99}), keeper.base)
    before = git(repo, "for-each-ref")
    lies = (
        parcel.model_copy(update={"tip": "1" * 40}),
        parcel.model_copy(update={"data": b"garbage"}),
        parcel.model_copy(update={"data": parcel.data[: len(parcel.data) // 2]}),
        parcel.model_copy(update={"key": "other-123"}),
    )
    for lie in lies:
        with pytest.raises(OpenDevError):
            accept(keeper.repo, "x", lie)
    assert git(repo, "for-each-ref") == before


async def test_hooks_on_the_node_do_not_run(keeper: Keeper, tmp_path: Path) -> None:
    node = NodeCache(tmp_path / "node", ENV)
    bare = node.receive(pack(keeper.repo.admin, keeper.repo.key, keeper.base))
    for name in ("post-checkout", "reference-transaction"):
        hook = bare.folder / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/MARK\n")
        hook.chmod(0o755)
    node.worktree(pack(keeper.repo.admin, keeper.repo.key, keeper.base), "x")
    assert not (tmp_path / "MARK").exists()


def test_a_shallow_clone_cannot_be_sent(repo: Path, tmp_path: Path) -> None:
    commit_files(repo, {"a.py": "A = 2\n"})
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    keeper = Keeper(repo=tmp_path / "shallow", home=tmp_path / "home", clock=SystemClock(), env=ENV)
    with pytest.raises(OpenDevError, match="unshallow"):
        pack(keeper.repo.admin, keeper.repo.key, keeper.base)
