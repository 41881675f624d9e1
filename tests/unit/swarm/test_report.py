"""The report: exit codes, status, and its four forms with foreign text in them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.exits import Exit
from opendev.core.ticket import TASK_EXIT, RunReport, SwarmPlan, TaskStatus, VerifyOutcome
from opendev.swarm.books import MAX_NOTES, Books
from opendev.swarm.report import Ending, build_report, render
from support.fake_swarm import Bench, plan
from support.fixed_clock import FixedClock
from support.repos import make_repo

EVIL = "<script>alert(1)</script>\x1b[2J\u202e"


async def built(
    tmp_path: Path, found: dict[str, TaskStatus], failure: OpenDevError | None = None
) -> RunReport:
    tickets: SwarmPlan = plan(*({"id": name} for name in found))
    bench = Bench(make_repo(tmp_path / "repo"), tmp_path / "home", {})
    ports, settings = bench.wiring(tickets)
    books = Books(FixedClock(), tuple(found))
    for name, status in found.items():
        book = books.tasks[name]
        book.status, book.detail = status, EVIL
        book.verify = VerifyOutcome(command="make & test", outcome="fail", exit_code=1)
    books.note(EVIL)
    return await build_report(tickets, ports, settings, books, Ending(failure, "h" * 40, ("b1",), 1.5))


CASES = [
    ([TaskStatus.MERGED], "succeeded", 0),
    ([TaskStatus.MERGED, TaskStatus.AGENT_FAILED], "partial", 1),
    ([TaskStatus.VERIFY_FAILED, TaskStatus.SKIPPED], "failed", 3),
    ([TaskStatus.VERIFY_FAILED, TaskStatus.CONFLICT], "failed", 4),
    ([TaskStatus.CONFLICT, TaskStatus.BUDGET, TaskStatus.MERGED], "partial", 5),
    ([TaskStatus.BUDGET, TaskStatus.INFRA], "failed", 6),
    ([TaskStatus.INFRA, TaskStatus.BLOCKED], "failed", 7),
    ([TaskStatus.MERGED, TaskStatus.CANCELLED, TaskStatus.BLOCKED], "cancelled", 130),
    ([TaskStatus.SETUP_FAILED], "failed", 6),
    ([TaskStatus.TIMEOUT, TaskStatus.REJECTED, TaskStatus.OUT_OF_SCOPE], "failed", 1),
]


@pytest.mark.parametrize(("statuses", "status", "code"), CASES)
async def test_the_highest_cause_wins(
    tmp_path: Path, statuses: list[TaskStatus], status: str, code: int
) -> None:
    found = await built(tmp_path, {f"t{n}": item for n, item in enumerate(statuses)})
    assert (found.status, found.exit_code) == (status, code)


def test_every_status_has_an_exit_code_and_only_merged_is_zero() -> None:
    assert set(TASK_EXIT) == set(TaskStatus)
    assert [status for status, code in TASK_EXIT.items() if code is Exit.DONE] == [TaskStatus.MERGED]


async def test_a_failure_of_the_run_itself_counts(tmp_path: Path) -> None:
    error = OpenDevError(ErrorKind.INFRA, "The disk is full.")
    found = await built(tmp_path, {"a": TaskStatus.MERGED}, error)
    assert (found.status, found.exit_code, found.notes[0]) == ("partial", 6, "The disk is full.")


@pytest.mark.req("SWM-15")
async def test_the_four_forms(tmp_path: Path) -> None:
    found = await built(
        tmp_path, {"a": TaskStatus.MERGED, "b": TaskStatus.AGENT_FAILED, "c": TaskStatus.SKIPPED}
    )
    assert RunReport.model_validate(json.loads(render(found, "json"))) == found
    text = render(found, "text")
    assert text.startswith("Run r1 partial (exit 1): 1 of 3 merged into swarm/x at hhhhhhhhhhhh")
    assert "\x1b" not in text
    assert "\\x1b[2J\\u202e" in text
    page = render(found, "html")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    suite = ElementTree.fromstring(render(found, "junit").partition("\n")[2])
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    assert [case.get("name") for case in suite] == ["a", "b", "c"]


def test_notes_are_bounded() -> None:
    books = Books(FixedClock(), ())
    for number in range(1_000):
        books.note(str(number))
    assert len(books.notes) == MAX_NOTES + 1
    assert books.notes[-1].startswith("More notes")
