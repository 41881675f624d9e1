"""Hooks around sub-agents: what they are told, what their exit codes mean, and that a project cannot bring its own (SUB-16)."""

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.hub import Hub
from opendev.actors.local_runtime import LocalRuntime
from opendev.configs.environment import Environment
from opendev.configs.load import load_config
from opendev.core.errors import OpenDevError
from opendev.core.events import Notice
from opendev.core.hooks import Hooks, HookSet
from opendev.tools.shell.reap import process_start
from support.runtimes import events_of, hub_on, script, task_of
from support.waiting import number_in

PROMPT = script(["say", "hello"])


def hooks(start: str = "", stop: str = "", matcher: str = "", timeout: float = 60.0) -> dict[str, Any]:
    def group(command: str) -> list[Any]:
        return [{"matcher": matcher, "hooks": [{"command": command, "timeout": timeout}]}] if command else []

    own = Hooks.model_validate({"SubagentStart": group(start), "SubagentStop": group(stop)})
    return HookSet(own=own).model_dump()


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


async def spawn(hub: Hub, tmp: Path, agent: str = "Leaf") -> str:
    task = task_of("r", tmp, ["spawn", {"agent": agent, "prompt": PROMPT}], stream=True)
    return (await hub.run_agent(task)).text


@pytest.mark.req("SUB-16")
async def test_they_are_told_before_and_after_and_may_add_to_the_task(tmp_path: Path) -> None:
    start = f'cat > {tmp_path}/start.json; echo \'{{"additionalContext": "MIND THE GAP"}}\''
    heard: list[str] = []
    async with hub_on(LocalRuntime(), tmp_path, hooks=hooks(start, f"cat > {tmp_path}/stop.json")) as hub:
        run = asyncio.create_task(spawn(hub, tmp_path))
        while not run.done():
            heard += [task.prompt for task in hub.living if task.depth]
            await asyncio.sleep(0)
        assert await run == "done:hello:"
    before, after = (json.loads((tmp_path / name).read_text()) for name in ("start.json", "stop.json"))
    assert before == {
        "session_id": before["session_id"],
        "cwd": str(tmp_path),
        "hook_event_name": "SubagentStart",
        "agent_type": "Leaf",
        "agent_task": PROMPT,
    }
    assert after["hook_event_name"] == "SubagentStop"
    assert after["agent_result"] == {"status": "done", "text": "hello"}
    assert heard[0] == f"{PROMPT}\n\nMIND THE GAP"


@pytest.mark.req("SUB-16")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo not today >&2; exit 2", "not today"),
        ("exit 2", "Blocked by hook"),
        ('echo \'{"reason": "too dear"}\'; exit 2', "too dear"),
        ('echo \'{"decision": "block", "reason": "no"}\'', "refused it: no"),
        ('echo \'{"permissionDecision": "deny"}\'', "Blocked by hook"),
    ],
)
async def test_a_refusal_keeps_it_from_starting(tmp_path: Path, command: str, reason: str) -> None:
    stop = f"touch {tmp_path}/stopped"
    async with hub_on(LocalRuntime(), tmp_path, hooks=hooks(command, stop)) as hub:
        said = await spawn(hub, tmp_path)
        assert hub.counts.spawned == 1
    assert reason in said
    assert "a hook of the user refused it" in said
    assert not (tmp_path / "stopped").exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo oops >&2; exit 7", "exit code 7; oops"),
        ("sleep 60", "did not end within 1 s"),
        (python("print('x' * 3_000_000)"), ""),
        ("echo no json", ""),
    ],
)
async def test_one_that_fails_is_told_and_passed_over(tmp_path: Path, command: str, why: str) -> None:
    async with hub_on(LocalRuntime(), tmp_path, hooks=hooks(command, timeout=0.1)) as hub:
        assert await asyncio.wait_for(spawn(hub, tmp_path), 15) == "done:hello:"
    notes = [event.text for event in await events_of(hub) if isinstance(event, Notice)]
    assert any(why in note and "SubagentStart" in note for note in notes) == bool(why)


async def test_the_matcher_chooses_by_type(tmp_path: Path) -> None:
    async with hub_on(LocalRuntime(), tmp_path, hooks=hooks("exit 2", matcher="^Read")) as hub:
        assert await spawn(hub, tmp_path, "Leaf") == "done:hello:"
        assert "refused" in await spawn(hub, tmp_path, "Reader")


async def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    command = f"sleep 300 & echo $! > {tmp_path}/pid"
    async with hub_on(LocalRuntime(), tmp_path, hooks=hooks(command)) as hub:
        assert await asyncio.wait_for(spawn(hub, tmp_path), 15) == "done:hello:"
        assert process_start(await number_in(tmp_path / "pid")) is None


def load(tmp_path: Path, mine: Any, projects: Any = None) -> Any:
    for folder, value in ((tmp_path / "home", mine), (tmp_path / "p" / ".opendev", projects)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(value or {}))
    environment = Environment({"OPENDEV_HOME": str(tmp_path / "home")})
    return load_config(project=tmp_path / "p", environment=environment)


def test_they_come_from_the_users_settings_only(tmp_path: Path) -> None:
    group = {
        "SubagentStart": [{"matcher": "*", "hooks": [{"type": "command", "command": "x", "timeout": 9e9}]}]
    }
    loaded = load(
        tmp_path, {"hooks": group}, {"hooks": {"SubagentStart": [{"hooks": [{"command": "evil"}]}]}}
    )
    (found,) = loaded.config.hooks.SubagentStart
    assert (found.matcher, found.hooks[0].command, found.hooks[0].timeout) == ("", "x", 600.0)
    assert any("hooks.SubagentStart" in warning for warning in loaded.warnings)
    wrongs: list[Any] = [{"SubagentStart": [{"matcher": "(", "hooks": []}]}, {"Nonsense": []}]
    for wrong in wrongs:
        with pytest.raises(OpenDevError):
            load(tmp_path, {"hooks": wrong})
