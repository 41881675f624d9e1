"""The compactor as an actor: it may die, and what arrives while it works is kept (ACT-13, C13), in both runtimes."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, cast

import pytest
from opendev.actors.hub import Hub
from opendev.actors.local_runtime import LocalRuntime
from opendev.core.agent import AgentStatus
from opendev.core.ports import Ref, Runtime
from support.compacting import SLOW
from support.runtimes import hub_on, script, task_of
from support.waiting import until

pytestmark = pytest.mark.soak

MODEL = "support.compacting:SlowModel"
WORKER = "support.compacting:RosterWorker"


def compactor_of(hub: Hub) -> Ref | None:
    sides = cast(Any, hub)._sides
    return (sides._ray or sides._here()).compactor


async def end(runtime: Runtime, ref: Ref) -> None:
    if isinstance(runtime, LocalRuntime):
        await runtime.crash(ref)
    else:
        os.kill((await ref.ask("ping"))["pid"], signal.SIGKILL)


@pytest.mark.req("ACT-13")
async def test_a_compactor_that_dies_is_an_error_to_the_agent_and_is_replaced(
    runtime: Runtime, tmp_path: Path
) -> None:
    async with hub_on(runtime, tmp_path, model_service=MODEL) as hub:
        task = task_of("r", tmp_path, ["compact", SLOW], ["compact", "we fixed the parser"])
        run = asyncio.create_task(hub.run_agent(task))
        await until(lambda: compactor_of(hub) is not None)
        await asyncio.sleep(0.3)
        dead = compactor_of(hub)
        assert dead is not None
        await end(runtime, dead)
        report = await run
        assert report.status is AgentStatus.DONE
        first, second = report.text.split("\n", 1)
        assert first.startswith("kind=")  # an ErrorInfo: the agent prunes by rule
        assert second.startswith("heard: ")
        assert "we fixed the parser" in second
        assert compactor_of(hub) is not dead


@pytest.mark.req("CMP-13")
async def test_results_that_arrive_during_a_compaction_are_kept_and_the_roster_is_live(
    runtime: Runtime, tmp_path: Path
) -> None:
    quick = {"agent": "Leaf", "prompt": script(["say", "found it"])}
    slow = {"agent": "Leaf", "prompt": script(["sleep", 60])}
    async with hub_on(runtime, tmp_path, model_service=MODEL, worker=WORKER, max_concurrent=4) as hub:
        task = task_of(
            "r",
            tmp_path,
            ["roster"],
            ["background", quick],
            ["background", slow],
            ["compact", "a long story"],
            ["sleep", 1.0],
            ["roster"],
            ["collect", 0],
        )
        report = await hub.run_agent(task)
        lines = report.text.splitlines()
        assert lines[0] == ""
        assert "- child0 (Leaf): ended as done. found it" in lines
        assert "- child1 (Leaf): still works on it; get its result by get_subagent_output." in lines
        assert lines[-1] == "found it"
        kept = await asyncio.to_thread((tmp_path / "run" / "reports.jsonl").read_text)
        assert "found it" in kept
