"""The protocol cases of group 5 through the whole loop, with the inputs of the shared cases (M01, M03, M06, M08, M12, M14, M16, M20, M29)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.chat import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelReply,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from opendev.core.model import Frozen
from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
from opendev.llm.convert import parse_call
from opendev.store.records import TranscriptLine
from support.agents import Bench
from support.dialects import refusals
from support.scripted_model import call, calls, done, says


def bare(name: str, id: str) -> ToolCall:
    return ToolCall(id=id, name=name)


def tool_result(id: str, text: str, *, error: bool = False) -> ToolMessage:
    return ToolMessage(call_id=id, name="x", content=text, is_error=error)


HISTORIES: dict[str, tuple[Message, ...]] = {
    "M01 a call without a result": (
        UserMessage(content="go"),
        AssistantMessage(tool_calls=(bare("bash", "a"), bare("read", "b"))),
        tool_result("a", "ok"),
        UserMessage(content="stop, do X"),
    ),
    "M03 one id twice": (
        AssistantMessage(tool_calls=(bare("todo", "todo:1"), bare("unknown", "todo:1"))),
        tool_result("todo:1", "ok"),
        tool_result("todo:1", "aborted", error=True),
    ),
    "M06 results without a word": (
        UserMessage(content="go"),
        AssistantMessage(tool_calls=(bare("bash", "a"), bare("bash", "b"))),
        tool_result("a", ""),
        tool_result("b", " \n"),
    ),
    "results and answers out of place": (
        tool_result("zz", "late"),
        UserMessage(content="go"),
        AssistantMessage(content="  "),
        tool_result("a", "x"),
        AssistantMessage(tool_calls=(bare("bash", ""),)),
    ),
}


@pytest.mark.req("RET-05")
@pytest.mark.req("T-18")
@pytest.mark.parametrize("name", HISTORIES)
async def test_a_poisoned_session_goes_on(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, calls(call("list_files", "a", path=".")), says("Done."))
    report = await bench.run(prompt="And now?", history=HISTORIES[name])
    assert report.status is AgentStatus.DONE
    assert refusals(bench.model.requests) == []
    assert "And now?" in str(bench.model.requests[0].messages)


async def test_m01_the_missing_result_stands_right_after_its_answer_in_call_order(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("X done."))
    await bench.run(history=HISTORIES["M01 a call without a result"])
    sent = bench.model.requests[0].messages[1:]
    assert [m.role for m in sent] == ["user", "assistant", "tool", "tool", "user", "user"]
    results = [m for m in sent if isinstance(m, ToolMessage)]
    assert [(m.call_id, m.is_error) for m in results] == [("a", False), ("b", True)]
    assert "interrupted" in results[1].content


async def test_m08_cut_arguments_run_nothing_and_replay_as_json(tmp_path: Path) -> None:
    raw = '{"file_path": "a.py", "content": "#!/usr/bin/env python3\\nprint('
    bench = Bench(tmp_path, calls(parse_call("w", "write_file", raw)), done("no", "failure"))
    (bench.root / "a.py").write_text("whole")
    await bench.run("Coder")
    assert await asyncio.to_thread((bench.root / "a.py").read_text) == "whole"
    assert "could not be read" in str(bench.model.requests[1].messages[-2:])
    assert refusals(bench.model.requests) == []


@pytest.mark.parametrize(
    "name", ["str_replace_editor", "Read_File", "functions.read_file", "read_file ", "", "mcp__gone__x"]
)
async def test_m12_an_unknown_name_is_a_paired_error_and_the_loop_goes_on(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, calls(ToolCall(id="u", name=name, arguments={"file_path": "a.txt"})))
    bench.model.add(says("Failure accepted: x."), says("Failure accepted: x."))
    (bench.root / "a.txt").write_text("hello\n")
    report = await bench.run()
    assert report.turns >= 2
    assert refusals(bench.model.requests) == []
    result = next(m for m in bench.model.requests[1].messages if isinstance(m, ToolMessage))
    known = name.strip().lower().removeprefix("functions.") == "read_file"
    assert result.is_error is not known
    assert ("hello" if known else "Error") in result.content


async def test_m14_the_written_call_is_asked_for_twice_and_never_run(tmp_path: Path) -> None:
    text = 'I will look.\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n</invoke>'
    bench = Bench(tmp_path, says(text), calls(call("list_files", path=".")), says("Nothing there."))
    assert (await bench.run()).text == "Nothing there."
    bench = Bench(tmp_path, *[says(text)] * 5)
    report = await bench.run(id="a2")
    assert (report.status, report.turns) == (AgentStatus.FAILED, 3)
    assert "tool_started" not in bench.kinds()
    assert refusals(bench.model.requests) == []


async def test_m29_an_answer_that_shows_nothing_is_no_answer(tmp_path: Path) -> None:
    report = await Bench(tmp_path, *[says("\u200b \ufeff")] * 2).run()
    assert (report.status, report.turns) == (AgentStatus.EMPTY, 2)


async def test_m16_a_cut_write_runs_nothing_and_gets_stronger_advice(tmp_path: Path) -> None:
    raw = '{"file_path":"README.md","content":"# Title\\n## 1'
    cut = calls(parse_call("w", "write_file", raw), finish=FinishReason.LENGTH)
    bench = Bench(
        tmp_path, cut, cut, calls(call("write_file", "x", file_path="README.md", content="# T")), done()
    )
    report = await bench.run("Coder")
    assert report.status is AgentStatus.DONE
    assert await asyncio.to_thread((bench.root / "README.md").read_text) == "# T"
    advice = [m.content for m in bench.model.requests[2].messages if isinstance(m, UserMessage)][1:]
    assert len(set(advice)) == 2
    assert refusals(bench.model.requests) == []


async def test_m20_results_keep_the_order_of_the_calls(tmp_path: Path) -> None:
    class Args(Frozen):
        sleep: float = 0.0

    async def run(args: Args, _ctx: ToolContext) -> ToolResult:
        if args.sleep < 0:
            raise ValueError("c raises")
        await asyncio.sleep(args.sleep)
        return ToolResult(ok=True, text=f"slept {args.sleep}")

    tool: Tool[Any] = Tool(
        name="list_files", category="file", args=Args, run=run, effects=frozenset({Effect.READ})
    )
    three = [call("list_files", "abc"[n], sleep=s) for n, s in enumerate((0.3, 0.1, -1.0))]
    bench = Bench(tmp_path, calls(*three), says("Failure accepted: c."), tools=(tool,))
    await bench.run("Code-Explorer")
    results = [m for m in bench.model.requests[1].messages if isinstance(m, ToolMessage)]
    assert [m.call_id for m in results] == ["a", "b", "c"]
    assert [m.is_error for m in results] == [False, False, True]


@pytest.mark.parametrize("finish", [FinishReason.STOP, FinishReason.FILTERED])
async def test_m29_an_empty_answer_is_retried_once_and_never_saved(
    tmp_path: Path, finish: FinishReason
) -> None:
    empty = ModelReply(message=AssistantMessage(), finish=finish, usage=Usage(input=5), model="m")
    bench = Bench(tmp_path, empty, empty, says("too late"))
    report = await bench.run()
    assert (report.status, report.turns, report.model_calls) == (AgentStatus.EMPTY, 2, 2)
    assert report.error is not None
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    said = [TranscriptLine.model_validate_json(line).message for line in raw.splitlines()]
    assert not [m for m in said if isinstance(m, AssistantMessage)]
