"""Sub-agents in a real repository, in process and under Ray: whoever can run commands works in a folder of its own (ACT-07, C-36)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.hub import Hub
from opendev.actors.local_runtime import LocalRuntime
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import LeaseEnded, LeaseGranted
from opendev.core.ports import Runtime
from opendev.worktrees.keeper import Keeper
from support.repos import ENV, commit_files, exists, fingerprint, git, make_repo, worktrees, write
from support.runtimes import events_of, hub_on, script, task_of
from support.waiting import until

REVIEW = "cat a.py new.txt; git status --short; git log --format=%s; ls -d src; pwd"
RUIN = "rm -rf a.py b.py src; echo ruined > new.txt; git commit -qam ruined; git reset -q --hard HEAD~2"


@asynccontextmanager
async def hub_at(
    runtime: Runtime, repo: Path, tmp: Path, **settings: Any
) -> AsyncGenerator[tuple[Hub, Keeper]]:
    keeper = Keeper(repo=repo, home=tmp / "home", clock=SystemClock(), env=ENV)
    async with hub_on(runtime, tmp, desk=keeper, **settings) as hub:
        yield hub, keeper


def spawn(agent: str, *steps: list[Any]) -> list[Any]:
    return ["spawn", {"agent": agent, "prompt": script(*steps)}]


@pytest.mark.req("ACT-07")
async def test_a_reviewer_sees_uncommitted_changes_and_can_break_nothing(
    runtime: Runtime, tmp_path: Path
) -> None:
    repo = make_repo(tmp_path / "repo")
    write(repo, {"a.py": "A = 'changed'\n", "new.txt": "untracked\n", "b.py": None})
    before = fingerprint(repo)
    async with hub_at(runtime, repo, tmp_path) as (hub, keeper):
        report = await hub.run_agent(
            task_of("r", repo, spawn("Reviewer", ["shell", REVIEW], ["shell", RUIN]))
        )
        assert worktrees(repo) == []
        assert keeper.book.records() == ()
    said = report.text.splitlines()
    assert said[0] == "done:A = 'changed'", said
    assert said[1:5] == ["untracked", "Uncommitted state of the working folder", "first", "src"]
    assert not Path(said[5]).is_relative_to(repo)
    assert not exists(said[5])
    assert fingerprint(repo) == before
    assert (repo / "new.txt").read_text() == "untracked\n"
    assert git(repo, "branch", "--show-current") == "main"
    kinds = [e.kind for e in await events_of(hub) if isinstance(e, LeaseGranted | LeaseEnded)]
    assert kinds == ["lease_granted", "lease_ended"]


async def test_the_copy_is_dropped_also_when_its_agent_is_cancelled(tmp_path: Path) -> None:
    runtime = LocalRuntime()
    repo = make_repo(tmp_path / "repo")
    async with hub_at(runtime, repo, tmp_path, run_id="dropped") as (hub, keeper):
        task = task_of("dropped", repo, spawn("Reviewer", ["shell", "echo x > made; sleep 300"]))
        run = asyncio.create_task(hub.run_agent(task))
        await until(lambda: any(exists(Path(path) / "made") for path in worktrees(repo)))
        await hub.cancel(task.id, "enough")
        await run
        await until(lambda: worktrees(repo) == [])
        assert keeper.book.records() == ()
    assert git(repo, "for-each-ref", "refs/opendev") == ""


@pytest.mark.req("ACT-07")
async def test_a_writer_starts_from_what_its_parent_sees_in_the_same_part_of_the_project(
    tmp_path: Path,
) -> None:
    runtime = LocalRuntime()
    repo = make_repo(tmp_path / "repo")
    write(repo, {"src/c.py": "C = 'changed'\n"})
    async with hub_at(runtime, repo, tmp_path) as (hub, _):
        step = ["shell", "cat c.py; echo 'D = 1' > d.py"]
        report = await hub.run_agent(task_of("r", repo / "src", spawn("Writer", step)))
    status, said, branch = report.text.split(":")
    assert (status, said.strip()) == ("done", "C = 'changed'")
    assert git(repo, "diff", "--name-only", f"{branch}~1", branch) == "src/d.py"
    assert git(repo, "show", f"{branch}:src/c.py") == "C = 'changed'"
    assert git(repo, "status", "--short") == "M src/c.py"


async def test_without_a_copy_nothing_is_run(tmp_path: Path) -> None:
    runtime = LocalRuntime()
    async with hub_on(runtime, tmp_path) as hub:
        step = ["shell", "touch ran"]
        report = await hub.run_agent(task_of("r", tmp_path, spawn("Reviewer", step), approve="auto"))
        assert "Reviewer may run commands, so it needs a folder of its own" in report.text
        assert "git init" in report.text
        assert hub.counts.spawned == 1
    repo = make_repo(tmp_path / "repo")
    commit_files(repo, {"a.py": "A = 'mine'\n"})
    git(repo, "checkout", "-q", "-b", "other", "HEAD~1")
    commit_files(repo, {"a.py": "A = 'theirs'\n"})
    with pytest.raises(AssertionError):
        git(repo, "merge", "main")  # a conflict: what is in the folder cannot be told whole
    async with hub_at(runtime, repo, tmp_path / "b") as (hub, _):
        report = await hub.run_agent(task_of("r", repo, spawn("Reviewer", ["shell", "touch ran"])))
        assert report.text.startswith("infra:")
        error = hub.uncollected()[0].error
        assert error is not None
        assert "unresolved conflicts" in error.message
        assert hub.counts.spawned == 1
    assert await asyncio.to_thread(lambda: list(tmp_path.rglob("ran"))) == []


async def test_a_folder_from_elsewhere_is_no_base(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    keeper = Keeper(repo=repo, home=tmp_path / "home", clock=SystemClock(), env=ENV)
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 'leased'\n"})
    commit = await keeper.snapshot(f"{lease.path}/src")
    assert git(repo, "show", f"{commit}:a.py") == "A = 'leased'"
    assert git(repo, "rev-parse", f"{commit}^") == lease.base
    with pytest.raises(OpenDevError, match="was not leased") as error:
        await keeper.snapshot(str(tmp_path))
    assert error.value.info.kind is ErrorKind.GIT
