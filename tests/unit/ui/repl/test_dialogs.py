"""What waits for the user: every key of approvals, plans and questions, in order of arrival, each answered once (TUI-02, APR-08)."""

from typing import Any

import pytest
from opendev.core.approval import ApprovalAnswer
from opendev.core.chat import Question
from opendev.core.events import ApprovalAnswered, QuestionAnswered, QuestionAsked
from opendev.core.ops import AnswerApproval, AnswerQuestion
from opendev.ui.repl.dialogs import WAITING_MAX, Answer, Dialog, Waiting
from support.screens import asks

COLOURS = Question(
    text="Which?\x1b[2J", header="Colour", options=("Red", "Blue", "Other"), descriptions=("warm", "cold", "")
)
SIZES = Question(text="Which sizes?", options=("S", "M", "Other"), multiple=True)
FREE = Question(text="Say it.")


def waiting(*events: Any) -> Waiting:
    found = Waiting()
    for event in events:
        found.take(event, lambda _agent: "Explorer")
    return found


def asked(*questions: Question) -> QuestionAsked:
    return QuestionAsked(agent="e-1", request_id="q1", questions=questions)


def play(dialog: Dialog | None, *keys: str) -> Dialog | Answer:
    """Each key: a name or character; ``text:…`` is a line that is typed, ``back`` is Esc or Ctrl-C."""
    assert dialog is not None
    now: Dialog | Answer = dialog
    for key in keys:
        now = still(now)
        now = (
            now.back() if key == "back" else now.write(key[5:]) if key.startswith("text:") else now.press(key)
        )
    return now


def still(dialog: Dialog | Answer) -> Dialog:
    """It waits on."""
    assert not isinstance(dialog, AnswerApproval | AnswerQuestion), f"answered: {dialog}"
    return dialog


def decided(answer: Dialog | Answer) -> tuple[str, str, Any]:
    assert isinstance(answer, AnswerApproval)
    return answer.answer.decision, answer.answer.note, answer.answer.arguments


@pytest.mark.req("TUI-02", "APR-08")
@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        (("y",), "once"),
        (("1",), "once"),
        (("s",), "session"),
        (("a",), "always"),
        (("n",), "deny"),
        (("back",), "deny"),
        (("enter",), "deny"),  # a stray Enter allows nothing
        (("down", "enter"), "once"),
        (("up", "up", "enter"), "session"),
    ],
)
def test_an_approval(keys: tuple[str, ...], decision: str) -> None:
    first = waiting(asks()).first
    assert decided(play(first, *keys)) == (decision, "", None)
    answer = play(first, *keys)
    assert isinstance(answer, AnswerApproval)
    assert answer.answer.digest == asks().request.digest


@pytest.mark.req("TUI-02", "TSK-06")
def test_a_plan_has_three_outcomes_and_is_sent_back_with_a_note() -> None:
    plan = asks(tool="present_plan", arguments={"plan_file_path": "p"}, keep="session", card="# Plan")
    first = waiting(plan).first
    assert decided(play(first, "y"))[0] == "once"
    assert decided(play(first, "s"))[0] == "session"
    assert decided(play(first, "n", "text:smaller steps")) == ("deny", "smaller steps", None)
    assert decided(play(first, "n", "text:")) == ("deny", "", None)
    assert decided(play(first, "n", "back", "y"))[0] == "once"
    assert decided(play(first, "back")) == ("deny", "", None)
    assert first is not None
    assert [row.label for row in first.rows] == ["Approve", "Approve with its edits", "Change it"]


@pytest.mark.req("APR-03", "TUI-02")
def test_a_call_that_must_be_changed_is_changed_before_it_is_allowed() -> None:
    first = waiting(asks("git push", must_edit=True, keep="once")).first
    typing = still(play(first, "y"))
    assert typing.entry is not None
    assert typing.entry.start == "git push"
    same = still(play(typing, "text:git push"))
    assert "nothing is changed" in same.problem
    assert decided(play(same, "text:git push origin dev")) == ("once", "", {"command": "git push origin dev"})
    write = asks(tool="write_file", arguments={"file_path": "a"}, must_edit=True, keep="once")
    other = still(play(waiting(write).first, "y"))
    assert "JSON" in still(play(other, "text:[1")).problem
    assert decided(play(other, 'text:{"file_path": "b"}')) == ("once", "", {"file_path": "b"})


@pytest.mark.req("TUI-02", "TSK-01")
@pytest.mark.parametrize(
    ("questions", "keys", "texts"),
    [
        ((COLOURS,), ("2",), ("Blue",)),
        ((COLOURS,), ("down", "enter"), ("Blue",)),
        ((COLOURS,), ("3", "text: green "), ("green",)),
        ((COLOURS,), ("3", "back", "1"), ("Red",)),
        ((COLOURS,), ("back",), ()),
        ((SIZES,), ("2", "1", "enter"), ("S, M",)),
        ((SIZES,), (" ", "down", " ", " ", "enter"), ("S",)),
        ((SIZES,), ("1", "3", "enter", "text:XL"), ("S, XL",)),
        ((FREE,), ("text:hello",), ("hello",)),
        ((COLOURS, SIZES, FREE), ("1", "2", "enter", "text:x"), ("Red", "M", "x")),
        ((COLOURS, SIZES), ("1", "back"), ("Red",)),
    ],
)
def test_questions(questions: tuple[Question, ...], keys: tuple[str, ...], texts: tuple[str, ...]) -> None:
    assert play(waiting(asked(*questions)).first, *keys) == AnswerQuestion(request_id="q1", texts=texts)


def test_an_empty_answer_is_asked_again_and_nothing_ticked_is_no_answer() -> None:
    for dialog, key in ((waiting(asked(FREE)).first, "text:  "), (waiting(asked(SIZES)).first, "enter")):
        assert still(play(dialog, key)).problem


@pytest.mark.req("SAF-07", "TUI-02")
def test_nothing_that_is_shown_can_move_the_cursor() -> None:
    for dialog in (waiting(asked(COLOURS)).first, waiting(asks("a\x1b[2K\u202e", agent="x\x07")).first):
        assert dialog is not None
        shown = [*dialog.card, dialog.title, *(row.label + row.meaning for row in dialog.rows)]
        assert not any(char in "".join(shown) for char in "\x1b\u202e\x07")


@pytest.mark.req("TUI-02")
def test_they_stand_in_line_and_an_answer_from_elsewhere_closes_the_box() -> None:
    line = waiting(asks(id="a", agent="One"), asks(id="b", agent="Two"), asked(COLOURS), asks(id="a"))
    assert [one.id for one in line.items] == ["a", "b", "q1"]
    assert line.first is not None
    assert "One" in line.first.title
    answer = ApprovalAnswer(decision="deny", digest="d")
    assert line.take(ApprovalAnswered(request_id="a", answer=answer), str)
    assert not line.take(QuestionAnswered(request_id="q1", answers=("x",)), str)
    assert not line.take(ApprovalAnswered(request_id="a", answer=answer), str)
    assert [one.id for one in line.items] == ["b"]


@pytest.mark.req("ARC-05")
def test_the_line_is_bounded() -> None:
    line = waiting(*(asks(id=str(number)) for number in range(WAITING_MAX + 5)))
    assert (len(line.items), line.turned_away) == (WAITING_MAX, 5)
