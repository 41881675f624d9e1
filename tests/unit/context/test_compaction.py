"""Staged compaction of the view: what is shown shrinks, what was said stays (CMP-01..14, T-03, T-05, cases C01..C15)."""

import asyncio
from pathlib import Path

import pytest
from opendev.bench.count_baseline import count_based
from opendev.context.artifacts import MAX_ARTIFACTS, artifact_index
from opendev.context.compaction import Window
from opendev.context.messages import repair
from opendev.context.pressure import Stage, StageLadder, TokenMeter, estimate
from opendev.context.summaries import SUMMARY_WORDS, bounded, condensed, pruned_summary
from opendev.context.view import PRUNED
from opendev.core.chat import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from opendev.core.errors import ErrorInfo, ErrorKind
from support.conversations import SYSTEM, Summariser, compaction, conversation, shown


@pytest.mark.req("CMP-08", "C-01")
def test_each_stage_fires_once_per_upward_crossing_and_a_jump_takes_the_strongest() -> None:  # C15
    ladder = StageLadder()
    sequence = [0.6, 0.72, 0.74, 0.69, 0.71, 0.96, 0.3, 0.71, 0.81, 0.86, 0.91, 0.995]
    assert [int(ladder.step(p)) for p in sequence] == [0, 1, 0, 0, 1, 4, 0, 1, 2, 3, 4, 5]
    assert StageLadder().step(0.70) is Stage.WARN
    assert StageLadder().step(0.6999) is Stage.NONE


@pytest.mark.req("CMP-02", "T-03")
def test_tokens_are_anchored_on_the_last_report_and_savings_count_at_once() -> None:  # T-03, C11
    meter = TokenMeter()
    assert meter.tokens(500) == 500
    meter.calibrate(17_000, 20_000)
    assert meter.tokens(20_400) == 17_400
    assert meter.tokens(12_000) == 9_000
    meter.calibrate(0, 99)
    assert meter.tokens(20_000) == 17_000


def test_the_room_for_the_answer_counts() -> None:
    assert Window(100_000, reserve=10_000).pressure(60_000) == pytest.approx(0.7)
    assert Window(1_000, reserve=10_000).pressure(0) == pytest.approx(0.25)


@pytest.mark.req("CMP-03")
async def test_the_first_stage_only_warns(tmp_path: Path) -> None:
    messages = conversation(10)
    tokens = estimate((SYSTEM, *messages))
    subject = compaction(tmp_path, int(tokens / 0.75))
    step = await subject.check(messages, SYSTEM, ())
    assert step is not None
    assert (step.stage, step.after) == (Stage.WARN, step.before)
    assert subject.view(messages) == tuple(messages)
    assert await subject.check(messages, SYSTEM, ()) is None


@pytest.mark.req("CMP-04", "CMP-06", "T-05")
@pytest.mark.parametrize(("share", "stage", "full"), [(0.82, Stage.MASK, 6), (0.92, Stage.TIGHTEN, 3)])
async def test_masking_keeps_the_newest_and_points_to_a_file_that_holds_the_text(
    tmp_path: Path, share: float, stage: Stage, full: int
) -> None:  # T-05, CMP-06
    messages = conversation(10)
    subject = compaction(tmp_path, int(estimate((SYSTEM, *messages)) / share))
    step = await subject.check(messages, SYSTEM, ())
    assert step is not None
    assert step.stage is stage
    assert step.after < step.before
    results = shown(subject.view(messages))
    assert [r.startswith("result") for r in results] == [False] * (10 - full) + [True] * full
    name = results[0].removeprefix("[output offloaded to scratch file ").removesuffix("]")
    assert await asyncio.to_thread((tmp_path / name).read_text) == shown(tuple(messages))[0]
    assert [m.role for m in subject.view(messages)] == [m.role for m in messages]


@pytest.mark.req("CMP-05")
async def test_pruning_keeps_a_recency_budget_and_the_newest_error(tmp_path: Path) -> None:  # CMP-14
    messages = conversation(10)
    error = messages[2]
    assert isinstance(error, ToolMessage)
    messages[2] = error.model_copy(update={"is_error": True})
    subject = compaction(tmp_path, int(estimate((SYSTEM, *messages)) / 0.87))
    step = await subject.check(messages, SYSTEM, ())
    assert step is not None
    assert step.stage is Stage.PRUNE
    results = shown(subject.view(messages))
    assert results[0].startswith("result 0")
    assert results[1] == PRUNED
    assert results[-1].startswith("result 9")
    assert subject.view(messages)[0] == messages[0]


@pytest.mark.req("CMP-07", "CMP-11", "CMP-13")
async def test_the_last_stage_summarises_the_middle(tmp_path: Path) -> None:  # C07, CMP-09..13
    messages = conversation(20)
    messages.insert(31, UserMessage(content="stop, first fix B"))
    summariser = Summariser("word " * 2_000)
    subject = compaction(tmp_path, estimate((SYSTEM, *messages)), summariser)
    step = await subject.check(messages, SYSTEM, (), "- [doing] 1: list A")
    assert step is not None
    assert step.stage is Stage.SUMMARISE
    assert step.after < 0.6 * step.before
    view = subject.view(messages)
    assert view[0] == messages[0]
    assert repair(view) == view
    assert 3 <= len(view) - 2 <= 10
    assert view[2:] == tuple(messages[-(len(view) - 2) :])
    summary = view[1].content if isinstance(view[1], UserMessage) else ""
    assert len(summary.split()) < SUMMARY_WORDS + 200
    for part in ("stop, first fix B", "- [doing] 1: list A", "src/f3.py: read", "read that file for details"):
        assert part in summary
    archive = next((tmp_path / "archive").iterdir())
    assert str(archive) in summary
    kept = archive.read_text()
    assert all(m.content in kept for m in messages if not isinstance(m, SystemMessage))
    given, artifacts = summariser.given[0]
    assert all(len(m.content) <= 1_200 for m in given if isinstance(m, ToolMessage))
    assert "src/f0.py: read" in artifacts


async def test_a_second_summary_is_made_of_the_first_and_what_came_since(tmp_path: Path) -> None:
    messages = conversation(20)
    summariser = Summariser("FIRST")
    subject = compaction(tmp_path, estimate((SYSTEM, *messages)), summariser)
    await subject.check(messages, SYSTEM, ())
    longer = messages + [m.model_copy() for m in conversation(60)[41:]]
    summariser.reply = "SECOND"
    step = await subject.check(longer, SYSTEM, ())
    assert step is not None
    view = subject.view(longer)
    assert "SECOND" in str(view[1])
    assert "FIRST" in str(summariser.given[1][0][0])
    assert repair(view) == view


async def test_without_a_compactor_the_loop_survives(tmp_path: Path) -> None:  # ACT-13
    messages = conversation(20)
    subject = compaction(
        tmp_path,
        estimate((SYSTEM, *messages)),
        Summariser(ErrorInfo(kind=ErrorKind.INFRA, message="dead")),
    )
    await subject.check(messages, SYSTEM, ())
    view = subject.view(messages)
    assert "- read_file (ok): short 3" in str(view[1])
    assert repair(view) == view


async def test_one_turn_larger_than_the_window_is_squeezed(tmp_path: Path) -> None:  # C09
    messages: list[Message] = [UserMessage(content="go")]
    calls = tuple(ToolCall(id=f"r{n}", name="read_file", arguments={"file_path": f"{n}"}) for n in range(4))
    messages.append(AssistantMessage(tool_calls=calls))
    messages += [ToolMessage(call_id=c.id, name=c.name, content="y" * 48_000) for c in calls]
    subject = compaction(tmp_path, 50_000)
    subject.meter.calibrate(34_000, 100)
    step = await subject.check(messages, SYSTEM, ())
    assert step is not None
    assert step.after < 50_000
    assert repair(subject.view(messages)) == subject.view(messages)


async def test_a_window_below_the_fixed_overhead_is_tried_twice_at_most(tmp_path: Path) -> None:  # C01
    system = SystemMessage(stable="s" * 140_000)
    messages: list[Message] = [UserMessage(content="hi")]
    summariser = Summariser()
    subject = compaction(tmp_path, 32_768, summariser)
    steps = [await subject.check(messages, system, ()) for _ in range(5)]
    notices = [step.notice for step in steps if step]
    assert len(notices) == 2
    assert "larger window" in notices[0]
    assert summariser.given == []
    assert subject.view(messages) == tuple(messages)


async def test_a_model_without_a_window_is_never_compacted(tmp_path: Path) -> None:
    assert await compaction(tmp_path, 0).check(conversation(50), SYSTEM, ()) is None


@pytest.mark.req("CMP-10")
def test_the_artifact_index_is_bounded_and_counts_what_succeeded() -> None:
    messages = conversation(MAX_ARTIFACTS + 5, chars=1)
    edit = ToolCall(id="e", name="edit_file", arguments={"file_path": "src/f204.py"})
    bad = ToolCall(id="b", name="edit_file", arguments={"file_path": "src/bad.py"})
    again = ToolCall(id="w", name="write_file", arguments={"file_path": "src/f203.py", "content": ""})
    new = ToolCall(id="n", name="write_file", arguments={"file_path": "src/new.py", "content": ""})
    messages.append(AssistantMessage(tool_calls=(again, new)))
    messages += [ToolMessage(call_id=id, name="write_file", content="ok") for id in ("w", "n")]
    messages.append(AssistantMessage(tool_calls=(edit, bad)))
    messages.append(ToolMessage(call_id="e", name="edit_file", content="ok"))
    messages.append(ToolMessage(call_id="b", name="edit_file", content="no", is_error=True))
    lines = artifact_index(messages).splitlines()
    assert len(lines) == MAX_ARTIFACTS
    assert lines[-3:] == ["src/f203.py: read, modified", "src/new.py: created", "src/f204.py: read, modified"]
    assert not any("bad.py" in line for line in lines)


@pytest.mark.req("CMP-12")
def test_summaries_are_bounded() -> None:
    assert len(bounded("a b c\n" * 1_000).split()) <= SUMMARY_WORDS + 1
    assert bounded("short\ntext") == "short\ntext"
    assert len(pruned_summary(conversation(2_000, 1)).split()) <= SUMMARY_WORDS + 10
    thinking = AssistantMessage(content="x", thinking=({"type": "thinking"},))
    assert condensed((thinking,)) == (AssistantMessage(content="x"),)


@pytest.mark.req("BLG-11")
def test_the_simple_baseline_keeps_the_first_two_and_the_last_eight() -> None:
    short = conversation(11)
    assert count_based(short) == tuple(short)
    messages = conversation(20)
    asked = ToolCall(id="run", name="run_command", arguments={"command": "make test"})
    said = ToolMessage(call_id="run", name="run_command", content="...\n3 failed")
    messages[9:9] = [AssistantMessage(tool_calls=(asked,)), said]
    view = count_based(messages)
    assert repair(view) == view
    assert (view[:3], view[4:]) == (tuple(messages[:3]), tuple(messages[-8:]))
    summary = view[3]
    assert isinstance(summary, UserMessage)
    assert "src/f5.py: read" in summary.content
    assert "- make test: 3 failed" in summary.content


@pytest.mark.req("BLG-12", "MEM-13")
async def test_a_summary_shows_the_agent_its_own_notes(tmp_path: Path) -> None:
    messages = conversation(30)
    notes = tmp_path / "notes.md"
    limit = int(estimate((SYSTEM, *messages)) / 1.0)
    subject = compaction(tmp_path / "none", limit)
    await subject.check(messages, SYSTEM, ())
    assert "Your notes" not in str(subject.view(messages)[1])
    await asyncio.to_thread(notes.write_text, "x" * 9_000 + "\nThe port is 8123.\n")
    subject = compaction(tmp_path, limit)
    await subject.check(messages, SYSTEM, ())
    summary = subject.view(messages)[1]
    assert isinstance(summary, UserMessage)
    assert f"## Your notes (the whole of them: {notes})\n[…]\nxxx" in summary.content
    assert "The port is 8123." in summary.content
    assert len(summary.content) < 5_000
