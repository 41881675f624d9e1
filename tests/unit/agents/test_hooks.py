"""Hooks of an agent: before a compaction, and around the calls of its loop (CMP-15, HOK-01)."""

import json
from pathlib import Path

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.chat import ModelReply, ModelRequest, ToolMessage
from opendev.core.events import Compacted
from opendev.core.hooks import Hooks, HookSet
from opendev.tools.hooked import AgentHooks
from opendev.tools.hooks import HookEngine
from support.agents import Bench
from support.hooking import hooks
from support.scripted_model import call, calls, says


def hooked(bench: Bench, own: Hooks) -> HookEngine:
    engine = HookEngine(HookSet(own=own), session="r1", env={"PATH": "/usr/bin:/bin"}, emit=bench.log)
    bench.hooks = AgentHooks(engine, bench.root)
    return engine


@pytest.mark.req("CMP-15", "HOK-01")
@pytest.mark.parametrize("trigger", ["manual", "auto"])
async def test_a_hook_runs_before_a_compaction(tmp_path: Path, trigger: str) -> None:
    bench = Bench(tmp_path)
    engine = hooked(bench, hooks(("PreCompact", f"^{trigger}$", "cat > told.json")))
    if trigger == "auto":
        bench.settings = bench.settings.model_copy(update={"fallback_window": 20_000, "max_tokens": 100})

    def fill(_request: ModelRequest) -> ModelReply:
        if trigger == "manual":
            assert bench.agent is not None
            bench.agent.inject("/compact")
        return calls(call("run_command", command="ls"), tokens=100 if trigger == "manual" else 19_990)

    bench.model.add(fill, says("Done."))
    assert (await bench.run()).status is AgentStatus.DONE
    await engine.close()
    assert [event.stage for event in bench.events if isinstance(event, Compacted)] == ["summarise"]
    told = json.loads((bench.root / "told.json").read_text())
    expected = {
        "session_id": "r1",
        "cwd": str(bench.root),
        "hook_event_name": "PreCompact",
        "trigger": trigger,
    }
    assert told == expected


@pytest.mark.req("HOK-04")
async def test_the_agent_reads_why_and_takes_another_way(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        calls(call("run_command", "c1", command="npm test"), call("run_command", "c2", command="ls")),
        says("I used another way."),
    )
    hooked(bench, hooks(("PreToolUse", "grep -q npm && { echo 'use pnpm' >&2; exit 2; } || exit 0")))
    report = await bench.run()
    refused, fine = (m for m in bench.model.requests[1].messages if isinstance(m, ToolMessage))
    assert "use pnpm" in refused.content
    assert (refused.is_error, fine.is_error) == (True, False)
    assert bench.shell.commands == ["ls"]
    assert report.tool_calls == 2
