"""A stop while a person is asked, and what is on disk at every moment (LOOP-18, C-28)."""

import asyncio
import json
from pathlib import Path

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest
from opendev.core.chat import ModelReply, ModelRequest, SystemMessage, ToolMessage
from opendev.core.interrupt import InterruptToken
from support.agents import Bench, People
from support.dialects import refusals
from support.scripted_model import call, calls, says


class Thinking(People):
    """A person who never decides."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = asyncio.Event()
        self.withdrawn = 0

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.withdrawn += 1
        raise AssertionError


@pytest.mark.req("LOOP-18")
@pytest.mark.req("LOOP-17")
async def test_an_open_question_is_withdrawn_first_and_one_stop_is_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("run_command", "c", command="npm publish"), call("list_files", "l")))
    bench.people = people = Thinking()
    running = asyncio.create_task(bench.run(approve=ApprovalLevel.MANUAL))
    await people.shown.wait()
    assert [bench.token.set(reason) for reason in ("Esc", "Ctrl-C", "Esc")] == [True, False, False]
    report = await running
    assert (report.status, people.withdrawn) == (AgentStatus.CANCELLED, 1)
    assert report.error is not None
    assert report.error.message == "The agent was stopped: Esc."
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    said = [json.loads(line) for line in raw.splitlines()]
    assert [m["call_id"] for m in said if m["role"] == "tool"] == ["c", "l"]
    assert bench.shell.commands == []


def test_a_token_keeps_its_first_reason() -> None:
    token = InterruptToken()
    assert not token.is_set
    token.set("first")
    token.set("second")
    assert (token.is_set, token.reason) == (True, "first")


@pytest.mark.req("C-28")
@pytest.mark.req("LOOP-13")
@pytest.mark.req("TSK-09")
async def test_everything_that_is_sent_is_on_disk_before_it_is_sent(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    path = bench.home / "transcripts" / "r1" / "a1.jsonl"

    def checked(reply: ModelReply):
        def step(request: ModelRequest) -> ModelReply:
            said = [json.loads(line)["content"] for line in path.read_text().splitlines()[1:]]
            assert said == [m.content for m in request.messages if not isinstance(m, SystemMessage)]
            return reply

        return step

    todo = call("write_todos", "t", todos=[{"title": "one"}])
    steps = [calls(todo), calls(call("list_todos", "l")), says(""), says("x"), says("y"), says("z")]
    bench.model.add(*(checked(step) for step in steps))
    report = await bench.run()
    assert report.status is AgentStatus.DONE
    assert refusals(bench.model.requests) == []
    listed = [m for m in bench.model.requests[2].messages if isinstance(m, ToolMessage)][-1]
    assert "1. one" in listed.content
