"""The screen on a real pseudo-terminal: keys in, bytes out, the terminal put back (TUI-02..05, shared cases U01, U03, U06, U08, U11)."""

import asyncio
import re
from pathlib import Path

import pytest
from opendev.core.approval import Mode
from opendev.core.chat import Question
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.events import (
    AgentFinished,
    AgentStarted,
    AssistantText,
    GateDecided,
    Notice,
    QuestionAsked,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from opendev.core.ops import AnswerApproval, AnswerQuestion, Interrupt
from opendev.ui.repl.feed import Block
from opendev.ui.repl.ports import CommandResult
from opendev.ui.repl.printer import BLOCKS_MAX
from opendev.ui.repl.screen import BOUNCE_S, LINES_MAX
from support.screens import COLOUR, STATUS, asks, on_terminal
from support.waiting import until


@pytest.mark.req("TUI-03")
async def test_a_line_is_sent_and_kept_in_the_history(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.type("hello\r")
        await until(lambda: pty.talk.sent == ["hello"])
        await pty.sees("› hello")
        pty.type("\x1b[A")
        await pty.has("hello")
    async with on_terminal(tmp_path) as pty:
        pty.type("\x1b[A")
        await pty.has("hello")
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "keys",
    [
        "\x1b[200~line1\nline2\nline3\x1b[201~",
        "line1\rline2\rline3",
        "line1\nline2\nline3",
    ],
)
async def test_several_lines_are_one_draft_until_enter(tmp_path: Path, keys: str) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.type(keys)
        await pty.has("line1\nline2\nline3")
        assert pty.talk.sent == []
        pty.type("\r")
        await until(lambda: pty.talk.sent == ["line1\nline2\nline3"])


async def test_a_backslash_or_alt_enter_begins_a_new_line(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        for keys, draft in (
            ("one\\", "one\\"),
            ("\r", "one\n"),
            ("two", "one\ntwo"),
            ("\x1b\r", "one\ntwo\n"),
        ):
            pty.type(keys)
            await pty.has(draft)
        assert pty.talk.sent == []
        pty.type("\x7f")
        await pty.has("one\ntwo")
        pty.type("\r")
        await until(lambda: pty.talk.sent == ["one\ntwo"])


async def test_a_paste_in_wide_characters_and_backspace_by_what_is_seen(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.type("请联网搜索,\rline2")
        await pty.has("请联网搜索,\nline2")
        pty.type("\x03")
        await pty.has("")
        pty.type("早上e\u0301👨‍👩‍👧")
        await pty.has("早上e\u0301👨‍👩‍👧")
        for left in ("早上e\u0301", "早上", "早"):
            pty.type("\x7f")
            await pty.has(left)
        pty.type("\x1b[D")
        pty.type("x")
        await pty.has("x早")


@pytest.mark.req("TUI-03")
async def test_commands_and_files_are_completed(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.type("/co")
        await pty.sees("does compact")
        pty.type("\t")
        await pty.has("/compact")
        pty.type("\r")  # takes what is marked; the next one sends
        pty.type("\r")
        await until(lambda: pty.talk.sent == ["/compact"])
        pty.forget()
        pty.type("see @src")
        await pty.sees("src/b.py")
        pty.type("\x1b[B")
        await pty.has("see @src/a.py")
        pty.type("\x1b")  # closes the list, nothing else
        await asyncio.sleep(0.3)
        assert pty.talk.acts == []


@pytest.mark.req("TUI-03")
async def test_shift_tab_ctrl_l_and_leaving(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.type("\x1b[Z")
        await pty.sees("plan mode")
        assert pty.talk.now.mode is Mode.PLAN
        pty.forget()
        pty.type("\x0c")
        await until(lambda: b"\x1b[2J" in pty.raw)
        pty.type("abc\x04")  # something is typed: Ctrl-D leaves nothing
        await pty.has("abc")
        pty.type("\x03")
        await pty.has("")
        pty.type("\x04")
        await pty.ends()
        assert pty.task.exception() is None
        assert pty.modes() == pty.before


@pytest.mark.req("TUI-03")
async def test_ctrl_c_interrupts_and_twice_leaves(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.busy()
        pty.talk.put(RunStarted(what="prompt"))
        await pty.sees("Working")
        pty.type("\x03")
        await until(lambda: pty.talk.acts == [Interrupt()])
        await pty.sees("Stopping")
        pty.talk.busy(yes=False)
        pty.talk.put(RunFinished(status="cancelled", exit_code=130))
        await pty.sees("■ interrupted")
        pty.type("\x03")
        await pty.sees("again to leave")
        pty.type("\x03")
        await pty.ends()
        assert pty.talk.acts == [Interrupt()]


@pytest.mark.parametrize("keys", ["\x1b[", "\x1bx", "\x1bOA", "\x1b[1;3A"])
async def test_alt_and_a_key_does_not_interrupt(tmp_path: Path, keys: str) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.busy()
        pty.type("draft")
        await pty.has("draft")
        pty.type(keys)
        await asyncio.sleep(0.3)
        assert pty.talk.acts == []
        assert "draft" in pty.draft


async def test_a_sequence_that_comes_in_two_pieces_is_no_esc_and_esc_is_one(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.busy()
        pty.type("\x1b")
        await asyncio.sleep(0.05)
        pty.type("[A")
        await asyncio.sleep(0.3)
        assert pty.talk.acts == []
        pty.type("\x1b")
        await until(lambda: pty.talk.acts == [Interrupt()])


@pytest.mark.req("TUI-02", "APR-08")
async def test_an_approval_is_answered_by_a_key_and_only_once(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.put(asks("npm install x", id="a", agent="Coder"), asks("npm install y", id="b"))
        await pty.sees("Coder (Coder-1) asks to run run_command")
        await pty.sees("command: npm install x")
        await pty.sees("commands that begin with the words `npm install`")
        await pty.sees("1 more waits")
        pty.type("yy")  # the second one is too quick to be meant for the next question
        await until(lambda: len(pty.talk.acts) == 1)
        await asyncio.sleep(2 * BOUNCE_S)
        assert len(pty.talk.acts) == 1
        pty.type("n")
        await until(lambda: len(pty.talk.acts) == 2)
        pty.type("y")  # nothing waits any more: it is text
        await pty.has("y")
        answers = [act for act in pty.talk.acts if isinstance(act, AnswerApproval)]
        assert [(one.request_id, one.answer.decision) for one in answers] == [("a", "once"), ("b", "deny")]
        assert answers[0].answer.digest == asks("npm install x").request.digest


@pytest.mark.req("TUI-02", "TSK-06")
async def test_a_plan_is_shown_whole_and_sent_back_with_a_note(tmp_path: Path) -> None:
    plan = asks(
        tool="present_plan", arguments={"plan_file_path": "p"}, keep="session", card="# Goal\n\n- all\x1b[2K"
    )
    async with on_terminal(tmp_path) as pty:
        pty.talk.put(plan)
        for text in (
            "# Goal",
            "- all\\x1b[2K",
            "Approve the plan above?",
            "Approve with its edits",
            "Change it",
        ):
            await pty.sees(text)
        pty.type("n")
        await pty.sees("what should change ›")
        pty.type("smaller")
        await until(lambda: pty.screen.bottom.answer.text == "smaller")
        pty.type("\x1b")  # back to the menu: nothing is decided
        await pty.sees("y  Approve")
        await until(lambda: pty.screen.menu)
        pty.type("n")
        await until(lambda: not pty.screen.menu)
        pty.type("smaller steps\r")
        await until(lambda: len(pty.talk.acts) == 1)
        (act,) = pty.talk.acts
        assert isinstance(act, AnswerApproval)
        assert (act.answer.decision, act.answer.note) == ("deny", "smaller steps")


@pytest.mark.req("TUI-02")
async def test_esc_cancels_the_question_and_not_the_agent(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.busy()
        pty.talk.put(asks())
        await pty.sees("Allow once")
        pty.type("\x1b")
        await until(lambda: len(pty.talk.acts) == 1)
        act = pty.talk.acts[0]
        assert isinstance(act, AnswerApproval)
        assert act.answer.decision == "deny"


@pytest.mark.req("APR-08")
async def test_typing_hands_allow_nothing_when_a_menu_appears(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.type("reall")
        await pty.has("reall")
        pty.talk.put(asks())
        await pty.sees("Allow once")
        pty.type("y")
        await pty.has("really")
        pty.type("\x1b[200~y\ny\x1b[201~")
        await pty.has("reallyy\ny")
        assert pty.talk.acts == []
        await asyncio.sleep(0.9)
        pty.type("y")
        await until(lambda: len(pty.talk.acts) == 1)
        assert pty.draft == "reallyy\ny"


@pytest.mark.req("TUI-02", "APR-08")
async def test_a_long_command_is_shown_whole_and_again_after_ctrl_l(tmp_path: Path) -> None:
    long = "echo " + " ".join(f"w{number}" for number in range(400)) + " END\x1b[2K"
    async with on_terminal(tmp_path, rows=16, columns=40) as pty:
        pty.talk.put(asks(long, card=f"run_command\ncommand: {long}"))
        await pty.sees("Allow once")
        await pty.sees("END\\x1b[2K")
        pty.forget()
        pty.type("\x0c")
        await pty.sees("END\\x1b[2K")
        await pty.sees("Deny")


@pytest.mark.req("TUI-02", "TSK-01")
async def test_questions_with_text_of_ones_own(tmp_path: Path) -> None:
    question = Question(text="Which?", options=("Red", "Other"))
    async with on_terminal(tmp_path) as pty:
        pty.type("my draft")
        await pty.has("my draft")
        pty.talk.put(QuestionAsked(agent="a", request_id="q", questions=(question,)))
        await pty.sees("1  Red")
        await asyncio.sleep(0.8)
        pty.type("2")
        await pty.sees("answer ›")
        pty.type("green\r")
        await until(lambda: pty.talk.acts == [AnswerQuestion(request_id="q", texts=("green",))])
        assert pty.draft == "my draft"


@pytest.mark.req("TUI-05")
async def test_what_happens_is_printed_as_it_happens(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.put(
            RunStarted(what="prompt"),
            AgentStarted(agent="m", name="Main"),
            AgentStarted(agent="e", name="Explorer", parent="m"),
            ToolStarted(agent="e", call_id="1", tool="read_file", arguments={"file_path": "a\x1b[2Jb"}),
            ToolFinished(agent="e", call_id="1", tool="read_file", ok=True, summary="✓ 3 lines"),
            GateDecided(agent="m", tool="run_command", decision="deny", layer="floor", reason="rm -rf /"),
            AgentFinished(agent="e", name="Explorer", status="done", turns=2),
            Notice(level="warning", text="hm\x07"),
            AssistantText(agent="m", text="All `done`."),
            RunFinished(status="done", exit_code=0),
        )
        for line in (
            "◆ Explorer starts",
            "● Explorer: read_file a\\x1b[2Jb  3 lines",
            "! run_command was refused by floor: rm -rf /",
            "◆ Explorer done  2 turns",
            "! hm\\x07",
            "All `done`.",
            "0 tokens · $0.0000",
        ):
            await pty.sees(line)


@pytest.mark.req("TUI-04")
async def test_the_figures_are_live(tmp_path: Path) -> None:
    async with on_terminal(tmp_path, columns=100) as pty:
        await pty.sees("normal · test/m · $0.0000 · 0% context")
        usage = STATUS.usage.model_copy(update={"cost_usd": 0.25})
        pty.talk.now = STATUS.model_copy(update={"usage": usage, "context": 0.5, "agents": ("Coder", "Explorer"), "tasks": 1})  # fmt: skip
        await pty.sees("Explorer")  # by itself: no key, no event
        pty.forget()
        pty.type("\x0c")  # drawn anew as a whole
        await pty.sees("$0.2500 · 50% context · 2 agents: Coder, Explorer · 1 background task")


async def test_commands_clear_tell_and_leave(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.results["/clear"] = CommandResult(
            success=True, message="A new session.\x1b[2J", data={"clear": True}
        )
        pty.talk.results["/no"] = CommandResult(success=False, message="There is no command /no.")
        pty.type("/no\r")
        await pty.sees("! There is no command /no.")
        pty.type("/clear\r")
        await pty.sees("A new session.\\x1b[2J")
        assert b"\x1b[2J" in pty.raw
        pty.type("/exit\r")
        await pty.ends()
        assert pty.modes() == pty.before


async def test_a_failure_ends_the_screen_and_the_terminal_is_put_back(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        assert pty.modes() != pty.before
        pty.talk.breaks(ValueError("broken"))
        await pty.ends()
        assert isinstance(pty.task.exception(), ValueError)
        assert pty.modes() == pty.before
        assert pty.raw.rstrip().endswith((b"\x1b[?2004l", b"\x1b[?25h", b"\x1b[?7h", b"\x1b[J")), pty.raw[
            -200:
        ]


async def test_a_cancelled_screen_puts_the_terminal_back(tmp_path: Path) -> None:
    async with on_terminal(tmp_path, abilities=COLOUR) as pty:
        pty.task.cancel()
        await pty.ends()
        assert pty.task.cancelled()
        assert pty.modes() == pty.before
        for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?25l", b"\x1b[?25h")):
            assert pty.raw.rfind(off) >= pty.raw.rfind(on)


async def test_without_colour_there_is_no_sgr(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.put(AssistantText(text="# Head\n**bold** `code`"), asks(), Notice(level="error", text="bad"))
        await pty.sees("Allow once")
        await pty.sees("! bad")
        pty.type("y")
        pty.type("/he")
        await pty.sees("does help")
        assert re.search(rb"\x1b\[[0-9;]*m", pty.raw) is None


async def test_a_long_stream_is_written_once(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number}: " + "some words " * 8 for number in range(130))
    async with on_terminal(tmp_path) as pty:
        pty.forget()
        for at in range(0, len(text), 6):
            pty.talk.put(TextDelta(text=text[at : at + 6]))
            if at % 60 == 0:
                await asyncio.sleep(0.001)
        pty.talk.put(AssistantText(text=text))
        await pty.sees("Paragraph 129")
        await asyncio.sleep(0.2)
        assert len(pty.raw) < 5 * len(text)
        assert b"\x1b[2J" not in pty.raw
        assert b"\x1b[3J" not in pty.raw
        assert pty.text.count("Paragraph 17:") <= 2  # once as it streams, once for good


async def test_an_agent_error_is_told_at_the_end(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        error = ErrorInfo(kind=ErrorKind.INFRA, message="The model is gone.")
        pty.talk.put(
            RunStarted(what="prompt"),
            AgentFinished(agent="m", name="Main", status="infra", error=error),
            RunFinished(status="infra", exit_code=6),
        )
        await pty.sees("■ infra: The model is gone.")


@pytest.mark.req("ARC-05")
async def test_lines_that_wait_are_bounded(tmp_path: Path) -> None:
    async with on_terminal(tmp_path) as pty:
        pty.talk.held.clear()  # the first command does not end
        screen = pty.screen
        for number in range(LINES_MAX + 5):
            screen.bottom.draft.text = str(number)
            screen.send(screen.bottom.draft)
            await asyncio.sleep(0)
        assert screen.lines.qsize() <= LINES_MAX
        assert pty.draft == str(LINES_MAX + 4)
        screen.show(*[Block("note", "x")] * (BLOCKS_MAX + 5))
        assert len(screen.printer.blocks) == BLOCKS_MAX
