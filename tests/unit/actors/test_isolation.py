"""A sub-agent's git commands move its own branch only; the user's refs stay what they are (ACT-07)."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from opendev.actors.isolation import Isolation, Place
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentReport, AgentStatus, AgentTask
from opendev.core.clock import SystemClock
from opendev.core.errors import OpenDevError
from opendev.worktrees.keeper import Keeper
from support.repos import ENV, git, make_repo

COMMANDS = (
    "branch mine",
    "tag v9",
    "stash",
    "checkout -b other",
    "branch -f main HEAD",
    "update-ref -d refs/heads/main",
    "commit --allow-empty -m x",
)


@pytest.mark.slow
@pytest.mark.req("ACT-07")
@pytest.mark.parametrize("place", ["own", "copy"])
async def test_the_refs_of_the_user_are_behind_a_fence(tmp_path: Path, place: Place) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".git/hooks").mkdir(exist_ok=True)
    (repo / ".git/hooks/post-checkout").write_text("#!/bin/sh\ntouch ../MARK\n")
    (repo / ".git/hooks/post-checkout").chmod(0o755)
    before = git(repo, "for-each-ref")
    done: dict[str, bool] = {}

    def tried(task: AgentTask) -> None:
        for command in COMMANDS:
            (Path(task.root) / "a.py").write_text(command)
            env = {**ENV, **task.env}
            ended = subprocess.run(
                ["git", *command.split()], cwd=task.root, env=env, capture_output=True, check=False
            )
            done[command] = ended.returncode == 0

    async def work(task: AgentTask) -> AgentReport:
        await asyncio.to_thread(tried, task)
        return AgentReport(id=task.id, agent="Coder", status=AgentStatus.DONE, text="done")

    keeper = Keeper(repo=repo, home=tmp_path / "home", clock=SystemClock(), env=ENV)
    isolation = Isolation(keeper, lambda _event: None, tmp_path / "run/hooks")
    task = AgentTask(
        id="a1", run_id="r1", spec=builtin_specs()["Coder"], prompt="x", root=str(repo), env={"KEPT": "1"}
    )
    await isolation.run(task, place, work)
    assert done == {command: command.startswith("commit") for command in COMMANDS}
    after = [line for line in git(repo, "for-each-ref").splitlines() if "/opendev/" not in line]
    assert after == before.splitlines()
    assert not (tmp_path / "MARK").exists()
    assert not (repo.parent / "MARK").exists()


async def test_the_repository_is_opened_once_and_only_for_agents_that_need_it(tmp_path: Path) -> None:
    opened: list[None] = []

    def no_repository() -> None:
        opened.append(None)

    isolation = Isolation(no_repository, lambda _event: None, tmp_path / "hooks")
    specs = builtin_specs()
    reader = specs["Code-Explorer"].model_copy(update={"tools": ("read_file",)})
    assert await isolation.place(reader, reader) == "shared"
    assert not opened
    for _ in range(2):
        with pytest.raises(OpenDevError, match="no git repository"):
            await isolation.place(specs["Coder"], specs["Coder"])
    assert len(opened) == 1
