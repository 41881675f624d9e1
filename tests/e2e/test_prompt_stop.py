"""Signals to a running `opendev -p`: it ends at once with exit code 130, tells so, and leaves no process behind."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.core.clock import SystemClock
from support.command_line import OPENDEV, Sandbox, end, marked, while_running
from support.model_server import ModelServer, call, text
from support.repos import fingerprint, git, make_repo, tree_files, worktrees

pytestmark = pytest.mark.slow
Serve = Callable[..., ModelServer]
SLEEP = "touch started; (setsid sleep 61 &) ; sleep 60; touch late"


@pytest.fixture
def repo(sandbox: Sandbox, tmp_path: Path) -> Path:
    sandbox.project = make_repo(tmp_path / "repo")
    return sandbox.project


@pytest.mark.req("LOOP-17", "ACT-10")
@pytest.mark.parametrize(("number", "output"), [(signal.SIGINT, "json"), (signal.SIGTERM, "stream-json")])
def test_a_signal_during_a_command_ends_it_with_all_that_it_started(
    sandbox: Sandbox, serve: Serve, repo: Path, number: signal.Signals, output: str
) -> None:
    server = serve(call("run_command", {"command": SLEEP, "timeout_s": 100}), text("never"))
    process = sandbox.start("-p", "Wait.", "--output", output, "--approve", "auto")
    while_running(process, (repo / "started").exists)
    (run,) = sandbox.runs()
    while_running(process, lambda: len(marked(run)) >= 2)  # the driver and what its command started
    before = fingerprint(repo)
    clock = SystemClock()
    since = clock.monotonic()
    done = end(process, number)
    assert clock.monotonic() - since < 8
    report = done.report if output == "json" else done.events[-1]
    assert (done.code, report["status"], report["error"]["kind"]) == (130, "cancelled", "cancelled")
    assert (report["model_calls"], report["turns"]) == (1, 1)
    assert report["tokens"]["input"] == server.billed().input
    assert marked(run) == []
    assert fingerprint(repo) == before
    assert len(server.seen) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_model_call_ends_it(
    sandbox: Sandbox, serve: Serve, repo: Path, number: signal.Signals
) -> None:
    server = serve(text("never", latency_s=60))
    before = fingerprint(repo)
    process = sandbox.start("-p", "Wait.", "--output", "json")
    while_running(process, lambda: len(server.seen) == 1)
    (run,) = sandbox.runs()
    done = end(process, number)
    report = done.report
    assert (done.code, report["status"], report["model_calls"]) == (130, "cancelled", 1)
    assert report["tokens"]["input"] > 0  # the request was out: its prompt is counted
    assert marked(run) == []
    assert fingerprint(repo) == before
    assert git(repo, "for-each-ref", "refs/opendev") == ""


@pytest.mark.req("ACT-07", "ACT-10")
@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.soak])])
def test_a_signal_ends_sub_agents_too_and_saves_their_work(
    sandbox: Sandbox, serve: Serve, repo: Path, runtime: str
) -> None:
    serve(
        sessions={
            "the main task": [
                call("spawn_subagent", {"agent": "Coder", "prompt": "write it"}),
                text("never"),
            ],
            "write it": [
                call("write_file", {"file_path": "new.py", "content": "N = 1\n"}),
                call("run_command", {"command": "touch started; sleep 60"}),
            ],
        }
    )
    before = fingerprint(repo)
    options = ("--output", "json", "--approve", "auto", "--runtime", runtime)
    process = sandbox.start("-p", "Do the main task.", *options)
    while_running(process, lambda: bool(list(sandbox.home.rglob("started"))))
    (run,) = sandbox.runs()
    assert marked(run)
    process.send_signal(signal.SIGINT)
    done = end(process, signal.SIGINT)  # an impatient second one changes nothing
    assert (done.code, done.report["status"], done.report["model_calls"]) == (130, "cancelled", 3)
    assert marked(run) == []
    assert fingerprint(repo) == before
    assert worktrees(repo) == []
    saved = git(repo, "for-each-ref", "--format=%(refname)", "refs/opendev").splitlines()
    assert [tree_files(repo, ref).get("new.py") for ref in saved] == ["N = 1"]


def test_a_signal_before_the_agent_runs_is_told_in_the_chosen_form(sandbox: Sandbox, serve: Serve) -> None:
    """A git that hangs holds the start up."""
    fake = sandbox.home / "bin"
    fake.mkdir()
    (fake / "git").write_text(f"#!/bin/sh\ntouch {fake}/called\nexec sleep 1\n")
    (fake / "git").chmod(0o755)
    (sandbox.project / ".git").mkdir()
    server = serve(text("never"))
    sandbox.env["PATH"] = f"{fake}:{sandbox.environment()['PATH']}"
    process = sandbox.start("-p", "Go.", "--output", "json")
    while_running(process, (fake / "called").exists)
    done = end(process, signal.SIGINT)
    assert (done.code, done.report["status"]) == (130, "cancelled")
    assert server.seen == []


def test_a_reader_that_goes_away_does_not_stop_the_work(sandbox: Sandbox, serve: Serve) -> None:
    serve(call("write_file", {"file_path": "a.txt", "content": "x"}), text("Done."))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [OPENDEV, "-p", "Go.", "--output", "stream-json", "--approve", "auto"],
        cwd=sandbox.project,
        env=sandbox.environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (sandbox.project / "a.txt").read_text() == "x"
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
    (run,) = sandbox.runs()
    log = (sandbox.home / "opendev/runs" / run / "events.jsonl").read_text().splitlines()
    assert json.loads(log[-1])["kind"] == "run_finished"
