"""Hooks of the driver: the session, what the user asks, sub-agents: what they are told, and what their exit codes mean (SUB-16)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.hooks import RunHooks
from opendev.actors.hub import Hub
from opendev.actors.local_runtime import LocalRuntime
from opendev.core.agent import AgentStatus
from opendev.core.errors import ErrorKind
from opendev.core.events import Notice
from opendev.core.hooks import HookSet
from opendev.core.ops import Interrupt, Prompt
from opendev.tools.shell.reap import process_start
from support.hooking import hooks as own_hooks
from support.hooking import python
from support.runtimes import events_of, hub_on, script, task_of
from support.waiting import number_in, until

PROMPT = script(["say", "hello"])


def of(*groups: tuple[str, str]) -> dict[str, Any]:
    return HookSet(own=own_hooks(*groups)).model_dump()


def hooks(start: str = "", stop: str = "", matcher: str = "", timeout: float = 60.0) -> dict[str, Any]:
    pairs = (("SubagentStart", start), ("SubagentStop", stop))
    groups = ((event, matcher, command) for event, command in pairs if command)
    return HookSet(own=own_hooks(*groups, timeout=timeout)).model_dump()


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
    ("command", "why", "refuses"),
    [
        ("echo oops >&2; exit 7", "exit code 7; oops", False),
        ("echo no json", "", False),
        (python("print('x' * 3_000_000)"), "", False),
        ("./gone", "exit code 127", True),
        pytest.param("sleep 60", "did not end within 1 s", True, marks=pytest.mark.slow),
    ],
)
async def test_one_that_fails_is_passed_over_and_one_without_an_answer_refuses(
    tmp_path: Path, command: str, why: str, refuses: bool
) -> None:
    own = hooks(command, timeout=0.1 if "sleep" in command else 60.0)
    async with hub_on(LocalRuntime(), tmp_path, hooks=own) as hub:
        said = await asyncio.wait_for(spawn(hub, tmp_path), 15)
    assert said == "done:hello:" if not refuses else "it gave no answer" in said
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


def told(tmp: Path, name: str) -> list[dict[str, Any]]:
    """What the hooks that write to ``name`` were told, in order."""
    return [json.loads(line) for line in (tmp / name).read_text().splitlines()]


def log(tmp: Path, name: str) -> str:
    return f"read -r letter; printf '%s\\n' \"$letter\" >> {tmp}/{name}"


@pytest.mark.req("HOK-01", "HOK-03", "LOOP-16")
async def test_a_session_its_prompts_and_its_ends(tmp_path: Path) -> None:
    events = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "SubagentStop")
    own = of(*((event, log(tmp_path, "log")) for event in events))
    async with hub_on(LocalRuntime(), tmp_path, hooks=own, startup="resume", run_id="s1") as hub:
        task = task_of("s1", tmp_path, ["say", "hello"], stream=True)
        assert (await hub.run_agent(task)).text == "hello"
    rows = told(tmp_path, "log")
    assert sorted(row["hook_event_name"] for row in rows) == sorted(events[:4])
    by = {row.pop("hook_event_name"): row for row in rows}
    assert all(row.pop("session_id") == "s1" for row in rows)
    assert by["SessionStart"]["startup_type"] == "resume"
    assert by["UserPromptSubmit"] == {"cwd": str(tmp_path), "user_prompt": task.prompt}
    assert by["Stop"]["agent_result"] == {"status": "done", "text": "hello"}


@pytest.mark.req("HOK-04")
async def test_a_refused_prompt_reaches_no_agent(tmp_path: Path) -> None:
    own = of(("UserPromptSubmit", "grep -q hello && { echo no greetings >&2; exit 2; } || exit 0"))
    async with hub_on(LocalRuntime(), tmp_path, hooks=own) as hub:
        report = await hub.run_agent(task_of("r", tmp_path, ["say", "hello"], stream=True))
        assert report.status is AgentStatus.FAILED
        assert report.error is not None
        assert report.error.kind is ErrorKind.DENIED
        assert "The prompt was not sent: a hook of the user refused it: no greetings" in report.error.message
        assert hub.counts.spawned == 0
        assert (await hub.run_agent(task_of("r", tmp_path, ["say", "bye"], stream=True))).text == "bye"


@pytest.mark.req("HOK-04")
async def test_what_is_typed_while_an_agent_works_is_asked_about_too(tmp_path: Path) -> None:
    guard = 'grep -q forbidden && exit 2; echo \'{"additionalContext": "MIND"}\''
    async with hub_on(LocalRuntime(), tmp_path, hooks=of(("UserPromptSubmit", guard))) as hub:
        task = task_of("r", tmp_path, *[["wait_told"]] * 3, stream=True)
        run = asyncio.create_task(hub.run_agent(task))
        await until(lambda: hub.host_of(task.id) is not None)
        for text in ("one", "forbidden", "/compact", "two"):
            await hub.submit(Prompt(text=text))
        said = (await run).text.split("\n")
    assert sorted(filter(None, said)) == ["/compact", "MIND", "MIND", "one", "two"]
    assert any(isinstance(e, Notice) and "The prompt was not sent" in e.text for e in await events_of(hub))


@pytest.mark.req("HOK-01")
async def test_an_agent_of_a_swarm_is_a_sub_agent_to_hooks(tmp_path: Path) -> None:
    async with hub_on(LocalRuntime(), tmp_path, hooks=hooks("exit 2", matcher="^Main$")) as hub:
        report = await hub.run_agent(task_of("r", tmp_path, ["say", "hello"]))
    assert report.error is not None
    assert "The sub-agent was not started" in report.error.message


@pytest.mark.req("HOK-06")
async def test_the_end_waits_for_hooks_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunHooks.session_ended, "__defaults__", (0.2,))
    own = of(("SubagentStop", f"echo $$ > {tmp_path}/pid; sleep 60"), ("SessionEnd", "sleep 60"))
    loop = asyncio.get_running_loop()
    async with hub_on(LocalRuntime(), tmp_path, hooks=own) as hub:
        await hub.run_agent(task_of("r", tmp_path, ["say", "hello"]))
        pid = await number_in(tmp_path / "pid")
        started = loop.time()
    assert loop.time() - started < 5
    assert process_start(pid) is None
    assert any("did not end within 0.2 s" in str(getattr(e, "text", "")) for e in await events_of(hub))


@pytest.mark.req("HOK-04", "LOOP-17")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "SubagentStart"])
async def test_a_hook_that_is_waited_for_can_be_interrupted(tmp_path: Path, event: str) -> None:
    own = of((event, f"echo $$ > {tmp_path}/pid; sleep 60; true"))
    async with hub_on(LocalRuntime(), tmp_path, hooks=own) as hub:
        steps = (
            [["say", "hello"]]
            if event == "UserPromptSubmit"
            else [["spawn", {"agent": "Leaf", "prompt": PROMPT}]]
        )
        run = asyncio.create_task(hub.run_agent(task_of("r", tmp_path, *steps, stream=True)))
        pid = await number_in(tmp_path / "pid")
        await hub.submit(Interrupt())
        report = await asyncio.wait_for(run, 10)
        assert report.status is AgentStatus.CANCELLED
        assert hub.counts.spawned == (event == "SubagentStart")
        await until(lambda: process_start(pid) is None)
