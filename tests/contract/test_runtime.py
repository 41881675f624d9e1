"""The contract of ``Runtime`` and of the hub on top of it: every body runs in process and under Ray (ACT-02, ACT-09, ACT-10)."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from opendev.actors.hub import Hub
from opendev.actors.local_runtime import LocalRuntime
from opendev.core.agent import AgentStatus
from opendev.core.approval import ApprovalAnswer
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import AgentFinished, ApprovalAsked, AssistantText, Cost
from opendev.core.mail import ENVELOPE, Down
from opendev.core.ops import AnswerApproval, Prompt
from opendev.core.ports import Ref, Runtime
from support.runtimes import PROBE, SPECS, events_of, hub_on, script, task_of
from support.waiting import number_in, until


async def end_process(runtime: Runtime, ref: Ref) -> None:
    """Kill an actor from outside, as the system would."""
    if isinstance(runtime, LocalRuntime):
        await runtime.crash(ref)
    else:
        os.kill((await ref.ask("ping"))["pid"], signal.SIGKILL)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_values_and_errors_cross_as_data(runtime: Runtime) -> None:
    probe = await runtime.spawn(PROBE, name="probe")
    assert await probe.ask("echo", {"a": [1, b"\0", None]}) == {"a": [1, b"\0", None]}
    with pytest.raises(OpenDevError, match=r"Probe\.boom failed with ValueError: boom") as defect:
        await probe.ask("boom")
    assert defect.value.info.kind is ErrorKind.INTERNAL
    with pytest.raises(OpenDevError, match="Not that file") as told:
        await probe.ask("refuse")
    assert (told.value.info.kind, told.value.info.hint) == (ErrorKind.SCOPE, "Choose another.")


async def test_a_failing_constructor_tells_its_cause(runtime: Runtime) -> None:
    with pytest.raises(OpenDevError, match="broken on purpose"):
        await runtime.spawn(PROBE, "broken", name="probe")


@pytest.mark.req("ACT-09")
async def test_cancelling_an_ask_cancels_the_call_promptly(runtime: Runtime) -> None:
    probe = await runtime.spawn(PROBE, name="probe")
    call = asyncio.create_task(probe.ask("wait", 60))
    await logged(probe, "began")
    call.cancel()
    done, _ = await asyncio.wait({call}, timeout=1.0)
    assert done
    assert call.cancelled()
    await logged(probe, "cancelled")


async def test_leaving_a_stream_ends_the_producer(runtime: Runtime) -> None:
    probe = await runtime.spawn(PROBE, name="probe")
    assert [n async for n in probe.stream("count", 4)] == [0, 1, 2, 3]
    async with aclosing(cast("AsyncGenerator[int]", probe.stream("count", 100_000))) as stream:
        async for number in stream:
            if number == 3:
                break
    await logged(probe, "closed", times=2)


@pytest.mark.req("ACT-10")
async def test_a_death_is_told_once_and_calls_fail(runtime: Runtime) -> None:
    probe = await runtime.spawn(PROBE, name="probe")
    heard: list[Down] = []
    told = asyncio.Event()

    async def on_down(down: Down) -> None:
        heard.append(down)
        told.set()

    runtime.watch(probe, on_down)
    call = asyncio.create_task(probe.ask("wait", 60))
    await asyncio.sleep(0.2)
    await end_process(runtime, probe)
    async with asyncio.timeout(2):
        await told.wait()
    with pytest.raises(OpenDevError, match="died") as error:
        await call
    assert error.value.info.kind is ErrorKind.INFRA
    with pytest.raises(OpenDevError):
        await probe.ask("ping")
    assert [d.name for d in heard] == [probe.name]


async def test_kill_is_silent_and_final(runtime: Runtime) -> None:
    probe = await runtime.spawn(PROBE, name="probe")
    heard: list[Down] = []

    async def on_down(down: Down) -> None:
        heard.append(down)

    runtime.watch(probe, on_down)
    pid = (await probe.ask("ping"))["pid"]
    await runtime.kill(probe)
    assert pid == os.getpid() or not alive(pid)
    with pytest.raises(OpenDevError):
        await probe.ask("ping")
    await asyncio.sleep(0.1)
    assert heard == []


@pytest.mark.req("ACT-05")
async def test_events_come_in_order_before_the_end_and_mail_is_audited(
    runtime: Runtime, tmp_path: Path
) -> None:
    secret = "sk-ant-" + "a1" * 20
    async with hub_on(runtime, tmp_path) as hub:
        task = task_of("r", tmp_path, ["say", "one"], ["model", f"key {secret}"], ["say", "two"])
        report = await hub.run_agent(task)
        assert (report.status, report.text.splitlines()[0]) == (AgentStatus.DONE, "one")
        assert hub.total[1] == 1
        assert hub.counts.spawned == 1
        assert hub.counts.pids == (report.pid,)
    events = await events_of(hub)
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert [e.kind for e in events] == [
        "agent_started", "assistant_text", "cost", "assistant_text", "agent_finished",
    ]  # fmt: skip
    assert [e.text for e in events if isinstance(e, AssistantText)] == ["one", "two"]
    assert [e.total.input for e in events if isinstance(e, Cost)] == [7]
    mail = (tmp_path / "run" / "mail.jsonl").read_text()
    assert secret not in mail
    letters = [ENVELOPE.validate_json(line) for line in mail.splitlines()]
    assert {"progress", "cost_report", "result", "ok"} <= {letter.body.kind for letter in letters}
    assert all(letter.id and letter.at and letter.sender for letter in letters)
    assert (tmp_path / "run" / "mail.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("ACT-10")
async def test_a_dead_host_is_an_infra_report_and_siblings_go_on(runtime: Runtime, tmp_path: Path) -> None:
    async with hub_on(runtime, tmp_path) as hub:
        hit = task_of("r", tmp_path, ["sleep", 60], spec=SPECS["Writer"])
        gate = tmp_path / "go"
        fine = task_of("r", tmp_path, ["await", str(gate)], ["say", "fine"], spec=SPECS["Writer"])
        runs = [asyncio.create_task(hub.run_agent(t)) for t in (hit, fine)]
        host = await host_of(hub, hit.id)
        await host_of(hub, fine.id)
        await end_process(runtime, host)
        gate.touch()
        lost, done = await asyncio.gather(*runs)
        assert (lost.status, lost.error and lost.error.kind) == (AgentStatus.INFRA, ErrorKind.INFRA)
        assert (done.status, done.text) == (AgentStatus.DONE, "awaited\nfine")
        again = await hub.run_agent(task_of("r", tmp_path, ["say", "again"]))
        assert again.status is AgentStatus.DONE


@pytest.mark.req("ACT-09")
async def test_cancel_ends_the_tree_and_its_process_groups(runtime: Runtime, tmp_path: Path) -> None:
    shell = ["shell", "echo $$ > pid; setsid sleep 300 & echo $! > far; sleep 300"]
    wish = {"agent": "Reader", "prompt": script(shell)}
    async with hub_on(runtime, tmp_path, run_id="cancelrun") as hub:
        task = task_of("cancelrun", tmp_path, ["spawn", wish])
        run = asyncio.create_task(hub.run_agent(task))
        pids = [await number_in(tmp_path / name) for name in ("pid", "far")]
        assert all(alive(pid) for pid in pids)
        await hub.cancel(task.id, "enough")
        report = await asyncio.wait_for(run, 1)
        assert (report.status, report.error and report.error.kind) == (
            AgentStatus.CANCELLED,
            ErrorKind.CANCELLED,
        )
        assert not any(alive(pid) for pid in pids)
        assert hub.living == ()
    finished = [e for e in await events_of(hub) if isinstance(e, AgentFinished)]
    assert [e.status for e in finished] == ["cancelled", "cancelled"]


@pytest.mark.req("SUB-06")
async def test_sub_agents_of_one_turn_run_at_once_in_call_order(runtime: Runtime, tmp_path: Path) -> None:
    wishes = [{"agent": "Leaf", "prompt": script(["sleep", 1.0], ["say", str(n)])} for n in range(3)]
    async with hub_on(runtime, tmp_path) as hub:
        report = await hub.run_agent(task_of("r", tmp_path, ["spawn", *wishes]))
        assert report.text == "|".join(f"done:slept\n{n}:" for n in range(3))
        assert hub.counts.peak == 3  # the parent lent its permit


@pytest.mark.req("SUB-09")
async def test_background_results_wait_to_be_collected(runtime: Runtime, tmp_path: Path) -> None:
    wish = {"agent": "Leaf", "prompt": script(["sleep", 0.3], ["say", "later"])}
    async with hub_on(runtime, tmp_path) as hub:
        report = await hub.run_agent(task_of("r", tmp_path, ["collect_last", 20.0, wish]))
        assert report.text == "True|done:slept\nlater:"
        assert hub.uncollected() == ()


@pytest.mark.req("ACT-08")
async def test_an_approval_reaches_a_person_and_only_once(runtime: Runtime, tmp_path: Path) -> None:
    async with hub_on(runtime, tmp_path) as hub:
        detach = hub.attach()
        run = asyncio.create_task(hub.run_agent(task_of("r", tmp_path, ["approve", "rm -rf build"])))
        asked = await first(hub, ApprovalAsked)
        request = asked.request
        assert request.id != "mine"  # the hub's own id, and the true agent
        assert request.agent_id == asked.agent != "forged"
        stale = ApprovalAnswer(decision="once", digest="0" * 64)
        with pytest.raises(OpenDevError, match="other arguments"):
            await hub.submit(AnswerApproval(request_id=request.id, answer=stale))
        answer = ApprovalAnswer(decision="once", digest=request.digest, by="me", note="ok")
        await hub.submit(AnswerApproval(request_id=request.id, answer=answer))
        assert (await run).text == "once: ok"
        with pytest.raises(OpenDevError, match="does not count"):
            await hub.submit(AnswerApproval(request_id=request.id, answer=answer))
        detach()
        denied = await hub.run_agent(task_of("r", tmp_path, ["approve", "ls"], ["question", "sure?"]))
        assert denied.text.startswith("no_answer: no interface")
        assert denied.text.endswith("None")


@pytest.mark.req("ACT-13")
async def test_the_compactor_summarises_by_the_compact_model(runtime: Runtime, tmp_path: Path) -> None:
    async with hub_on(runtime, tmp_path) as hub:
        report = await hub.run_agent(task_of("r", tmp_path, ["compact", "we fixed the parser"]))
        assert report.text.startswith("heard: ")
        assert "we fixed the parser" in report.text


async def test_a_prompt_reaches_the_running_main_agent(runtime: Runtime, tmp_path: Path) -> None:
    async with hub_on(runtime, tmp_path) as hub:
        task = task_of("r", tmp_path, ["wait_told"])
        run = asyncio.create_task(hub.run_agent(task))
        await host_of(hub, task.id)
        await asyncio.sleep(0.2)
        await hub.submit(Prompt(text="hurry"))
        assert (await run).text == "hurry"
        await hub.submit(Prompt(text="next"))
        assert await hub.next_prompt() == "next"


async def test_a_defect_of_the_worker_is_a_report(runtime: Runtime, tmp_path: Path) -> None:
    async with hub_on(runtime, tmp_path) as hub:
        report = await hub.run_agent(task_of("r", tmp_path, ["crash"]))
        assert (report.status, report.error and report.error.kind) == (AgentStatus.FAILED, ErrorKind.INTERNAL)


async def test_a_task_that_overruns_its_time_is_ended(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opendev.actors.runs.GRACE_S", 0.1)
    async with hub_on(runtime, tmp_path) as hub:
        task = task_of("r", tmp_path, ["sleep", 60], budget={"timeout_s": 0.3})
        report = await hub.run_agent(task)
        assert (report.status, report.error and report.error.kind) == (AgentStatus.TIMEOUT, ErrorKind.TIMEOUT)


async def host_of(hub: Hub, agent: str) -> Ref:
    """Wait until the agent has a host."""
    await until(lambda: hub.host_of(agent) is not None)
    host = hub.host_of(agent)
    assert host is not None
    return host


async def logged(probe: Ref, expected: str, times: int = 1) -> None:
    """Wait until the probe has noted something."""
    async with asyncio.timeout(10):
        while (await probe.ask("events")).count(expected) < times:  # noqa: ASYNC110 - it lives elsewhere
            await asyncio.sleep(0.01)


async def first(hub: Any, kind: type[Any]) -> Any:
    async with asyncio.timeout(30):
        async for event in hub.subscribe():
            if isinstance(event, kind):
                return event
    raise AssertionError("no such event")
