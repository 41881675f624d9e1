"""Kills and signals: whatever ends a batch, nothing is left behind, nothing lands twice, and `resume` finishes what is unfinished."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Json, marked
from support.repos import commit_files, fingerprint, git, tree_files
from support.swarm_cli import Bench, Ended, make_bench, put, sh, sub, task, wait_for

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parent.parent
TICKETS = (
    task("one", sub("greet", "salute", "*.py"), verify="grep -q salute app.py"),
    task("two", put("two.py", "import lib\n"), depends_on=["one"]),
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    commit_files(made.repo, waiting(made))
    yield made
    made.close()


class Driver:
    """The forking driver of ``support.swarm_cli``: two batches at once, as many as there are cores."""

    def __init__(self) -> None:
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": str(TESTS),
            "OPENDEV_SWARM__DISK_FLOOR_MB": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.swarm_cli"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, benches: list[Bench], crash_after: list[int], *, resume: bool = False) -> list[int]:
        """Run a batch in each bench at once; the exit codes in the order of the benches."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for bench, number in zip(benches, crash_after, strict=True):
            order = {
                "run": bench.place.name, "repo": str(bench.repo), "home": str(bench.home), "tickets": str(bench.place / "tickets.json"),
                "runtime": "local", "resume": resume, "crash_after": number, "out": str(bench.place / "report.json"),
                "wait": bench is benches[-1],
            }  # fmt: skip
            self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        rows: list[Json] = [json.loads(self.process.stdout.readline()) for _ in benches]
        codes = {row["order"]["repo"]: row["code"] for row in rows}
        return [codes[str(bench.repo)] for bench in benches]


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    made = Driver()
    with made.process:
        yield made
        assert made.process.stdin is not None
        made.process.stdin.close()
        assert made.process.wait(10) == 0


def report(bench: Bench) -> Json:
    return json.loads((bench.home / "runs" / bench.place.name / "report.json").read_text())


@pytest.mark.timeout(600)
@pytest.mark.req("SWM-15", "SWM-03")
@pytest.mark.soak
def test_kill_at_every_journal_record_and_resume(tmp_path: Path, driver: Driver) -> None:
    def fresh(name: str) -> Bench:
        made = make_bench(tmp_path / name)
        made.tickets(*TICKETS, verify="test -f lib.py", concurrency=1)
        return made

    (tmp_path / "whole").mkdir()
    whole = fresh("whole")
    assert driver.run([whole], [0]) == [0]
    records = len(whole.journal("whole"))
    assert records >= 14
    for first in range(1, records + 1, 2):
        numbers = list(range(first, min(first + 2, records + 1)))
        for number in numbers:
            (tmp_path / f"k{number}").mkdir()
        benches = [fresh(f"k{number}") for number in numbers]
        before = [fingerprint(bench.repo) for bench in benches]
        assert driver.run(benches, numbers) == [-signal.SIGKILL] * len(benches)
        crashed = [bench.journal(bench.place.name) for bench in benches]
        for bench in benches:
            wait_for(lambda name=bench.place.name: not marked(name), 20)
            assert len(bench.commits()) <= 2
        assert driver.run(benches, [0] * len(benches), resume=True) == [0] * len(benches)
        for bench, was, journal, number in zip(benches, before, crashed, numbers, strict=True):
            assert [row["status"] for row in report(bench)["tasks"]] == ["merged", "merged"], number
            assert bench.commits() == ["Do one.", "Do two."], number
            assert bench.green()
            bench.assert_tidy(was)
            assert again(bench.journal(bench.place.name), journal) == expected_again(journal), number


def again(journal: list[Json], before: list[Json]) -> list[str]:
    """The tickets whose agents were started after the crash."""
    return [row["task"] for row in journal[len(before) :] if row["kind"] == "attempt_started"]


def expected_again(before: list[Json]) -> list[str]:
    """Exactly those without a durable commit: a finished agent never runs again."""
    durable = {row["task"] for row in before if row["kind"] in ("agent_done", "landed")}
    durable |= {row["result"]["id"] for row in before if row["kind"] == "final"}
    return [name for name in ("one", "two") if name not in durable]


SLOW = (
    task("quick", put("quick.txt", "q\n")),
    task("slow", sh("echo half > slow.txt && sh wait.sh")),
    task("later", put("later.txt", "l\n"), depends_on=["slow"]),
)


def waiting(bench: Bench) -> dict[str, str | bytes | None]:
    """The script of SLOW: it writes its number to ``pid`` and goes on once ``go`` is there."""
    return {"wait.sh": f"echo $$ > {bench.place}/pid\nwhile ! test -e {bench.place}/go; do sleep 0.1; done\n"}


def started(bench: Bench, *words: str) -> "subprocess.Popen[str]":
    """A run of SLOW whose slow command has begun and whose quick ticket has landed."""
    file = bench.tickets(*SLOW, verify="true")
    process = bench.start("swarm", "run", str(file), "--output", "json", *(words or ("--runtime", "local")))
    wait_for(lambda: process.poll() is not None or ((bench.place / "pid").exists() and landed(bench)))
    return process


def landed(bench: Bench) -> bool:
    runs = bench.sandbox.runs()
    return bool(runs) and any(row["kind"] == "final" for row in bench.journal(runs[0]))


def resumed(bench: Bench, run: str) -> Ended:
    (bench.place / "go").touch()
    done = bench.opendev("swarm", "resume", run, "--runtime", "local", "--output", "json")
    assert (done.code, done.statuses) == (0, dict.fromkeys(("quick", "slow", "later"), "merged"))
    assert sorted(bench.commits()) == ["Do later.", "Do quick.", "Do slow."]
    return done


@pytest.mark.req("ACT-09")
@pytest.mark.parametrize(
    "signals",
    [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGINT)],
)
@pytest.mark.soak
def test_signals_during_work_cancel_keep_and_resume(
    bench: Bench, signals: tuple[signal.Signals, ...]
) -> None:
    before = fingerprint(bench.repo)
    process = started(bench)
    for number in signals:
        process.send_signal(number)
        signal.sigtimedwait([], 0.05)
    done = bench.wait(process)
    assert (done.code, done.run.status) == (130, "cancelled")
    assert done.statuses == {"quick": "merged", "slow": "cancelled", "later": "cancelled"}
    bench.assert_tidy(before)
    slow = next(row for row in done.run.tasks if row.id == "slow")
    assert tree_files(bench.repo, slow.branch)["slow.txt"] == "half"
    assert slow.branch in done.run.leftovers.branches
    if len(signals) == 2:
        resumed(bench, done.run.run_id)
        bench.assert_tidy(before)


@pytest.mark.req("ACT-09")
@pytest.mark.parametrize(
    ("number", "delay"), [(signal.SIGINT, 0.15), (signal.SIGTERM, 0.0), (signal.SIGHUP, 0.3)]
)
def test_a_signal_right_after_the_start_still_ends_as_interrupted(
    bench: Bench, number: signal.Signals, delay: float
) -> None:
    before = fingerprint(bench.repo)
    file = bench.tickets(task("slow", sh("sleep 60")), verify="sleep 0.5")
    process = bench.start("swarm", "run", str(file), "--runtime", "local", "--output", "json")
    wait_for(lambda: process.poll() is not None or bool(bench.sandbox.runs()))
    signal.sigtimedwait([], delay)
    process.send_signal(number)
    done = bench.wait(process)
    assert done.code == 130, done
    assert "Traceback" not in done.stderr
    bench.assert_tidy(before)


@pytest.mark.soak
def test_cancel_and_status_from_another_process(bench: Bench) -> None:
    before = fingerprint(bench.repo)
    process = started(bench)
    (run,) = bench.sandbox.runs()
    status = json.loads(bench.opendev("swarm", "status", run).stdout)
    assert (status["state"], status["pid"]) == ("running", process.pid)
    assert status["tasks"] == {"quick": "merged", "slow": "working", "later": "queued"}
    refused = bench.opendev("swarm", "resume", run, "--runtime", "local")
    assert refused.code == 2
    assert f"being run by process {process.pid}" in refused.stderr
    assert bench.opendev("swarm", "report", run).code == 2
    assert bench.opendev("swarm", "cancel", run).code == 0
    done = bench.wait(process)
    assert (done.code, done.run.status) == (130, "cancelled")
    assert json.loads(bench.opendev("swarm", "status", run).stdout)["state"] == "finished"
    assert bench.opendev("swarm", "cancel", run).code == 2
    bench.assert_tidy(before)
    resumed(bench, run)


def test_kill_minus_nine_during_work_leaves_no_process_and_resumes(bench: Bench) -> None:
    before = fingerprint(bench.repo)
    process = started(bench)
    (run,) = bench.sandbox.runs()
    pid = int((bench.place / "pid").read_text())
    process.kill()
    bench.wait(process)
    wait_for(lambda: not Path(f"/proc/{pid}").exists() and not marked(run), 20)
    assert json.loads(bench.opendev("swarm", "status", run).stdout)["state"] == "lost"
    resumed(bench, run)
    bench.assert_tidy(before)
    rescued = git(bench.repo, "for-each-ref", "--format=%(refname)").splitlines()
    assert any(
        "half" in tree_files(bench.repo, ref).get("slow.txt", "") for ref in rescued if "main" not in ref
    )


@pytest.mark.soak
def test_a_resume_lands_again_what_its_branch_has_lost(bench: Bench) -> None:
    go = bench.place / "go"
    done = bench.run(
        task("one", put("1.txt", "x\n")), task("two", put("2.txt", "x\n"), verify=f"test -e {go}")
    )
    assert done.statuses == {"one": "merged", "two": "verify_failed"}
    git(bench.repo, "branch", "-D", "swarm/x")
    go.touch()
    again = bench.opendev("swarm", "resume", done.run.run_id, "--runtime", "local", "--output", "json")
    assert (again.code, again.statuses) == (0, {"one": "merged", "two": "merged"})
    assert sorted(bench.commits()) == ["Do one.", "Do two."]


@pytest.mark.soak
def test_of_three_resumes_at_once_one_goes_on(bench: Bench) -> None:
    process = started(bench)
    (run,) = bench.sandbox.runs()
    process.kill()
    bench.wait(process)
    (bench.place / "go").touch()
    words = ("swarm", "resume", run, "--runtime", "local", "--output", "json")
    ended = [bench.wait(one) for one in [bench.start(*words) for _ in range(3)]]
    assert sorted(done.code for done in ended) == [0, 2, 2], ended
    assert sorted(bench.commits()) == ["Do later.", "Do quick.", "Do slow."]


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.req("ACT-01", "ACT-09")
@pytest.mark.soak
def test_under_ray_a_dead_worker_and_a_dead_driver(bench: Bench) -> None:
    before = fingerprint(bench.repo)
    process = started(bench, "--runtime", "ray")
    (run,) = bench.sandbox.runs()
    assert process.poll() is None, bench.wait(process)
    shell = int((bench.place / "pid").read_text())
    worker = worker_of(shell)
    (bench.place / "pid").unlink()
    os.kill(worker, signal.SIGKILL)  # the ticket is tried again in another worker
    wait_for(lambda: process.poll() is not None or (bench.place / "pid").exists())
    assert process.poll() is None, bench.wait(process)
    assert int((bench.place / "pid").read_text()) != shell
    process.kill()  # the driver itself
    bench.wait(process)
    wait_for(lambda: not marked(run) and not bench.sessions(), 30)
    resumed(bench, run)
    bench.assert_tidy(before)


def worker_of(shell: int) -> int:
    """The Ray worker process above a shell command."""
    one = shell
    while one > 1:
        one = int(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1])
        if b"ray::" in Path(f"/proc/{one}/cmdline").read_bytes():
            return one
    raise AssertionError(f"{shell} is below no worker")
