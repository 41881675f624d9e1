"""Hooks of agents in processes of their own and in this one: they reach every worker, and a refusal holds there (HOK-01, W07)."""

import json
from pathlib import Path

import pytest
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentStatus
from opendev.core.hooks import HookSet
from opendev.core.ports import Runtime
from support.hooking import hooks, python
from support.model_server import ModelServer, call, text
from support.runtimes import hub_on, task_of

pytestmark = pytest.mark.soak
GUARD = python(
    "if letter['tool_input'].get('file_path') == 'b.txt': sys.exit(print('not b', file=sys.stderr) or 2)\n"
    "print(json.dumps({'additionalContext': 'seen by a hook'}))"
)


@pytest.mark.req("HOK-01", "HOK-04", "HOK-06", "SUB-16")
async def test_a_sub_agent_is_under_the_same_hooks(tmp_path: Path, runtime: Runtime) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a.txt", "b.txt"):
        (root / name).write_text(f"content of {name}\n")
    log = f"read -r letter; printf '%s\\n' \"$letter\" >> {tmp_path}/log"
    own = HookSet(own=hooks(("PreToolUse", "^read_file$", GUARD), ("PostToolUse", "^read_file$", log)))
    play = {
        "the main task": [
            call("spawn_subagent", {"agent": "Code-Explorer", "prompt": "explore it"}),
            text("All done."),
        ],
        "explore it": [
            call("read_file", {"file_path": "b.txt"}),
            call("read_file", {"file_path": "a.txt"}),
            text("Explored."),
        ],
    }
    with ModelServer(sessions=play) as server:
        async with hub_on(
            runtime,
            tmp_path,
            specs=builtin_specs(),
            model={"env": server.env(), "retry": {"base_s": 0.01, "max_tries": 2}},
            worker="opendev.actors.worker:Worker",
            model_service="opendev.actors.model_service:ModelService",
            run_id="hooked",
            hooks=own,
            agent={"hooks": own.model_dump(mode="json")},
        ) as hub:
            models = {"action": "openai/gpt-4o-mini"}
            task = task_of(
                "hooked", root, prompt="the main task", spec=builtin_specs()["Main"], models=models
            )
            report = await hub.run_agent(task)
    assert (report.status, report.text) == (AgentStatus.DONE, "All done."), report
    told = json.dumps([seen.messages for seen in server.seen])
    assert "content of a.txt" in told
    assert "[A hook of the user adds: seen by a hook]" in told
    assert "content of b.txt" not in told
    assert "A hook of the user refused it: not b" in told
    rows = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [row["tool_input"] for row in rows] == [{"file_path": "a.txt"}]
