"""The hub on real Ray: processes and faults (ACT-02, ACT-04, ACT-06)."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.ray_runtime import RayRef, RayRuntime
from opendev.core.agent import AgentStatus
from opendev.core.chat import Role
from opendev.core.errors import ErrorKind
from opendev.core.ticket import Run, Write
from support.runtimes import MAIN, SPECS, SharedRuntime, hub_on, task_of
from support.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.mark.req("ACT-06")
async def test_four_agents_work_in_four_processes_and_one_killed_leaves_three(
    ray_session: RayRuntime, tmp_path: Path
) -> None:
    async with hub_on(SharedRuntime(ray_session), tmp_path) as hub:
        tasks = [
            task_of("r", tmp_path, ["await", str(tmp_path / "go")], ["say", str(n)], spec=SPECS["Writer"])
            for n in range(4)
        ]
        runs = [asyncio.create_task(hub.run_agent(t)) for t in tasks]
        await until(lambda: len(hub.counts.pids) == 4)
        victim = hub.host_of(tasks[1].id)
        assert isinstance(victim, RayRef)
        os.kill(victim.pid, signal.SIGKILL)
        killed = time.monotonic()
        lost = await runs[1]
        assert time.monotonic() - killed < 2.0
        (tmp_path / "go").touch()
        reports = await asyncio.gather(*runs)
    assert (lost.status, lost.error and lost.error.kind) == (AgentStatus.INFRA, ErrorKind.INFRA)
    assert [r.text for r in reports if r is not lost] == ["awaited\n0", "awaited\n2", "awaited\n3"]
    pids = {r.pid for r in reports}
    assert len(pids) == 4
    assert os.getpid() not in pids


@pytest.mark.req("ACT-04")
async def test_a_lost_main_actor_ends_its_agents_as_infra(ray_session: RayRuntime, tmp_path: Path) -> None:
    shared = SharedRuntime(ray_session)
    async with hub_on(shared, tmp_path) as hub:
        run = asyncio.create_task(hub.run_agent(task_of("r", tmp_path, ["sleep", 60])))
        await until(lambda: bool(hub.counts.pids))
        mailbox = next(ref for ref in shared.refs if ref.name.startswith("main"))
        assert isinstance(mailbox, RayRef)
        os.kill(mailbox.pid, signal.SIGKILL)
        assert (await asyncio.wait_for(run, 10)).status is AgentStatus.INFRA
        again = await hub.run_agent(task_of("r", tmp_path, ["model", "still here"]))
        assert again.text == "heard: still here"  # a new main actor, the same model service


@pytest.mark.req("ACT-02")
async def test_the_real_worker_runs_a_recipe_in_its_process(ray_session: RayRuntime, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    real: dict[str, Any] = {
        "worker": "opendev.actors.worker:Worker",
        "model_service": "opendev.actors.model_service:ModelService",
        "run_id": "real",
    }
    recipe = (
        Write(path="a.txt", content="hi\n"),
        Run(command="tr a-z A-Z < a.txt > b.txt; echo $OPENDEV_AGENT"),
    )
    async with hub_on(SharedRuntime(ray_session), tmp_path, **real) as hub:
        task = task_of(
            "real", root, spec=MAIN, recipe=recipe, models={Role.ACTION: "offline/recipes"}, approve="auto"
        )
        report = await hub.run_agent(task)
        assert report.status is AgentStatus.DONE, report
        assert (root / "b.txt").read_text() == "HI\n"
        assert report.pid != os.getpid()
        assert hub.total[1] == report.model_calls == 3
    assert report.transcript.startswith(str(tmp_path))
