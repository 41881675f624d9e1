"""What people and scripts see of a run: lines, the board, JSON lines."""

import io
import json
import typing

import pytest
from opendev.core import events as ev
from opendev.core.approval import ApprovalAnswer, ApprovalRequest
from opendev.core.chat import Question, Usage
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.lease import Lease, Owner
from opendev.core.ticket import RunReport, SwarmPlan, TaskResult, TaskStatus, VerifyOutcome
from opendev.ui.board import ROWS, Board
from opendev.ui.headless import JsonLines
from opendev.ui.lines import SILENT, line_of
from opendev.ui.terminal import PromptLines, SwarmView
from rich.console import Console

ASK = ApprovalRequest(
    id="q1",
    agent_id="a1",
    agent="Coder",
    tool="run_command",
    arguments={},
    reason="why",
    card="rm x\x1b[2K\u202eevil",
)
REPORT = RunReport(
    run_id="r1",
    status="partial",
    exit_code=3,
    repo="/r",
    base="b" * 40,
    into="swarm/x",
    head="h" * 40,
    tasks=(
        TaskResult(id="one", status=TaskStatus.MERGED),
        TaskResult(id="two", status=TaskStatus.VERIFY_FAILED),
    ),
)
LEASE = Lease(id="l1", kind="write", repo="/r", path="/w", base="b" * 40, owner=Owner(pid=1, started=1))
SAMPLES: dict[str, tuple[ev.Event, str | None]] = {
    "run_started": (ev.RunStarted(run="r1", what="swarm"), "Run r1: swarm"),
    "agent_started": (ev.AgentStarted(agent="a1", name="Coder", task="one"), "> Coder a1 starts on one"),
    "agent_finished": (
        ev.AgentFinished(agent="a1", name="Coder", status="failed", turns=2, error=ErrorInfo(kind=ErrorKind.TOOL, message="Oh.")),
        "< Coder a1 failed after 2 turns: Oh.",
    ),
    "text_delta": (ev.TextDelta(text="x"), None),
    "assistant_text": (ev.AssistantText(text="one\ntwo\x07"), "one\ntwo\\x07"),
    "tool_started": (ev.ToolStarted(call_id="c", tool="search", arguments={"q": "a\nb"}), "search(q='a\\nb')"),
    "tool_output": (ev.ToolOutput(call_id="c", text="x"), None),
    "tool_finished": (ev.ToolFinished(call_id="c", tool="search", ok=True, summary="3 hits"), "search ok: 3 hits"),
    "process_changed": (
        ev.ProcessChanged(id="abc1234", command="npm start", pid=7, state="failed", exit_code=1),
        "background task abc1234 failed, exit code 1: npm start",
    ),
    "gate_decided": (ev.GateDecided(tool="t", decision="deny", layer="mode", reason="plan"), "! t was refused by mode: plan"),
    "approval_asked": (
        ev.ApprovalAsked(request=ASK), "? Coder asks to run run_command: rm x\\x1b[2K\\u202eevil"
    ),
    "approval_answered": (
        ev.ApprovalAnswered(request_id="q1", answer=ApprovalAnswer(decision="no_answer", digest="d")),
        "q1 was not answered, so denied",
    ),
    "question_asked": (ev.QuestionAsked(request_id="q", questions=(Question(text="Which?"),)), "? Which?"),
    "question_answered": (ev.QuestionAnswered(request_id="q", answers=None), "nobody answered"),
    "todos_changed": (ev.TodosChanged(todos=()), None),
    "compacted": (ev.Compacted(stage="prune", before=9, after=3), "context prune: 9 to 3 tokens"),
    "lease_granted": (ev.LeaseGranted(lease=LEASE), None),
    "lease_ended": (ev.LeaseEnded(lease_id="l1", how="quarantined", detail="died"), "! the working folder of l1 was quarantined: died"),
    "task_changed": (ev.TaskChanged(task="one", state="working", attempt=2), "* one: working (attempt 2)"),
    "verified": (
        ev.Verified(task="one", where="task", result=VerifyOutcome(command="t", outcome="fail", wall_s=1.25)),
        "task verification of one: fail in 1.2 s",
    ),
    "merged": (ev.Merged(task="one", commit="c" * 40, into="swarm/x"), "+ one landed on swarm/x as cccccccccccc"),
    "cost": (ev.Cost(total=Usage(cost_usd=0.5), calls=3), None),
    "notice": (ev.Notice(level="warning", text="hm"), "warning: hm"),
    "run_finished": (ev.RunFinished(run="r1", status="failed", exit_code=1), "Run r1 failed (exit 1)"),
}  # fmt: skip


def kinds() -> set[str]:
    union = typing.get_args(typing.get_args(ev.Event)[0])
    return {str(kind.model_fields["kind"].default) for kind in union}


def test_every_kind_of_event_has_a_line_or_is_named_as_silent() -> None:
    assert set(SAMPLES) == kinds()
    assert {kind for kind, (_, line) in SAMPLES.items() if line is None} == SILENT


@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_the_line_of_each_event(kind: str) -> None:
    event, expected = SAMPLES[kind]
    found = line_of(event)
    assert (found.strip() if found else found) == expected


def test_a_line_is_bounded() -> None:
    line = line_of(ev.Notice(level="info", text="x" * 10_000))
    assert line is not None
    assert len(line) == 800


def test_lines_obey_no_markup_and_hold_no_escape_codes() -> None:
    stream = io.StringIO()
    lines = PromptLines(stream)
    lines(ev.AssistantText(text="[red]not red[/red] \x1b[31mnor this"))
    lines(ev.TextDelta(text="silent"))
    assert stream.getvalue() == "[red]not red[/red] \\x1b[31mnor this\n"


def test_json_lines_end_with_the_report() -> None:
    stream = io.StringIO()
    lines = JsonLines(stream)
    lines(ev.Merged(seq=7, at="now", run="r1", task="one", commit="c", into="x\u2028"))
    lines.report(REPORT)
    first, last = [json.loads(line) for line in stream.getvalue().split("\n")[:-1]]
    assert (first["schema"], first["seq"], first["kind"], first["agent"]) == (1, 7, "merged", "")
    assert {
        "schema": 1,
        "seq": 8,
        "at": "now",
        "run": "r1",
        "agent": "",
        "kind": "report",
    }.items() <= last.items()
    assert (
        RunReport.model_validate({k: last[k] for k in last if k not in ("seq", "at", "run", "agent", "kind")})
        == REPORT
    )


def test_a_reader_that_went_away_does_not_end_the_run() -> None:
    stream = io.StringIO()
    lines = JsonLines(stream)
    stream.close()
    lines(ev.Notice(level="info", text="x"))
    lines.report(REPORT)


def shown(board: Board) -> str:
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(board.draw())
    return console.export_text()


def plan(count: int) -> SwarmPlan:
    tasks = [{"id": f"t{n}", "goal": "g"} for n in range(count)]
    return SwarmPlan.model_validate({"swarm": {"into": "swarm/x"}, "task": tasks})


def test_the_board_says_who_waits_what_landed_and_what_it_cost() -> None:
    board = Board(plan(3))
    for event in (
        ev.AgentStarted(agent="a1", name="Coder", task="t1"),
        ev.TaskChanged(task="t0", state=TaskStatus.MERGED, attempt=1),
        ev.Merged(task="t0", commit="c" * 40, into="swarm/x"),
        ev.TaskChanged(task="t1", state="working", attempt=2),
        ev.ToolStarted(agent="a1", call_id="c", tool="search", arguments={}),
        ev.ApprovalAsked(request=ASK),
        ev.Cost(total=Usage(cost_usd=0.25), calls=12),
        ev.Notice(level="warning", text="the base\nis red"),
    ):
        board.take(event)
    assert [line.rstrip() for line in shown(board).splitlines()] == [
        "1 waiting for you",
        "  Coder asks to run run_command: rm x\\x1b[2K\\u202eevil",
        "1 of 3 landed on swarm/x, 1 at work, 0 ended otherwise, $0.2500 in 12 model calls",
        "t1  working  #2  search",
        "t0  merged       cccccccccccc",
        "t2  queued",
        "warning: the base is red",
    ]
    board.take(ev.ApprovalAnswered(request_id="q1", answer=ApprovalAnswer(decision="deny", digest="d")))
    assert "waiting for you" not in shown(board)


def test_the_board_is_bounded() -> None:
    board = Board(plan(100))
    for number in range(5_000):
        board.take(ev.Notice(level="info", text=str(number)))
        board.take(ev.AgentStarted(agent=f"a{number}", name="Coder", task="t1"))
    lines = shown(board).splitlines()
    assert len(lines) == 1 + ROWS + 1 + 4
    assert any("and 70 more" in line for line in lines)
    assert len(board.task_of) == 2_000


def test_without_a_terminal_the_view_prints_lines_and_with_one_it_draws() -> None:
    plain = io.StringIO()
    with SwarmView(plain, plan(1)) as view:
        view(ev.TaskChanged(task="t0", state="working", attempt=1))
        view(ev.AssistantText(text="chatter of one of many agents"))
    assert plain.getvalue() == "* t0: working\n"
    drawn = io.StringIO()
    with SwarmView(drawn, plan(1), live=True) as view:
        view(ev.TaskChanged(task="t0", state="working", attempt=1))
    assert "0 of 1 landed on swarm/x, 1 at work" in drawn.getvalue()
