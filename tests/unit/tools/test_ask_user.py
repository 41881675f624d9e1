"""ask_user and the questions it may ask: bounds, the free answer, nobody there (TSK-01, TSK-02)."""

import json
from pathlib import Path
from typing import Any

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.approval import ApprovalLevel
from opendev.core.chat import Question
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.tools.ask_user import TOOL
from opendev.tools.questions import checked
from opendev.tools.schema import parse_args
from support.agents import Bench
from support.scripted_model import call, calls, says
from support.tool_context import FakeAsker, make_context


def item(**other: Any) -> dict[str, Any]:
    options = [
        {"label": "SQLite", "description": "one file"},
        {"label": "Postgres", "description": "a server"},
    ]
    return {"question": "Which database?", "header": "Database", "options": options} | other


@pytest.mark.req("TSK-01")
async def test_the_person_sees_options_descriptions_and_other(tmp_path: Path) -> None:
    asker = FakeAsker(answers=("Postgres", "DuckDB, it is embedded"))
    args = parse_args(TOOL, {"questions": [item(), item(question="And later?", multiSelect=True)]})
    result = await TOOL.run(args, make_context(tmp_path, ask=asker))
    (asked,) = asker.questions
    assert asked[0] == Question(
        text="Which database?",
        header="Database",
        options=("SQLite", "Postgres", "Other"),
        descriptions=("one file", "a server", "In your own words."),
    )
    assert asked[1].multiple
    assert result.ok
    assert result.text == "Which database?\n→ Postgres\nAnd later?\n→ DuckDB, it is embedded"
    assert result.data == {"answers": ["Postgres", "DuckDB, it is embedded"]}


@pytest.mark.req("TSK-01")
@pytest.mark.parametrize(
    "questions",
    [
        [],
        [item() for _ in range(5)],
        [item(options=[{"label": "only"}])],
        [item(options=[{"label": str(n)} for n in range(5)])],
        [item(header="thirteen char")],
        [item(options=[{"description": "no label"}, {"label": "b"}])],
    ],
)
def test_bounds_are_refused_before_anybody_is_asked(questions: list[dict[str, Any]]) -> None:
    with pytest.raises(OpenDevError, match="arguments of ask_user are wrong"):
        parse_args(TOOL, {"questions": questions})


async def test_an_option_called_other_is_not_doubled(tmp_path: Path) -> None:
    asker = FakeAsker(answers=("a",))
    args = parse_args(TOOL, {"questions": [item(options=[{"label": "a"}, {"label": "OTHER"}])]})
    await TOOL.run(args, make_context(tmp_path, ask=asker))
    assert asker.questions[0][0].options == ("a", "Other")


@pytest.mark.req("TSK-02")
async def test_nobody_answers_and_the_run_says_so(tmp_path: Path) -> None:
    args = parse_args(TOOL, {"questions": [item()]})
    result = await TOOL.run(args, make_context(tmp_path, ask=FakeAsker(answers=None)))
    assert result.error is not None
    assert result.error.kind is ErrorKind.UNANSWERED
    bench = Bench(tmp_path, calls(call("ask_user", questions=[item()])), says("I cannot decide."))
    report = await bench.run()
    assert report.status is AgentStatus.UNANSWERED
    assert "Nobody answered" in str(bench.model.requests[1].messages)


@pytest.mark.req("TSK-02")
async def test_asking_needs_no_approval_at_any_level(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("ask_user", questions=[item()])), says("Postgres then."))
    bench.people.answers = ("Postgres",)
    report = await bench.run(approve=ApprovalLevel.MANUAL)
    assert (report.status, bench.people.asked) == (AgentStatus.DONE, [])
    assert "→ Postgres" in str(bench.model.requests[1].messages)


def test_the_questions_of_the_ask_user_agent_keep_the_same_bounds() -> None:
    (question,) = checked((Question(text="?", options=("a", "b", "c", "d")),))
    assert question.options == ("a", "b", "c", "d", "Other")
    assert checked((Question(text="plain"),)) == (Question(text="plain"),)
    for wrong in ((), (Question(text="?", options=("a",)),), (Question(text="?", header="x" * 13),)):
        with pytest.raises(OpenDevError):
            checked(wrong)


@pytest.mark.req("SUB-14")
async def test_the_agent_offers_other_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.people.answers = ("Green, please",)
    report = await bench.run("Ask-User", json.dumps([{"text": "Colour?", "options": ["Red", "Blue"]}]))
    assert report.text == "Colour?\n→ Green, please"
    assert (
        await bench.run("Ask-User", json.dumps([{"text": "?", "options": ["one"]}]))
    ).status is AgentStatus.FAILED
