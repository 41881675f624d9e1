"""Property: one conversation, cut at every point in every way, and gone on with; every request is valid for both dialects (M01)."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opendev.core.agent import AgentReport, AgentStatus
from opendev.core.chat import (
    Message,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    ThinkingLevel,
)
from opendev.core.errors import ErrorKind
from opendev.store.records import TranscriptLine
from support.agents import Bench, ScriptedShell
from support.dialects import refusals
from support.scripted_model import call, calls, done, failed, says

Cut = Literal["interrupt", "interrupt in a tool", "crash", "provider error", "compaction", "message"]
CUTS: tuple[Cut, ...] = (
    "interrupt",
    "interrupt in a tool",
    "crash",
    "provider error",
    "compaction",
    "message",
)
WIDE = "x " * 3_000


def script() -> list[ModelReply]:
    """Nine answers that walk through the loop: parallel reads, an edit, a failure, todos, a repetition, an empty answer."""
    read = call("read_file", "same", file_path="a.txt")
    return [
        calls(read, call("list_files", "same", path="."), text="I look."),
        calls(call("write_todos", todos=[{"title": "one"}])),
        calls(call("run_command", "cmd", command="make"), call("read_file", "r2", file_path="missing")),
        says("Was it?"),
        calls(call("edit_file", file_path="a.txt", old_content=WIDE[:40], new_content="y")),
        says(""),
        calls(read, read, read),
        calls(call("complete_todo", "t", todo_id="1"), call("nonsense", "n")),
        done(),
    ]


def history_of(bench: Bench, folder: str) -> tuple[Message, ...]:
    """The conversation as a new process reads it from disk; a torn last line is what a crash leaves."""
    path = bench.home / "transcripts" / folder / "a1.jsonl"
    found: list[Message] = []
    for line in path.read_text().splitlines():
        try:
            found.append(TranscriptLine.model_validate_json(line).message)
        except ValueError:
            continue
    return tuple(m for m in found if not isinstance(m, SystemMessage))


def acting(bench: Bench, cut: Cut, planned: ModelReply) -> Callable[[ModelRequest], ModelReply | ModelFailed]:
    """What the model does at the cut."""

    def act(_request: ModelRequest) -> ModelReply | ModelFailed:
        if cut == "interrupt":
            bench.token.set("Esc")
        elif cut == "message":
            assert bench.agent is not None
            bench.agent.inject("and also B")
        failures = {
            "provider error": failed("502", ErrorKind.MODEL),
            "compaction": failed("too long", ErrorKind.CONTEXT),
        }
        return failures.get(cut, planned)

    return act


async def first_part(bench: Bench, cut: Cut, at: int) -> None:
    """Run until the cut."""
    steps = script()
    reached = asyncio.Event()
    act = acting(bench, cut, steps[at])

    def at_the_cut(request: ModelRequest) -> ModelReply | ModelFailed:
        reached.set()
        return act(request)

    bench.model.add(*steps[:at], at_the_cut, *steps[at if cut == "compaction" else at + 1 :])
    if cut == "interrupt in a tool":
        bench.shell = ScriptedShell(hang=True)
        reached = bench.shell.began
    running = asyncio.create_task(bench.run())
    waiting = asyncio.create_task(reached.wait())
    if cut in ("interrupt in a tool", "crash"):
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if cut == "crash":
            running.cancel()
        else:
            bench.token.set("Esc")
    await asyncio.wait({running})
    waiting.cancel()
    if cut == "crash":
        with (bench.home / "transcripts/r1/a1.jsonl").open("a") as file:
            file.write('{"schema": 1, "at": "x", "message": {"role": "assis')


async def play(folder: Path, cut: Cut, at: int) -> tuple[Bench, list[ModelRequest], AgentReport]:
    bench = Bench(folder)
    (bench.root / "a.txt").write_text(WIDE)
    bench.settings = bench.settings.model_copy(
        update={"context_limits": {"test/model": 9_000}, "max_tokens": 500}
    )
    await first_part(bench, cut, at)
    again = Bench(folder, *script())
    again.settings = bench.settings
    again.people.decisions = ["once", "deny"]
    report = await again.run(prompt="Go on.", history=history_of(bench, "r1"))
    return again, [*bench.model.requests, *again.model.requests], report


async def valid(folder: Path, cut: Cut, at: int) -> None:
    again, requests, report = await play(folder, cut, at)
    assert refusals(requests) == []
    assert again.model.requests
    assert "Go on." in str(again.model.requests[0].messages)
    assert (report.error is None) == (report.status is AgentStatus.DONE)


@pytest.mark.slow
@pytest.mark.req("LOOP-21", "T-18")
@given(cut=st.sampled_from(CUTS), at=st.integers(0, 8))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_request_is_valid_for_both_dialects_wherever_it_was_cut(cut: Cut, at: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(valid(Path(folder), cut, at))


@pytest.mark.soak
@pytest.mark.req("LOOP-21", "T-18")
@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize("cut", CUTS)
async def test_every_request_is_valid_for_both_dialects_at_every_cut(
    tmp_path: Path, cut: Cut, at: int
) -> None:
    await valid(tmp_path, cut, at)


@pytest.mark.req("REM-02")
async def test_the_validators_see_what_is_wrong_and_no_tag_is_sent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, *script())
    (bench.root / "a.txt").write_text(WIDE)
    await bench.run()
    good = bench.model.requests[-1]
    assert refusals([good]) == []
    results = [n for n, m in enumerate(good.messages) if m.role == "tool"]
    for broken in (
        good.messages[: results[0]] + good.messages[results[0] + 1 :],
        (*good.messages, good.messages[results[0]]),
        good.messages[: results[0]],
        (good.messages[0], *good.messages[2:]),
        (*good.messages, good.messages[2]),
    ):
        wrong = refusals([good.model_copy(update={"messages": broken})])
        assert any("openai" in fault for fault in wrong) or any("anthropic" in fault for fault in wrong)
    thinking = Bench(tmp_path, says("a thought"), says("done"))
    thinking.settings = thinking.settings.model_copy(update={"thinking": ThinkingLevel.LOW})
    await thinking.run(id="a2")
    assert [r.role for r in thinking.model.requests] == [Role.THINKING, Role.ACTION]
    assert refusals(thinking.model.requests) == []
