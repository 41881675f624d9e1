"""The real worker, in process: a whole agent through factory, uplink and hub (ACT-02, ACT-03)."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.local_runtime import DirectRef, LocalRuntime
from opendev.actors.worker import Worker
from opendev.core.agent import AgentStatus
from opendev.core.chat import Role
from opendev.core.events import ToolFinished
from opendev.core.ops import Interrupt
from opendev.core.ticket import Run, Write
from opendev.tools.shell.reap import process_start
from support.runtimes import MAIN, events_of, hub_on, task_of
from support.waiting import number_in

REAL: dict[str, Any] = {
    "run_id": "real",
    "worker": "opendev.actors.worker:Worker",
    "model_service": "opendev.actors.model_service:ModelService",
}
RECIPES: dict[str, Any] = {"models": {Role.ACTION: "offline/recipes"}, "approve": "auto", "spec": MAIN}


@pytest.mark.slow
async def test_a_recipe_runs_through_the_whole_house(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    recipe = (Write(path="a.txt", content="hi\n"), Run(command="tr a-z A-Z < a.txt > b.txt"))
    async with hub_on(LocalRuntime(), tmp_path, **REAL) as hub:
        report = await hub.run_agent(task_of("real", root, recipe=recipe, **RECIPES))
        assert (report.status, report.pid) == (AgentStatus.DONE, os.getpid())
        assert (root / "b.txt").read_text() == "HI\n"
        assert hub.total[1] == report.model_calls
    tools = [e.tool for e in await events_of(hub) if isinstance(e, ToolFinished)]
    assert tools == ["write_file", "run_command", "task_complete"]


@pytest.mark.slow
@pytest.mark.req("ACT-09")
async def test_an_interrupt_ends_a_running_command(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    recipe = (Run(command="sleep 300 & echo $! > pid; wait"),)
    async with hub_on(LocalRuntime(), tmp_path, **REAL) as hub:
        run = asyncio.create_task(hub.run_agent(task_of("real", root, recipe=recipe, **RECIPES)))
        pid = await number_in(root / "pid")
        await hub.submit(Interrupt())
        assert (await asyncio.wait_for(run, 5)).status is AgentStatus.CANCELLED
    assert process_start(pid) is None


async def test_cancel_and_messages_for_strangers_are_refused(tmp_path: Path) -> None:
    worker = Worker({"run_id": "r", "home": str(tmp_path)}, DirectRef("mail", object()))
    assert await worker.ping() == {"pid": os.getpid(), "agents": []}
    assert await worker.cancel("nobody", "why") is False
    assert await worker.deliver("nobody", "text") is False
