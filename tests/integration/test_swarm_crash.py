"""SIGKILL at every journal record: resume runs exactly what is unfinished, nothing lands twice, the user's tree is untouched."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from opendev.core.errors import OpenDevError
from opendev.core.lease import Owner
from opendev.core.ticket import RunReport
from opendev.swarm.control import cancel_run, claim, load_run, status_of
from opendev.swarm.journal import Journal, LandingBegan, LandingDone
from support.repos import fingerprint, git, make_repo

TESTS = Path(__file__).parent.parent


def run_driver(repo: Path, home: Path, crash_after: int) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.defpath, "PYTHONPATH": str(TESTS), "HOME": str(home)}
    command = [sys.executable, "-m", "support.swarm_driver", str(repo), str(home), str(crash_after)]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, cwd=home, timeout=120
    )


def finish(repo: Path, home: Path) -> RunReport:
    done = run_driver(repo, home, 0)
    assert done.returncode == 0, done.stderr
    return RunReport.model_validate(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.req("SWM-15")
@pytest.mark.soak
def test_kill_at_every_record_and_resume(tmp_path: Path) -> None:
    whole = make_repo(tmp_path / "whole")
    (tmp_path / "h0").mkdir()
    expected = finish(whole, tmp_path / "h0")
    records = Journal(tmp_path / "h0/runs/r1/journal.jsonl").read()
    assert [str(task.status) for task in expected.tasks] == ["merged", "merged"]
    for number in range(1, len(records) + 1):
        place = tmp_path / f"k{number}"
        home = place / "home"
        home.mkdir(parents=True)
        repo = make_repo(place / "repo")
        before = fingerprint(repo)
        killed = run_driver(repo, home, number)
        assert killed.returncode == -signal.SIGKILL, (number, killed.stderr)
        crashed = load_run(home / "runs/r1")
        found = finish(repo, home)
        ran = (home / "ran").read_text().split()
        assert [task.status for task in found.tasks][:2] == ["merged", "merged"], number
        assert git(repo, "rev-list", "--count", "main..swarm/x") == "2", f"landed twice at record {number}"
        assert fingerprint(repo) == before
        for task in ("one", "two"):
            durable = crashed.tasks[task].worked or crashed.tasks[task].landed
            again = 1 if crashed.tasks[task].attempts and not durable else 0
            assert ran.count(task) <= 1 + again, (number, ran)


@pytest.mark.slow
def test_a_landing_without_its_end_is_settled_by_the_branch(tmp_path: Path) -> None:
    repo, home = make_repo(tmp_path / "repo"), tmp_path / "home"
    home.mkdir()
    finish(repo, home)
    journal = home / "runs/r1/journal.jsonl"
    lines = journal.read_text().splitlines()
    cut = next(n for n, line in enumerate(lines) if '"kind":"landed"' in line)
    journal.write_text(
        "\n".join(lines[:cut]) + "\n"
    )  # as if killed between the move of the ref and its record
    git(repo, "update-ref", "refs/heads/swarm/x", next(
        record.new for record in Journal(journal).read() if isinstance(record, LandingBegan)
    ))  # fmt: skip
    found = finish(repo, home)
    assert [str(task.status) for task in found.tasks][:2] == ["merged", "merged"]
    assert (home / "ran").read_text().split().count("one") == 1
    assert git(repo, "rev-list", "--count", "main..swarm/x") == "2"
    landed = [r.task for r in Journal(journal).read() if isinstance(r, LandingDone)]
    assert landed == ["one", "two"]


@pytest.mark.slow
def test_status_and_cancel_know_the_owner(tmp_path: Path) -> None:
    repo, home = make_repo(tmp_path / "repo"), tmp_path / "home"
    home.mkdir()
    run_driver(repo, home, 5)
    run_dir = home / "runs/r1"
    lost = status_of(run_dir)
    assert (lost.state, lost.pid, set(lost.tasks)) == ("lost", 0, {"one", "two"})
    with pytest.raises(OpenDevError, match="is not running"):
        cancel_run(run_dir)
    reused = Owner(pid=os.getpid(), started=1)  # our number, another process's start time
    (run_dir / "owner.json").write_text(reused.to_json())
    with pytest.raises(OpenDevError, match="is not running"):
        cancel_run(run_dir)
    with subprocess.Popen(["sleep", "60"]) as other:
        stat = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()
        (run_dir / "owner.json").write_text(Owner(pid=other.pid, started=int(stat[19])).to_json())
        assert status_of(run_dir).state == "running"
        with pytest.raises(OpenDevError, match=f"is being run by process {other.pid}"):
            claim(run_dir)
        assert cancel_run(run_dir) == other.pid
        assert other.wait(10) == -signal.SIGTERM
    assert finish(repo, home).tasks[0].status == "merged"
