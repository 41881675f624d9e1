"""spawn_subagent and get_subagent_output: the true status first, failures as failures, long text capped (SUB-03, SUB-09)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.core.agent import AgentReport, AgentStatus, SpawnRequest
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.chat import ToolCall
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from opendev.core.scope import Scope
from opendev.core.tool import ToolResult
from opendev.policy.gate import Gate
from opendev.tools.dispatch import Dispatcher
from opendev.tools.get_subagent_output import TOOL as OUTPUT
from opendev.tools.registry import ToolRegistry
from opendev.tools.schema import parse_args
from opendev.tools.spawn_subagent import TOOL as SPAWN
from opendev.tools.subagent_result import LEAST, SHARED_CAP, fit
from support.tool_context import EventLog, FakeAsker, FakeSpawner, make_context


def report(status: AgentStatus = AgentStatus.DONE, **other: Any) -> AgentReport:
    fields: dict[str, Any] = {
        "id": "sub1",
        "agent": "Code-Explorer",
        "text": "found it",
        "turns": 3,
        "tool_calls": 5,
    }
    return AgentReport(status=status, **(fields | other))


async def spawn(root: Path, spawner: FakeSpawner, **args: Any) -> ToolResult:
    return await SPAWN.run(
        parse_args(SPAWN, {"agent": "Code-Explorer", "prompt": "look"} | args),
        make_context(root, spawner=spawner),
    )


async def test_the_request_is_what_was_asked(tmp_path: Path) -> None:
    spawner = FakeSpawner()
    args = {"subagent_type": "Coder", "task": "do", "resume": "old", "model": "haiku", "background": "true"}
    await SPAWN.run(parse_args(SPAWN, args), make_context(tmp_path, spawner=spawner, call_id="c9"))
    assert spawner.requests == [
        SpawnRequest(
            call_id="c9",
            agent="Coder",
            prompt="do",
            background=True,
            resume="old",
            model="haiku",
            mode=Mode.NORMAL,
        )
    ]


@pytest.mark.req("SUB-03")
async def test_a_finished_agent(tmp_path: Path) -> None:
    result = await spawn(tmp_path, FakeSpawner(reply=report(files_changed=("a.py",), branch="opendev/x")))
    assert result.ok
    lines = result.text.splitlines()
    assert lines[0].startswith("[SYNC COMPLETE]")
    assert 'resume="sub1"' in lines[1]
    assert "on its branch opendev/x: a.py." in result.text
    assert lines[-1] == "found it"
    assert "SHALLOW" not in result.text
    assert result.data == {"agent_id": "sub1", "status": "done", "call_id": "call1"}


@pytest.mark.req("ACT-10")
@pytest.mark.parametrize("status", [s for s in AgentStatus if s is not AgentStatus.DONE])
async def test_anything_else_is_a_failure_that_says_so(tmp_path: Path, status: AgentStatus) -> None:
    result = await spawn(tmp_path, FakeSpawner(reply=report(status, text="partial")))
    assert not result.ok
    assert result.error is not None
    assert "COMPLETE" not in result.text
    assert result.text.startswith("[SUBAGENT ")
    assert "partial" in result.text
    assert status.value in result.summary


async def test_done_without_a_word_or_a_tool(tmp_path: Path) -> None:
    empty = await spawn(tmp_path, FakeSpawner(reply=report(text=" \n")))
    assert not empty.ok
    assert empty.text.startswith("[SUBAGENT EMPTY]")
    assert "SHALLOW SUBAGENT WARNING" in (await spawn(tmp_path, FakeSpawner(reply=report(tool_calls=0)))).text


async def test_the_agents_error_is_told(tmp_path: Path) -> None:
    error = ErrorInfo(kind=ErrorKind.INFRA, message="The process died.", hint="Start it again.")
    result = await spawn(tmp_path, FakeSpawner(reply=report(AgentStatus.INFRA, error=error, text="")))
    assert "[infra] The process died. Start it again." in result.text
    assert result.error == error


async def test_a_refusal_of_the_broker(tmp_path: Path) -> None:
    refusal = ErrorInfo(kind=ErrorKind.BUDGET, message="Too many agents.", hint="Do it yourself.")
    result = await spawn(tmp_path, FakeSpawner(reply=refusal))
    assert result.error is not None
    assert result.error.kind is ErrorKind.BUDGET
    assert "No sub-agent was started: Too many agents. Do it yourself." in result.text


@pytest.mark.req("SUB-09")
async def test_background_and_collect(tmp_path: Path) -> None:
    spawner = FakeSpawner(reply="bg1", outputs={"done1": report(id="done1")})
    started = await spawn(tmp_path, spawner, background=True)
    assert 'get_subagent_output(agent_id="bg1")' in started.text
    context = make_context(tmp_path, spawner=spawner)
    running = await OUTPUT.run(parse_args(OUTPUT, {"task_id": "bg1", "wait_s": "2"}), context)
    assert (running.ok, running.data) == (True, {"agent_id": "bg1", "status": "running"})
    done = await OUTPUT.run(parse_args(OUTPUT, {"agent_id": "done1"}), context)
    assert done.text.startswith("[SYNC COMPLETE]")
    with pytest.raises(OpenDevError, match="wait_s"):
        parse_args(OUTPUT, {"agent_id": "x", "wait_s": 601})


async def test_a_long_report_is_capped_and_kept(tmp_path: Path) -> None:
    text = "HEAD" + "x" * 80_000 + "TAIL"
    root = tmp_path / "w"
    root.mkdir()
    result = await spawn(root, FakeSpawner(reply=report(text=text)))
    assert len(result.text) < 51_000
    assert "HEAD" in result.text
    assert result.text.endswith("TAIL")
    (kept,) = (tmp_path / "w-scratch/results").iterdir()
    assert kept.read_text() == text
    assert str(kept.parent) in result.text


@pytest.mark.req("SUB-03", "SUB-06")
async def test_all_reports_of_one_answer_share_a_cap_and_what_is_left_out_is_in_files(tmp_path: Path) -> None:
    sizes = {"short": 300, "middle": 9_000, **{f"long{n}": 70_000 for n in range(4)}}

    class Many(FakeSpawner):
        async def spawn(self, request: SpawnRequest) -> AgentReport:
            text = f"HEAD-{request.prompt} {'x' * sizes[request.prompt]} TAIL-{request.prompt}"
            return report(text=text, id=request.prompt)

    root = tmp_path / "w"
    root.mkdir()
    asker, sink = FakeAsker(), EventLog()
    made = Dispatcher(
        registry=ToolRegistry((SPAWN,)),
        gate=Gate(
            level=ApprovalLevel.AUTO,
            mode=Mode.NORMAL,
            root=root,
            scope=Scope(),
            extra_roots=(),
            blocked_commands=(),
        ),
        make_context=lambda call_id: make_context(root, call_id=call_id, spawner=Many()),
        asker=asker,
        emit=sink,
        clock=SystemClock(),
        agent="Main",
    )
    results = await made.run(
        [ToolCall(id=n, name="spawn_subagent", arguments={"agent": "A", "prompt": n}) for n in sizes]
    )
    assert [message.call_id for message in results] == list(sizes)
    assert sum(len(message.content) for message in results) <= SHARED_CAP == 100_000
    for name, message in zip(sizes, results, strict=True):
        assert f"HEAD-{name}" in message.content
        assert message.content.endswith(f"TAIL-{name}")
        assert ("characters left out" in message.content) == name.startswith("long")
        if name != "short":
            path = Path(message.content.split("the whole text is in ")[1].split("]")[0])
            assert len(await asyncio.to_thread(path.read_text)) > sizes[name]
    assert made.finished == results  # cutting twice cuts nothing more


@given(st.lists(st.text(max_size=50).map(lambda text: text * 200), max_size=12), st.integers(0, 40_000))
def test_shared_room_is_never_exceeded_beyond_the_least(texts: list[str], room: int) -> None:
    cut = fit(texts, room)
    assert len(cut) == len(texts)
    assert sum(map(len, cut)) <= room + LEAST * len(texts)
    assert fit(cut, room) == cut
    for before, after in zip(texts, cut, strict=True):
        assert after == before or (
            len(before) > LEAST and after[:900] == before[:900] and after[-900:] == before[-900:]
        )
    if sum(map(len, texts)) <= room:
        assert cut == tuple(texts)
