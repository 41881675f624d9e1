"""Events folded into blocks, answers cut into finished pieces, rows that fit: the pure parts of the screen (TUI-04, TUI-05)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.core.approval import ApprovalAnswer, Mode
from opendev.core.chat import Question, Usage
from opendev.core.events import (
    AgentFinished,
    AgentStarted,
    ApprovalAnswered,
    AssistantText,
    Compacted,
    Cost,
    Event,
    ProcessChanged,
    QuestionAsked,
    RunFinished,
    RunStarted,
    TextDelta,
    TodoLine,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from opendev.policy.visible import visible
from opendev.ui.repl import feed as feeds
from opendev.ui.repl.dialogs import QuestionDialog, Waiting
from opendev.ui.repl.feed import Block, Feed
from opendev.ui.repl.live import View, above, clip, toolbar, wrap
from opendev.ui.repl.paint import Painter
from opendev.ui.repl.stream import MAX_OPEN, Stream
from prompt_toolkit.utils import get_cwidth
from support.screens import ESCAPES, STATUS, asks


def told(*events: Event) -> list[Block]:
    feed = Feed()
    return [block for event in events for block in feed.take(event)]


def ran(output: str, *, ok: bool = True, summary: str = "✓ fine") -> list[Block]:
    return told(
        ToolStarted(agent="m", call_id="c", tool="run_command", arguments={"command": "make\ntest"}),
        ToolOutput(agent="m", call_id="c", text=output),
        ToolFinished(agent="m", call_id="c", tool="run_command", ok=ok, summary=summary, wall_s=2.04),
    )


@pytest.mark.req("TUI-05")
def test_a_command_is_one_line_and_the_end_of_its_output() -> None:
    lines = "".join(f"line {number}\n" for number in range(20))
    assert ran(lines) == [
        Block("tool", "run_command make test", "2.0 s"),
        Block("output", "line 17\nline 18\nline 19", "17 more lines"),
    ]
    failed = ran(lines + "last\x1b[2K", ok=False, summary="✗ Error: exit 1")
    assert failed[0] == Block("tool", "run_command make test", "exit 1 · 2.0 s", ok=False)
    assert failed[1].text.endswith("last\\x1b[2K")
    assert failed[1].note == "13 more lines"
    assert ran("") == [Block("tool", "run_command make test", "fine · 2.0 s")]


def test_a_progress_bar_is_its_last_state() -> None:
    assert ran("10%\r50%\r100%\n")[1].text == "100%"


def test_the_words_with_which_the_agent_ends_are_its_answer_once() -> None:
    end = ToolStarted(agent="m", call_id="c", tool="task_complete", arguments={"summary": "All done."})
    assert told(end) == [Block("answer", "All done.")]
    assert told(AssistantText(agent="m", text="All done."), end) == [Block("answer", "All done.")]


@pytest.mark.req("TUI-05")
def test_todos_are_listed_when_they_are_new_and_count_when_they_change() -> None:
    feed = Feed()
    two = (TodoLine(id="1", text="one\x07", state="doing"), TodoLine(id="2", text="two", state="todo"))
    assert feed.take(TodosChanged(todos=two)) == [Block("todo", "▸ one\\x07\n☐ two")]
    after = (two[0].model_copy(update={"state": "done"}), two[1].model_copy(update={"state": "doing"}))
    assert feed.take(TodosChanged(todos=after)) == []
    view = View(feed, STATUS.model_copy(update={"busy": True}), seconds=3)
    shown = ["".join(text for _, text in row) for row in above(view, 80, 20)]
    assert shown == ["", "  todos 1/2 · two", "Working · 3 s · Esc interrupts"]


@pytest.mark.req("TUI-05")
def test_agents_compactions_processes_and_answers() -> None:
    blocks = told(
        AgentStarted(agent="e", name="Explorer", parent="m"),
        AssistantText(agent="e", text="I found\nit."),
        AgentFinished(agent="e", name="Explorer", status="failed", turns=3, usage=Usage(cost_usd=0.5)),
        Compacted(agent="m", stage="prune", before=9_000, after=100),
        ProcessChanged(id="p", command="npm start", pid=1, state="failed", exit_code=1),
        asks("rm a"),
        ApprovalAnswered(request_id="q1", answer=ApprovalAnswer(decision="deny", digest="d", note="no")),
    )
    assert [(block.text, block.note, block.ok) for block in blocks] == [
        ("Explorer starts", "", True),
        ("Explorer: I found it.", "", True),
        ("Explorer failed", "3 turns · $0.5000", False),
        ("context prune: 9,000 to 100 tokens", "", True),
        ("background task p failed, exit code 1", "npm start", True),
        ("denied: run_command rm a", "no", True),
    ]


@pytest.mark.req("TUI-04")
def test_the_end_of_a_turn_says_what_it_took() -> None:
    end = told(
        Cost(total=Usage(input=100, cost_usd=1.0), calls=1),
        RunStarted(what="prompt", at="2026-01-01T00:00:00.000+00:00"),
        Cost(total=Usage(input=1_300, output=34, cost_usd=1.25), calls=2),
        RunFinished(status="done", exit_code=0, at="2026-01-01T00:00:12.300+00:00"),
    )
    assert end == [Block("end", "done", "12 s · 1,234 tokens · $0.2500")]


@pytest.mark.req("ARC-05")
def test_what_the_feed_keeps_is_bounded() -> None:
    feed = Feed()
    for number in range(feeds.AGENTS_MAX + 50):
        feed.take(AgentStarted(agent=f"e{number}", name="E", parent="m"))
        feed.take(ToolStarted(agent="m", call_id=str(number), tool="t", arguments={}))
        feed.take(asks(id=str(number)))
        feed.take(ToolOutput(agent="m", call_id="0", text="x" * 5_000))
    assert (len(feed.agents), len(feed.calls), len(feed.asked)) == (
        feeds.AGENTS_MAX,
        feeds.CALLS_MAX,
        feeds.ASKED_MAX,
    )
    assert len(feed.calls["0"].rest) <= feeds.TEXT_MAX
    feed.take(RunFinished(status="done", exit_code=0))
    assert (feed.agents, feed.calls) == ({}, {})


ANSWER = "One.\n\n```py\na\n\nb\n```\n\n1. x\n\n   more of x\n\n2. y\n"


def test_an_answer_is_cut_at_empty_lines_outside_of_code() -> None:
    stream = Stream()
    blocks = [block for char in ANSWER for block in stream.feed(char)]
    assert blocks == ["One.\n\n", "```py\na\n\nb\n```\n\n", "1. x\n\n   more of x\n\n"]
    assert stream.open == "2. y\n"
    assert stream.end(ANSWER) == ["2. y\n"]
    assert (stream.open, stream.end("next")) == ("", ["next"])


@given(st.text("ab \n`~", max_size=300), st.integers(1, 7))
def test_nothing_of_an_answer_is_lost_or_said_twice(text: str, size: int) -> None:
    stream = Stream()
    pieces = [block for at in range(0, len(text), size) for block in stream.feed(text[at : at + size])]
    assert "".join(pieces) + stream.open == text
    assert "".join(pieces + stream.end(text)).strip() == text.strip()


def test_a_second_try_is_told_whole_and_an_interrupted_answer_as_it_stands() -> None:
    stream = Stream()
    assert stream.feed("Hello.\n\nwor") == ["Hello.\n\n"]
    assert stream.end("Goodbye.") == ["Goodbye."]
    stream.feed("Half")
    assert stream.flush() == ["Half"]
    assert stream.end("New.") == ["New."]


@pytest.mark.req("ARC-05")
def test_an_endless_block_is_bounded() -> None:
    stream = Stream()
    stream.feed("```\n" + "x" * (5 * MAX_OPEN))
    assert len(stream.open) < MAX_OPEN


def test_a_delta_is_drawn_above_the_prompt_without_control_characters() -> None:
    feed = Feed()
    feed.take(TextDelta(agent="m", text="wor\x1b[2Jking"))
    rows = above(View(feed, STATUS), 40, 10)
    assert rows[-1] == [("", "  wor\\x1b[2Jking")]


TEXTS = (
    "早上好" * 20,
    "👨‍👩‍👧 " * 12,
    "e\u0301" * 60,
    "กำ" * 40,
    "plain words " * 20,
    "\u202eabc",
    "x" * 200,
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [10, 40])
def test_rows_fit(text: str, width: int) -> None:
    assert all(get_cwidth(row) <= width for row in wrap(text, width))
    assert get_cwidth(clip(text, width)) <= width
    assert "".join(wrap(text, width)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.req("TUI-04")
@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_the_figures_fit(width: int) -> None:
    status = STATUS.model_copy(update={"mode": Mode.PLAN, "model": "provider/" + "m" * 30, "agents": ("Coder",) * 5, "tasks": 2})  # fmt: skip
    text = "".join(part for _, part in toolbar(View(Feed(), status), width))
    assert get_cwidth(text) <= width
    assert text.startswith("  plan mode")
    assert width < 200 or text.endswith("5 agents: Coder, Coder, Coder, Coder, Coder · 2 background tasks")


@pytest.mark.req("TUI-02")
@pytest.mark.parametrize("height", [8, 12, 20, 40])
@pytest.mark.parametrize("width", [30, 40, 80])
def test_every_choice_is_on_the_screen_whatever_its_size(width: int, height: int) -> None:
    waiting = Waiting()
    waiting.take(asks("echo " + "long " * 200), str)
    rows = above(View(Feed(), STATUS, dialog=waiting.first), width, height)
    text = "\n".join("".join(part for _, part in row) for row in rows)
    assert len(rows) <= height
    for label in ("Allow once", "Allow in this session", "Always allow", "› n Deny"):
        assert label in " ".join(text.split())
    assert all(get_cwidth(line) <= width for line in text.split("\n"))


def test_ticks_are_drawn() -> None:
    asked = QuestionAsked(
        agent="", request_id="q", questions=(Question(text="?", options=("S", "M"), multiple=True),)
    )
    dialog = QuestionDialog(asked, "Explorer").press("2")
    assert isinstance(dialog, QuestionDialog)
    text = ["".join(part for _, part in row) for row in above(View(Feed(), STATUS, dialog=dialog), 60, 20)]
    assert text[1] == "? Explorer asks"
    assert text[3:5] == ["    [ ] 1  S", "  › [x] 2  M"]


MARKUP = "# Head\n\n[red]x[/red] List<String> [t](http://a.b/c) ![p](http://e.v/il)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.mark.parametrize("width", [20, 40, 80])
def test_markdown_swallows_nothing_and_hides_no_link(width: int) -> None:
    text = Painter(plain=False).paint([Block("answer", MARKUP)], width).replace("\n", "")
    for part in ("Head", "[red]x[/red]", "List<String>", "http://a.b/c", "http://e.v/il"):
        assert part in "".join(ESCAPES.sub("", text).split()), part
    assert "\x1b]8" not in text


@pytest.mark.parametrize(
    "kind",
    ["you", "answer", "tool", "output", "warn", "note", "agent", "end", "card", "plan", "todo", "text"],
)
@pytest.mark.parametrize("text", TEXTS)
def test_no_line_overflows(kind: feeds.Kind, text: str) -> None:
    for width in (20, 40, 80):
        painted = Painter(plain=True).paint(
            [Block(kind, visible(text), "a note " * 8, ok=False, depth=1)], width
        )
        assert all(get_cwidth(line) <= width for line in painted.split("\n"))


def test_ascii_terminals_get_ascii() -> None:
    painter = Painter(plain=True, unicode=False)
    text = painter.paint(
        [Block("you", "早上"), Block("tool", "x", "y · z", ok=False), Block("todo", "☑ a")], 80
    )
    assert text.isascii()
    assert "x x  y - z" in text


def test_a_long_call_is_one_row_and_what_came_of_it_stands_below() -> None:
    paint = Painter(plain=True).paint
    assert paint([Block("tool", "x" * 50)], 20) == "● " + "x" * 17 + "…\n"
    assert paint([Block("tool", "x" * 50, "exit 1", ok=False)], 20) == "✗ " + "x" * 17 + "…\n  exit 1\n"
    assert paint([Block("tool", "short", "fine")], 20) == "● short  fine\n"
