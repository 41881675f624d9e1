"""Standard output that cannot take the result, a defect in the middle, a recording that exists: told in words, in the chosen form."""

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import opendev.cli.run as prompt_command
import pytest
from support.command_line import OPENDEV, Sandbox
from support.model_server import ModelServer, text
from support.swarm_cli import make_bench, put, task

pytestmark = pytest.mark.usefixtures("openai_loaded")
Serve = Callable[..., ModelServer]
FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_a_result_that_cannot_be_printed_is_a_failure(
    sandbox: Sandbox, serve: Serve, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(text("Done."))
    with FULL.open("w") as full:
        monkeypatch.setattr(contextlib, "redirect_stdout", partial(_redirected, full.fileno()))
        done = sandbox.here("-p", "Go.", "--output", output)
    assert done.code == 6
    assert "Standard output cannot be written: No space left on device." in done.stderr
    (run,) = sandbox.runs()  # the work itself was done
    assert '"status":"done"' in (sandbox.home / "opendev/runs" / run / "events.jsonl").read_text()


@contextlib.contextmanager
def _redirected(fd: int, _to: object) -> Generator[None]:
    stream = os.fdopen(os.dup(fd), "w")
    before, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = before
        with contextlib.suppress(OSError):
            stream.close()


def test_every_command_says_when_its_output_is_lost(sandbox: Sandbox) -> None:
    done = sandbox.shell(f"{OPENDEV} config path > /dev/full")
    assert done.code == 6
    assert done.stderr.count("Standard output cannot be written") == 1
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(("words", "code"), [("config path", 0), ("--nope", 2), ("-p hi --output json", 2)])
def test_a_full_disk_behind_standard_error_costs_nothing_else(
    sandbox: Sandbox, words: str, code: int
) -> None:
    done = sandbox.shell(f"{OPENDEV} {words} 2> /dev/full")
    assert (done.code, done.stdout.count("\n") > 0) == (code, words != "--nope")
    if "json" in words:
        assert "No model is configured." in done.report["error"]["message"]


@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_defect_is_told_in_the_chosen_form(
    sandbox: Sandbox, serve: Serve, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    serve(text("Done."))
    monkeypatch.setattr(prompt_command, "open_hub", broken)
    done = sandbox.here("-p", "Go.", "--output", output)
    report = done.report if output == "json" else done.events[-1]
    assert (done.code, report["status"], report["error"]["kind"]) == (1, "failed", "internal")
    assert "ZeroDivisionError: oops" in report["error"]["message"]
    assert "Traceback" not in done.stdout + done.stderr


def test_a_recording_is_never_mixed_with_an_older_one(sandbox: Sandbox, serve: Serve, tmp_path: Path) -> None:
    server = serve(text("Done."))
    tape = tmp_path / "tape.jsonl"
    tape.touch()  # an empty file, as mktemp makes it, is no recording
    command = ("-p", "Go.", "--output", "json", "--record", str(tape))
    assert sandbox.here(*command).code == 0
    before = tape.read_bytes()
    again = sandbox.here(*command)
    assert (again.code, tape.read_bytes(), len(server.seen)) == (2, before, 1)
    assert "exists already" in again.report["error"]["message"]


@pytest.mark.soak
@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_batch_whose_report_is_lost_says_so_and_has_landed(tmp_path: Path, output: str) -> None:
    bench = make_bench(tmp_path)
    file = bench.tickets(task("one", put("one.txt", "1\n")))
    done = bench.sandbox.shell(f"{OPENDEV} swarm run {file} --runtime local --output {output} > /dev/full")
    assert (done.code, done.stderr.count("Standard output cannot be written")) == (6, 1)
    assert bench.commits() == ["Do one."]
