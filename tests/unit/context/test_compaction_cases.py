"""Public failures of peers (group 6) and the traps of compaction, each re-created (C01..C15, M21, T-03, T-05)."""

import asyncio
from pathlib import Path

import pytest
from opendev.context.compaction import Compaction, Window
from opendev.context.messages import ValidatedMessageList, repair
from opendev.context.pressure import Stage, Trend, estimate
from opendev.context.summaries import condensed, is_summary, told, user_words
from opendev.context.view import PRUNED, Life, anchor
from opendev.core.chat import AssistantMessage, Message, MessageClass, ToolCall, ToolMessage, UserMessage
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from support.conversations import SYSTEM, Summariser, compaction, conversation, shown


def window_for(messages: list[Message], share: float) -> int:
    return int(estimate((SYSTEM, *messages)) / share)


@pytest.mark.req("CMP-14")
async def test_an_error_under_repair_and_what_the_user_said_survive_every_stage(tmp_path: Path) -> None:
    for share in (0.82, 0.87, 0.92, 1.0):
        messages = conversation(20)
        messages.insert(11, UserMessage(content="never touch conf.py"))
        error = messages[17]
        assert isinstance(error, ToolMessage)
        messages[17] = error.model_copy(update={"is_error": True})
        subject = compaction(tmp_path, window_for(messages, share))
        assert await subject.check(messages, SYSTEM, ()) is not None
        view = subject.view(messages)
        assert repair(view) == view
        assert any("never touch conf.py" in m.content for m in view if isinstance(m, UserMessage))
        if share < 1.0:
            assert messages[17] in view


@pytest.mark.req("CMP-09")
async def test_observations_go_from_active_to_faded_to_archived_and_stay_on_disk(tmp_path: Path) -> None:
    messages = conversation(20)
    subject = compaction(tmp_path, window_for(messages, 0.82))
    assert subject.shown.life(messages, "c0") is Life.ACTIVE
    await subject.check(messages, SYSTEM, ())
    assert subject.shown.life(messages, "c0") is Life.FADED
    assert subject.shown.life(messages, "c19") is Life.ACTIVE
    await subject.force(messages, SYSTEM, ())
    assert subject.shown.life(messages, "c0") is Life.ARCHIVED
    archive = next((tmp_path / "archive").iterdir())
    assert shown(tuple(messages))[0] in await asyncio.to_thread(archive.read_text)


@pytest.mark.req("T-05")
async def test_a_result_the_tool_wrote_to_a_file_keeps_that_file(tmp_path: Path) -> None:  # T-05
    messages = conversation(10)
    kept = tmp_path / "results" / "run-1.txt"
    await asyncio.to_thread(kept.parent.mkdir)
    await asyncio.to_thread(kept.write_text, "the whole")
    first = messages[2]
    assert isinstance(first, ToolMessage)
    preview = f"{'p' * 500}\n[Output offloaded: 9 lines, 9,000 chars → {kept}]\nadvice"
    messages[2] = first.model_copy(update={"content": preview})
    fourth = messages[4]
    assert isinstance(fourth, ToolMessage)
    forged = f"{'p' * 500}\n[Output offloaded: 9 lines, 9,000 chars → /etc/hostname]\n"
    messages[4] = fourth.model_copy(update={"content": forged})
    subject = compaction(tmp_path, window_for(messages, 0.82))
    await subject.check(messages, SYSTEM, ())
    results = shown(subject.view(messages))
    assert results[0] == "[output offloaded to scratch file results/run-1.txt]"
    name = results[1].removeprefix("[output offloaded to scratch file ").removesuffix("]")
    assert await asyncio.to_thread((tmp_path / name).read_text) == forged


@pytest.mark.req("CMP-05")
async def test_pruning_leaves_pointers_alone(tmp_path: Path) -> None:
    messages = conversation(10)
    subject = compaction(tmp_path, window_for(messages, 0.82))
    await subject.check(messages, SYSTEM, ())
    pointers = shown(subject.view(messages))[:4]
    more = messages + conversation(40, prefix="d")[1:]
    subject.meter.calibrate(0, 0)
    await subject.check(more[: len(messages) + 10], SYSTEM, ())
    subject.shown.prune(more, 3_000)
    results = shown(subject.view(more))
    assert results[:4] == pointers
    assert PRUNED in results
    assert results[-1].startswith("result 39")


@pytest.mark.req("CMP-01", "T-03")
async def test_the_room_for_the_answer_is_part_of_the_pressure(tmp_path: Path) -> None:  # T-03
    messages = conversation(10)
    tokens = estimate((SYSTEM, *messages))
    tight = Compaction(Window(int(tokens / 0.6), reserve=int(tokens * 0.36)), Summariser(), tmp_path)
    roomy = Compaction(Window(int(tokens / 0.6), reserve=0), Summariser(), tmp_path)
    step = await tight.check(messages, SYSTEM, ())
    assert step is not None
    assert step.stage is Stage.MASK
    assert await roomy.check(messages, SYSTEM, ()) is None


@pytest.mark.req("T-03")
async def test_no_cascade_before_the_next_response(tmp_path: Path) -> None:  # T-03
    messages = conversation(20)
    limit = window_for(messages, 0.82)
    subject = compaction(tmp_path, limit)
    subject.meter.calibrate(int(limit * 0.82), estimate((SYSTEM, *messages)))
    stages = [step.stage for _ in range(5) if (step := await subject.check(messages, SYSTEM, ()))]
    assert stages == [Stage.MASK]


async def test_a_huge_stored_result_that_is_sent_short_does_not_count(tmp_path: Path) -> None:  # C11
    messages = conversation(10, chars=300_000)
    subject = compaction(tmp_path, 50_000)
    for result in messages[2::2]:
        assert isinstance(result, ToolMessage)
        await subject.shown.offload(result)
    subject.meter.calibrate(17_000, estimate((SYSTEM, *subject.view(messages))))
    assert await subject.check(messages, SYSTEM, ()) is None


@pytest.mark.req("CMP-15")
async def test_a_request_of_the_user_and_the_automatic_check_compact_once(tmp_path: Path) -> None:  # C03
    messages = conversation(20)
    summariser = Summariser(delay=0.05)
    subject = compaction(tmp_path, window_for(messages, 0.91), summariser)
    subject.request()
    steps = await asyncio.gather(*(subject.check(messages, SYSTEM, ()) for _ in range(3)))
    assert [step.stage for step in steps if step] == [Stage.SUMMARISE]
    assert len(summariser.given) == 1
    both = await asyncio.gather(subject.force(messages, SYSTEM, ()), subject.force(messages, SYSTEM, ()))
    assert all(step.after <= step.before for step in both)
    assert len(summariser.given) <= 2


async def test_two_overflows_at_once_make_one_summary(tmp_path: Path) -> None:  # C03
    messages = conversation(20)
    summariser = Summariser(delay=0.05)
    subject = compaction(tmp_path, window_for(messages, 0.91), summariser)
    await asyncio.gather(subject.force(messages, SYSTEM, ()), subject.force(messages, SYSTEM, ()))
    assert len(summariser.given) == 1


async def test_the_latest_request_the_todos_and_the_children_stand_outside_of_the_summary(
    tmp_path: Path,
) -> None:
    messages = conversation(30)  # C07
    messages.append(UserMessage(content="stop, first fix B"))

    async def roster() -> str:
        return "- c9 (Coder): still works on it"

    subject = Compaction(
        Window(window_for(messages, 1.0), reserve=0), Summariser("FORGOT EVERYTHING"), tmp_path, roster
    )
    await subject.check(messages, SYSTEM, (), "## Todos\n- [doing] 1: list A")
    view = subject.view(messages)
    summary = view[1].content if isinstance(view[1], UserMessage) else ""
    assert "- [doing] 1: list A" in summary
    assert "## Sub-agents\n- c9 (Coder): still works on it" in summary
    assert view[-1] == messages[-1]


async def test_every_instruction_of_the_user_survives_repeated_summaries(tmp_path: Path) -> None:
    messages: list[Message] = [UserMessage(content="THE TASK")]
    subject = compaction(tmp_path, 20_000)
    for turn in range(60):
        messages += [UserMessage(content=f"rule {turn}"), *conversation(2, prefix=f"t{turn}-")[1:]]
        await subject.check(messages, SYSTEM, ())
        seen = "\n".join(m.content for m in subject.view(messages) if isinstance(m, UserMessage))
        assert [n for n in range(turn + 1) if f"rule {n}" not in seen] == []
    assert "THE TASK" in subject.view(messages)[0].content  # type: ignore[union-attr]


def test_long_instructions_are_bounded_and_say_where_the_rest_is() -> None:
    said = [UserMessage(content=f"{n} " + "w" * 9_000) for n in range(80)]
    text = user_words(said, 5_000)
    assert len(text) < 5_000 * 4 + 50 * 400
    assert "the rest is in the archive" in text
    assert "(30 earlier messages are in the archive)" in text
    assert user_words((UserMessage(content="x", msg_class=MessageClass.NUDGE),), 100) == ""


@pytest.mark.req("ACT-13")
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "the same line\n" * 400,
        "word " * 5_000,
        ErrorInfo(kind=ErrorKind.BUDGET, message="over budget"),
        OpenDevError(ErrorKind.INFRA, "the compactor died"),
        TimeoutError(),
    ],
    ids=["empty", "blank", "loop", "echo", "refused", "dead", "hung"],
)
async def test_nonsense_of_the_compactor_is_replaced_by_a_rule(tmp_path: Path, reply: object) -> None:
    messages = conversation(20)
    subject = compaction(tmp_path, window_for(messages, 1.0), Summariser(reply))
    step = await subject.check(messages, SYSTEM, (), "## Todos\n- [todo] 1: A")
    assert step is not None
    assert step.after < 0.6 * step.before
    view = subject.view(messages)
    assert "- read_file (ok): short 3" in str(view[1])
    assert "- [todo] 1: A" in str(view[1])
    assert repair(view) == view
    assert messages == conversation(20)


def test_what_counts_as_a_summary() -> None:
    assert is_summary("## Goal\nFix the parser.")
    assert is_summary("\n".join(f"- step {n}" for n in range(200)))
    assert not is_summary("- step\n" * 60)


async def test_messages_that_arrive_while_the_summary_is_made_are_kept(tmp_path: Path) -> None:  # C13
    messages = ValidatedMessageList(conversation(20))
    summariser = Summariser(delay=0.05)
    subject = compaction(tmp_path, window_for(list(messages), 1.0), summariser)
    check = asyncio.create_task(subject.check(messages.snapshot(), SYSTEM, ()))
    await asyncio.sleep(0.01)
    messages.add_user(UserMessage(content="[agent c9 ended] the result"))
    await check
    view = subject.view(messages.snapshot())
    assert view[-1].content == "[agent c9 ended] the result"  # type: ignore[union-attr]
    assert repair(view) == view


@pytest.mark.req("CMP-14")
async def test_an_aborted_compaction_leaves_the_view_as_it_was(tmp_path: Path) -> None:  # C13
    messages = conversation(20)
    summariser = Summariser(delay=5.0)
    subject = compaction(tmp_path, window_for(messages, 1.0), summariser)
    check = asyncio.create_task(subject.check(messages, SYSTEM, ()))
    await asyncio.sleep(0.02)
    check.cancel()
    with pytest.raises(asyncio.CancelledError):
        await check
    assert subject.view(messages) == tuple(messages)
    summariser.delay = 0.0
    assert await subject.check(messages, SYSTEM, ()) is not None
    assert len(subject.view(messages)) < len(messages)


async def test_parallel_results_that_jump_over_every_threshold_never_exceed_the_window(
    tmp_path: Path,
) -> None:
    subject = compaction(tmp_path, 50_000)  # C09
    messages = conversation(34, chars=4_000)
    calls = tuple(ToolCall(id=f"r{n}", name="read_file", arguments={"file_path": f"{n}"}) for n in range(4))
    messages.append(AssistantMessage(tool_calls=calls))
    messages += [ToolMessage(call_id=c.id, name=c.name, content="y" * 48_000) for c in calls]
    await subject.check(messages, SYSTEM, ())
    view = subject.view(messages)
    assert estimate((SYSTEM, *view)) < 50_000
    assert repair(view) == view
    newest = shown(view)[-4:]
    assert all(text.startswith("y" * 1_000) or "scratch file" in text for text in newest)


async def test_results_are_squeezed_even_after_two_useless_summaries(tmp_path: Path) -> None:  # C01, C09
    system = SYSTEM.model_copy(update={"stable": "s" * 100_000})
    messages: list[Message] = [UserMessage(content="hi")]
    subject = compaction(tmp_path, 25_000, Summariser())
    for _ in range(3):
        await subject.check(messages, system, ())
    call = ToolCall(id="big", name="read_file", arguments={})
    messages += [
        AssistantMessage(tool_calls=(call,)),
        ToolMessage(call_id="big", name="read_file", content="z" * 40_000),
    ]
    step = await subject.check(messages, system, ())
    assert step is not None
    assert step.after < step.before
    assert await subject.check(messages, system, ()) is None


async def test_a_refused_request_teaches_the_true_window(tmp_path: Path) -> None:
    messages = conversation(30)
    subject = compaction(tmp_path, 1_000_000)
    assert await subject.check(messages, SYSTEM, ()) is None
    step = await subject.force(messages, SYSTEM, ())
    assert step.after < 0.9 * step.before
    more = messages + conversation(60, prefix="d")[1:]
    assert await subject.check(more, SYSTEM, ()) is not None  # it is not a million any more


@pytest.mark.req("CMP-03")
def test_growth_is_tracked_from_the_first_warning() -> None:
    trend = Trend()
    trend.note(500, Stage.NONE)
    assert trend.sentence() == ""
    for tokens, stage in [(700, Stage.WARN), (800, Stage.NONE), (1_000, Stage.NONE), (600, Stage.MASK)]:
        trend.note(tokens, stage)
    assert trend.per_turn() == 150
    assert "150 tokens a turn" in trend.sentence()
    for tokens in range(10_000):
        trend.note(tokens, Stage.NONE)
    assert trend.per_turn() == 1


@pytest.mark.req("TOR-08", "C-17")
def test_the_summariser_gets_no_thinking_blocks_and_bounded_texts() -> None:  # M21, C-17
    call = ToolCall(id="t", name="write_file", arguments={"file_path": "a.py", "content": "c" * 9_000})
    blocks = ({"type": "thinking", "signature": "sig1"}, {"type": "redacted_thinking", "data": "zz"})
    said = AssistantMessage(content="s" * 9_000, tool_calls=(call,), thinking=blocks)
    (short,) = condensed((said,))
    assert isinstance(short, AssistantMessage)
    assert short.thinking == ()
    assert said.thinking == blocks
    assert len(told(short)) < 2_000
    assert "write_file" in told(short)
    assert "a.py" in told(short, None)


def test_the_opening_is_the_task_with_what_was_put_in_front_of_it() -> None:
    reference = UserMessage(content="file a.py: …", msg_class=MessageClass.INTERNAL)
    assert anchor([reference, UserMessage(content="go")]) == 2
    assert anchor([AssistantMessage(content="x"), UserMessage(content="go")]) == 0
    assert anchor([reference]) == 0


async def test_references_go_with_a_summary_and_the_task_stays(tmp_path: Path) -> None:
    reference = UserMessage(content="REFERENCE " * 100, msg_class=MessageClass.INTERNAL)
    messages = [reference, *conversation(20)]
    subject = compaction(tmp_path, window_for(messages, 1.0))
    await subject.check(messages, SYSTEM, ())
    view = subject.view(messages)
    assert view[0] == UserMessage(content="THE TASK")
    assert reference not in view


@pytest.mark.req("RET-09", "N-01")
async def test_in_a_small_window_results_fade_by_weight_and_keep_the_prefix_meanwhile(tmp_path: Path) -> None:
    messages = conversation(20, chars=2_000)
    subject = Compaction(Window(16_000, reserve=0, small=16_000), Summariser(), tmp_path)
    room, half = 3_200, 1_600  # a fifth of the window, and what is left of it after a stage
    changed: list[int] = []
    sent: tuple[Message, ...] = ()
    for turn in range(20):
        said = messages[: 1 + 2 * (turn + 1)]
        step = await subject.check(said, SYSTEM, ())
        view = subject.view(said)
        assert subject.shown.weight(said) <= room
        if step is None:
            assert view[: len(sent)] == sent
        else:
            assert step.stage is Stage.MASK
            assert subject.shown.weight(said) <= half
            changed.append(turn)
        sent = view
    assert 2 < len(changed) < 8
    assert [text.startswith("result") for text in shown(sent)[-3:]] == [True] * 3
    large = Compaction(Window(16_000, reserve=0, small=15_999), Summariser(), tmp_path / "large")
    assert await large.check(messages[:17], SYSTEM, ()) is None


@pytest.mark.req("RET-09")
async def test_results_that_the_model_has_not_seen_never_fade(tmp_path: Path) -> None:
    calls = tuple(ToolCall(id=f"p{n}", name="read_file") for n in range(8))
    results = [ToolMessage(call_id=c.id, name=c.name, content="result " + "x" * 2_000) for c in calls]
    messages = [*conversation(2, chars=2_000), AssistantMessage(tool_calls=calls), *results]
    subject = Compaction(Window(16_000, reserve=0, small=64_000), Summariser(), tmp_path)
    step = await subject.check(messages, SYSTEM, ())
    assert step is not None
    assert [text.startswith("result") for text in shown(subject.view(messages))] == [False] * 2 + [True] * 8
    assert await subject.check(messages, SYSTEM, ()) is None
