"""Property: whatever a model answers, and wherever it is stopped, every request is valid and the end is honest (LOOP-21, M01)."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opendev.context.messages import loaded
from opendev.core.agent import AgentReport, AgentStatus, Budget
from opendev.core.chat import (
    FinishReason,
    ModelFailed,
    ModelReply,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from opendev.core.errors import ErrorKind
from opendev.store.records import TranscriptLine
from support.agents import Bench
from support.scripted_model import call, calls, done, failed, pairs_are_whole, says

tool_calls = st.sampled_from(
    [
        call("read_file", file_path="a.txt"),
        call("read_file", file_path="missing"),
        call("list_files", path="."),
        call("write_file", "", file_path="new.txt", content="x"),
        call("nonsense"),
        call("run_command", "read_file", command="true"),
        call("write_todos", todos=[{"title": "t"}]),
        call("task_complete", status="success", summary="ok"),
    ]
)
finishes = st.sampled_from([None, None, None, FinishReason.LENGTH, FinishReason.FILTERED])


def answer(given: list[ToolCall], finish: FinishReason | None) -> ModelReply:
    return calls(*given, finish=finish)


answers = st.one_of(
    st.builds(answer, st.lists(tool_calls, min_size=1, max_size=4), finishes),
    st.builds(says, st.sampled_from(["", "text", "<function=read_file>x</function>"])),
    st.just(failed("gone", ErrorKind.MODEL)),
    st.just(done()),
)


async def play(
    folder: Path, script: list[ModelReply | ModelFailed], stop_at: int
) -> tuple[Bench, AgentReport]:
    bench = Bench(folder)
    (bench.root / "a.txt").write_text("x\n")

    def stop(_request: ModelRequest) -> ModelReply | ModelFailed:
        bench.token.set("cut")
        return script[stop_at]

    steps = [*script[:stop_at], stop] if stop_at < len(script) else script
    bench.model.add(*steps)
    return bench, await bench.run(budget=Budget(max_iterations=12))


@pytest.mark.slow
@pytest.mark.req("LOOP-21")
@given(script=st.lists(answers, max_size=8), stop_at=st.integers(0, 9))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_request_is_valid_wherever_the_conversation_is_cut(
    script: list[ModelReply | ModelFailed], stop_at: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench, report = asyncio.run(play(Path(folder), script, stop_at))
        lines = Path(report.transcript).read_text().splitlines()
    assert pairs_are_whole(bench.model.requests) == []
    assert report.model_calls == len(bench.model.requests)
    if bench.token.is_set and report.turns > stop_at:
        assert report.status is not AgentStatus.DONE
    assert (report.error is None) == (report.status is AgentStatus.DONE)
    messages = [TranscriptLine.model_validate(json.loads(line)).message for line in lines]
    assert isinstance(messages[0], SystemMessage)
    # results of calls that ran at once stand in order of completion; loading puts them in call order, and loses none
    resumed = loaded(messages[1:])
    results = [m.call_id for m in messages if isinstance(m, ToolMessage)]
    assert set(results) <= {m.call_id for m in resumed if isinstance(m, ToolMessage)}
    final = ModelRequest(id="f", agent_id="a", model="m/m", messages=resumed)
    assert pairs_are_whole([final]) == []
