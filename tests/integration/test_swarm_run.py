"""A whole batch on a real repository with real git, real verification commands and scripted agents."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from opendev.core.agent import AgentReport, AgentStatus, AgentTask
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from opendev.core.ticket import RunReport, TaskStatus
from opendev.swarm.control import load_run, read_report
from support.fake_swarm import Bench, Deed, FakeLedger, plan, report, write
from support.repos import fingerprint, git, locks, make_repo, tree_files, worktrees

CHECK = f"{sys.executable} check.py"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def statuses(found: RunReport) -> dict[str, str]:
    return {task.id: str(task.status) for task in found.tasks}


def alive(pid: str) -> bool:
    return Path("/proc", pid).exists()


def first_line(path: str) -> str:
    return Path(path).read_text().splitlines()[0]


def appended(task: AgentTask, text: str = "") -> str:
    """The content of a.py, after ``text`` was put in its place."""
    target = Path(task.root, "a.py")
    if text:
        target.write_text(text)
    return target.read_text()


def written(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


async def until_written(path: Path) -> str:
    async with asyncio.timeout(20):
        while not written(path):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
    return written(path)


def failing(status: AgentStatus, kind: ErrorKind, **values: object) -> Deed:
    def deed(task: AgentTask) -> AgentReport:
        return report(task, status, error=ErrorInfo(kind=kind, message="It broke."), **values)

    return deed


@pytest.mark.slow
@pytest.mark.req("SWM-01", "SWM-03", "SWM-09", "SWM-15")
async def test_tickets_land_on_the_branch_and_the_user_sees_nothing(repo: Path, home: Path) -> None:
    before = fingerprint(repo)
    bench = Bench(repo, home, {"one": write("a.py", "A = 2\n"), "two": write("new.py", "N = 1\n")})
    found = await bench.swarm(
        plan({"id": "one", "verify": "grep -q 2 a.py"}, {"id": "two", "depends_on": ["one"]}, verify="true")
    ).run()
    assert statuses(found) == {"one": "merged", "two": "merged"}
    assert (found.status, found.exit_code, found.notes) == ("succeeded", 0, ())
    assert found.head == git(repo, "rev-parse", "swarm/x")
    assert tree_files(repo, found.head) | {"a.py": "A = 2", "new.py": "N = 1"} == tree_files(repo, found.head)
    one, two = found.tasks
    assert bench.agents.orders[1].attempt == 1
    assert (
        git(repo, "rev-parse", f"{two.merged_as}^") == one.merged_as
    )  # the child started on its integrated parent
    assert (one.attempts, one.model_calls, one.tokens.input, one.files) == (1, 2, 10, ("a.py",))
    assert one.verify is not None
    assert first_line(one.verify.log) == "$ grep -q 2 a.py"
    assert found.agents.pids == (4242,)
    assert set(found.phases) == {"plan", "spawn", "work", "verify", "integrate"}
    assert found.leftovers.branches == found.leftovers.worktrees == ()
    assert fingerprint(repo) == before
    assert locks(repo) == worktrees(repo) == []
    assert read_report(bench.run_dir) == found
    assert json.loads((bench.run_dir / "report.json").read_text())["schema"] == 1


@pytest.mark.req("SWM-06", "SWM-07")
async def test_a_red_ticket_is_tried_again_with_its_output_and_then_fails(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("a.py", "A = 3\n")})
    found = await bench.swarm(
        plan({"id": "one", "verify": "echo because $((40+2)); grep -q 2 a.py", "attempts": 2})
    ).run()
    (one,) = found.tasks
    assert (one.status, one.attempts, found.exit_code, found.status) == (
        TaskStatus.VERIFY_FAILED,
        2,
        3,
        "failed",
    )
    assert "because 42" in (one.error or "")
    assert "the same command does not pass either" in (one.error or "")
    first, second = bench.agents.orders
    assert "because 42" not in first.prompt
    assert "because 42" in second.prompt
    assert found.head == git(repo, "rev-parse", "main")
    assert one.branch in found.leftovers.branches


@pytest.mark.req("SWM-08")
async def test_out_of_scope_is_refused_by_the_diff(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("b.py", "B = 2\n")})
    found = await bench.swarm(plan({"id": "one", "scope": ["*.py"], "avoid": ["b.py"], "attempts": 1})).run()
    (one,) = found.tasks
    assert (one.status, found.exit_code) == (TaskStatus.OUT_OF_SCOPE, 1)
    assert "b.py" in (one.error or "")
    assert found.head == git(repo, "rev-parse", "main")


@pytest.mark.slow
@pytest.mark.req("SWM-09")
async def test_clean_merge_but_red_ejects_the_culprit_and_the_branch_stays_green(
    repo: Path, home: Path
) -> None:
    """Each is green alone, both together are red: the second is ejected, redone on the new base, and fails there."""
    check = "import pathlib,sys; p=pathlib.Path; sys.exit(p('x').exists() and p('y').exists())"
    bench = Bench(repo, home, {"one": write("x", "1"), "two": write("y", "1")})
    found = await bench.swarm(
        plan(
            {"id": "one", "scope": ["x"]},
            {"id": "two", "scope": ["y"]},
            verify=f'{sys.executable} -c "{check}"',
        )
    ).run()
    assert sorted(statuses(found).values()) == ["merged", "verify_failed"]
    assert (found.status, found.exit_code) == ("partial", 3)
    loser = next(task for task in found.tasks if task.status is TaskStatus.VERIFY_FAILED)
    assert loser.attempts == 2
    assert any("It was ejected" in note for note in found.notes)
    assert len(set(tree_files(repo, "swarm/x")) & {"x", "y"}) == 1


@pytest.mark.slow
@pytest.mark.req("SWM-09")
async def test_a_conflict_is_redone_on_the_new_base(repo: Path, home: Path) -> None:
    async def append(task: AgentTask) -> None:
        before = appended(task)
        await asyncio.sleep(0.3)  # both have read the same base
        appended(task, before + f"{bench.agents.ticket_of(task)} = 1\n")

    bench = Bench(repo, home, {"one": append, "two": append})
    found = await bench.swarm(plan({"id": "one"}, {"id": "two"}, overlap="parallel")).run()
    assert statuses(found) == {"one": "merged", "two": "merged"}
    assert sorted(task.attempts for task in found.tasks) == [1, 2]
    assert sorted(tree_files(repo, "swarm/x")["a.py"].splitlines()) == ["A = 1", "one = 1", "two = 1"]
    assert any("conflicts with" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.req("SWM-16")
async def test_overlapping_tickets_without_recipe_run_one_after_the_other(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {name: write(f"{name}.py", "") for name in ("one", "two")})
    found = await bench.swarm(plan({"id": "one", "scope": ["*.py"]}, {"id": "two", "scope": ["*.py"]})).run()
    assert (found.exit_code, found.agents.peak) == (0, 1)
    assert found.notes == ("The scopes of one and two overlap; they run one after the other.",)


async def test_setup_and_copied_files_are_there_and_never_committed(repo: Path, home: Path) -> None:
    (repo / ".env").write_text("KEY=1\n")

    def deed(task: AgentTask) -> None:
        assert Path(task.root, ".env").read_text() == "KEY=1\n"
        assert Path(task.root, "made").exists()
        Path(task.root, "a.py").write_text("A = 2\n")

    bench = Bench(repo, home, {"one": deed})
    found = await bench.swarm(
        plan(
            {"id": "one", "scope": ["a.py"], "verify": "test -f .env && test -f made"},
            setup="touch made",
            copy=[".env"],
        )
    ).run()
    (one,) = found.tasks
    assert (one.status, one.files, one.error) == (TaskStatus.MERGED, ("a.py",), None)


async def test_a_failing_setup_is_its_own_status(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {})
    found = await bench.swarm(plan({"id": "one"}, setup="echo no network; exit 4")).run()
    (one,) = found.tasks
    assert (one.status, one.attempts, found.exit_code) == (TaskStatus.SETUP_FAILED, 1, 6)
    assert "no network" in (one.error or "")
    assert bench.agents.orders == []
    assert worktrees(repo) == []


ENDINGS = [
    (AgentStatus.FAILED, ErrorKind.TOOL, TaskStatus.AGENT_FAILED, 1, 2),
    (AgentStatus.FAILED, ErrorKind.SCOPE, TaskStatus.OUT_OF_SCOPE, 1, 2),
    (AgentStatus.FAILED, ErrorKind.AUTH, TaskStatus.INFRA, 6, 1),
    (AgentStatus.FAILED, ErrorKind.RATE_LIMIT, TaskStatus.INFRA, 6, 1),
    (AgentStatus.ITERATION_CAP, ErrorKind.TOOL, TaskStatus.AGENT_FAILED, 1, 2),
    (AgentStatus.TIMEOUT, ErrorKind.TIMEOUT, TaskStatus.TIMEOUT, 1, 2),
    (AgentStatus.BUDGET, ErrorKind.BUDGET, TaskStatus.BUDGET, 5, 1),
    (AgentStatus.UNANSWERED, ErrorKind.UNANSWERED, TaskStatus.BLOCKED, 7, 1),
    (AgentStatus.INFRA, ErrorKind.INFRA, TaskStatus.INFRA, 6, 2),
    (AgentStatus.VERIFY_FAILED, ErrorKind.VERIFY, TaskStatus.VERIFY_FAILED, 3, 2),
]


@pytest.mark.parametrize(("status", "kind", "expected", "code", "attempts"), ENDINGS)
async def test_how_an_agent_ends_decides_status_exit_code_and_retries(
    repo: Path,
    home: Path,
    status: AgentStatus,
    kind: ErrorKind,
    expected: TaskStatus,
    code: int,
    attempts: int,
) -> None:
    bench = Bench(repo, home, {"one": failing(status, kind)})
    found = await bench.swarm(plan({"id": "one"}, {"id": "two", "depends_on": ["one"]})).run()
    one, two = found.tasks
    assert (one.status, one.attempts, found.exit_code, found.status) == (expected, attempts, code, "failed")
    assert (two.status, two.attempts) == (TaskStatus.SKIPPED, 0)
    assert "depends on one" in (two.error or "")


async def test_an_agent_that_changes_nothing_has_not_done_it(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": lambda _: None})
    found = await bench.swarm(plan({"id": "one", "attempts": 1})).run()
    assert (found.tasks[0].status, found.exit_code) == (TaskStatus.AGENT_FAILED, 1)
    assert "changed nothing" in (found.tasks[0].error or "")


@pytest.mark.req("ACT-09")
async def test_stop_cancels_agents_keeps_their_work_and_says_so(repo: Path, home: Path) -> None:
    started = asyncio.Event()

    async def slow(task: AgentTask) -> None:
        appended(task, "HALF\n")
        started.set()
        await asyncio.sleep(60)

    bench = Bench(repo, home, {"one": slow, "two": slow})
    run = bench.swarm(plan({"id": "one"}, {"id": "two"}))
    running = asyncio.ensure_future(run.run())
    await started.wait()
    run.stop("Ctrl-C.")
    found = await asyncio.wait_for(running, 20)
    assert (found.status, found.exit_code) == ("cancelled", 130)
    assert statuses(found) == {"one": "cancelled", "two": "cancelled"}
    assert bench.agents.cancelled == ["r1-one-1"]
    assert tree_files(repo, found.tasks[0].branch)["a.py"] == "HALF"
    assert worktrees(repo) == []


@pytest.mark.req("ACT-09")
async def test_stop_during_a_verification_ends_its_command(repo: Path, home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    bench = Bench(repo, home, {"one": write("a.py", "A = 2\n")})
    run = bench.swarm(plan({"id": "one", "verify": f"echo $$ > {mark}; sleep 60"}))
    running = asyncio.ensure_future(run.run())
    pid = await until_written(mark)
    run.stop()
    found = await asyncio.wait_for(running, 20)
    assert (found.tasks[0].status, found.exit_code) == (TaskStatus.CANCELLED, 130)
    assert not alive(pid)
    assert worktrees(repo) == []


@pytest.mark.slow
@pytest.mark.req("SWM-12")
async def test_reviewers_gate_the_merge(repo: Path, home: Path) -> None:
    answers = {
        "good": '```verdict\n{"verdict": "approve", "findings": []}\n```',
        "bad": '```verdict\n{"verdict": "reject", "findings": [{"text": "wrong name"}]}\n```',
        "mute": "Looks good to me!",
    }

    def review(task: AgentTask) -> AgentReport:
        assert "+A = 2" in task.prompt
        assert Path(task.root, "a.py").read_text() == "A = 2\n"
        return report(task, text=answers[bench.agents.ticket_of(task)])

    bench = Bench(repo, home, {"PR-Reviewer": review} | {name: write("a.py", "A = 2\n") for name in answers})
    found = await bench.swarm(
        plan(*({"id": name, "review": ["PR-Reviewer"], "attempts": 1} for name in ("bad", "mute", "good")))
    ).run()
    assert statuses(found) == {"bad": "rejected", "mute": "rejected", "good": "merged"}
    bad, mute, good = found.tasks
    assert [item.verdict for task in (bad, mute, good) for item in task.reviews] == [
        "reject",
        "reject",
        "approve",
    ]
    assert "wrong name" in (bad.error or "")
    assert "verdict" in (mute.error or "")
    assert worktrees(repo) == []


@pytest.mark.slow
async def test_the_red_base_counts_only_new_failures(tmp_path: Path, home: Path) -> None:
    text = "import sys\nfor t in open('bad').read().split():\n  print('FAILED', t)\nsys.exit(bool(open('bad').read()))\n"
    repo = make_repo(tmp_path / "red", {"check.py": text, "bad": "t.py::old\n"})
    bench = Bench(repo, home, {"same": write("x", "1"), "worse": write("bad", "t.py::old t.py::new\n")})
    found = await bench.swarm(
        plan({"id": "same", "scope": ["x"]}, {"id": "worse", "scope": ["bad"], "attempts": 1}, verify=CHECK)
    ).run()
    assert statuses(found) == {"same": "merged", "worse": "verify_failed"}
    assert any("is red before any change" in note for note in found.notes)
    assert any("worse makes swarm/x red: t.py::new" in note for note in found.notes)


async def test_a_verification_that_cannot_run_stops_everything_first(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("x", "1")})
    found = await bench.swarm(plan({"id": "one"}, verify="no-such-command-here")).run()
    assert (found.exit_code, found.status, found.tasks[0].status) == (6, "failed", TaskStatus.INFRA)
    assert "was not found" in found.notes[0]
    assert bench.agents.orders == []
    assert read_report(bench.run_dir) == found


async def test_a_flaky_verification_is_run_again_and_noted(repo: Path, home: Path, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    bench = Bench(repo, home, {"one": write("x", "1")})
    found = await bench.swarm(
        plan({"id": "one", "verify": f"test -e {flag} || {{ touch {flag}; exit 1; }}"})
    ).run()
    assert found.exit_code == 0
    assert any("it is flaky" in note for note in found.notes)


async def test_a_hanging_verification_is_a_timeout_not_a_hang(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("x", "1")})
    found = await bench.swarm(
        plan({"id": "one", "verify": "sleep 60", "attempts": 1}), verify_timeout_s=0.5
    ).run()
    (one,) = found.tasks
    assert one.verify is not None
    assert (one.status, one.verify.outcome, one.verify.exit_code) == (
        TaskStatus.VERIFY_FAILED,
        "timeout",
        None,
    )


@pytest.mark.slow
async def test_best_of_takes_the_smallest_that_passes(repo: Path, home: Path) -> None:
    texts = {"-1": "A = 9\n", "-2": "A = 2  # long comment\n", "-3": "A = 2\n"}

    async def deed(task: AgentTask) -> None:
        await asyncio.sleep(0.3)
        appended(task, texts[task.id[-2:]])

    bench = Bench(repo, home, {"one": deed})
    found = await bench.swarm(
        plan({"id": "one", "best_of": 3, "verify": "grep -q 2 a.py"}, concurrency=2)
    ).run()
    assert (found.exit_code, found.agents.spawned, found.agents.peak) == (0, 3, 2)
    assert tree_files(repo, "swarm/x")["a.py"] == "A = 2"
    assert len(found.leftovers.branches) == 2  # the losers'


async def test_no_model_is_told_before_anything_starts(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {})
    with pytest.raises(OpenDevError, match=r"need a model.*one.*OPENDEV_MODEL") as caught:
        await bench.swarm(plan({"id": "one"}), models={}).run()
    assert caught.value.info.kind is ErrorKind.CONFIG
    assert not (bench.run_dir / "journal.jsonl").exists()


async def test_too_little_disk_is_told_before_anything_starts(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {})
    found = await bench.swarm(plan({"id": "one"}), disk_floor_bytes=10**18).run()
    assert (found.exit_code, found.tasks[0].status, bench.agents.orders) == (6, TaskStatus.INFRA, [])
    assert "MB are free" in found.notes[0]


async def test_the_ledger_counts_what_no_agent_reports(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("x", "1")})
    bench.ledger = FakeLedger()
    found = await bench.swarm(plan({"id": "one", "max_cost_usd": 1.5}, max_cost_usd=4.0)).run()
    assert bench.ledger.scopes == {"run:r1": 4.0, "task:one": 1.5}
    assert (found.cost_usd, found.model_calls, found.tokens.input) == (0.5, 9, 100)


async def test_keep_keeps_worktrees_and_branches(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("x", "1")})
    found = await bench.swarm(plan({"id": "one"}), keep=True).run()
    assert found.leftovers.branches == (found.tasks[0].branch,)
    assert found.leftovers.worktrees == tuple(worktrees(repo)) != ()


async def test_the_checked_out_branch_is_never_the_integration_branch(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {})
    with pytest.raises(OpenDevError, match="checked out"):
        await bench.swarm(plan({"id": "one"}, into="main")).run()


@pytest.mark.slow
async def test_resume_of_a_finished_run_runs_only_what_is_not_merged(repo: Path, home: Path) -> None:
    bench = Bench(repo, home, {"one": write("x", "1"), "two": failing(AgentStatus.FAILED, ErrorKind.TOOL)})
    tickets = plan({"id": "one"}, {"id": "two", "attempts": 1}, {"id": "three", "depends_on": ["two"]})
    first = await bench.swarm(tickets).run()
    assert statuses(first) == {"one": "merged", "two": "agent_failed", "three": "skipped"}
    again = Bench(repo, home, {"two": write("y", "1"), "three": write("z", "1")})
    past = load_run(again.run_dir)
    second = await again.swarm(past.began.plan, past=past).run()
    assert statuses(second) == {"one": "merged", "two": "merged", "three": "merged"}
    assert [order.id for order in again.agents.orders] == ["r1-two-2", "r1-three-1"]
    assert second.tasks[0].merged_as == first.tasks[0].merged_as
    assert second.tasks[1].model_calls == 4  # both attempts are paid for
    assert git(repo, "rev-list", "--count", "main..swarm/x") == "3"


@pytest.mark.req("ACT-09")
async def test_stop_during_the_baseline_starts_nothing(repo: Path, home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    bench = Bench(repo, home, {})
    run = bench.swarm(plan({"id": "one"}, verify=f"echo $$ > {mark}; sleep 60"))
    running = asyncio.ensure_future(run.run())
    pid = await until_written(mark)
    run.stop("Ctrl-C.")
    found = await asyncio.wait_for(running, 20)
    assert (found.status, found.exit_code, found.tasks[0].status) == ("cancelled", 130, TaskStatus.CANCELLED)
    assert bench.agents.orders == []
    assert not alive(pid)
    assert worktrees(repo) == []


async def test_another_exit_code_is_not_the_base_failure(tmp_path: Path, home: Path) -> None:
    """The base ends with 1 and names a test; a crash that names the same test ends with 3 and is new."""
    repo = make_repo(tmp_path / "red", {"check.py": "print('FAILED t.py::old')\nraise SystemExit(1)\n"})
    crash = "print('FAILED t.py::old')\nraise SystemExit(3)\n"
    bench = Bench(repo, home, {"one": write("check.py", crash)})
    found = await bench.swarm(plan({"id": "one", "attempts": 1}, verify=CHECK)).run()
    assert (found.tasks[0].status, found.exit_code) == (TaskStatus.VERIFY_FAILED, 3)
