"""Pair, ticket and duty (SWM-13); what a run leaves on disk are plain files (CFG-08)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import OPENDEV, Sandbox
from support.model_server import Call, ModelServer, call, calls, text
from support.repos import git, make_repo
from support.swarm_cli import CHECK, Bench, make_bench, put, task

Serve = Callable[..., ModelServer]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.req("SWM-13")
@pytest.mark.parametrize("green", [True, False])
def test_on_duty_nothing_is_published_unless_every_verification_passed(bench: Bench, green: bool) -> None:
    file = bench.tickets(
        task("one", put("one.py", "x = 1\n")),
        task("two", put("two.py", "y = 2\n" if green else "y = \n")),
        verify=CHECK,
    )
    head = git(bench.repo, "rev-parse", "HEAD", "main")
    done = bench.sandbox.shell(
        f"{OPENDEV} swarm run {file} --runtime local --output json > ../report.json"
        " && git rev-parse swarm/x > ../published"
    )
    report = json.loads((bench.repo.parent / "report.json").read_text())
    assert (done.code == 0, (bench.repo.parent / "published").exists()) == (green, green)
    assert report["exit_code"] == (0 if green else 3)
    assert git(bench.repo, "rev-parse", "HEAD", "main") == head
    if green:
        assert (bench.repo.parent / "published").read_text().strip() == report["head"]


@pytest.mark.req("SWM-13")
@pytest.mark.usefixtures("openai_loaded")
def test_as_a_pair_the_work_is_on_the_branch_that_is_checked_out(sandbox: Sandbox, serve: Serve) -> None:
    repo = sandbox.project = make_repo(sandbox.project / "repo")
    before = git(repo, "for-each-ref")
    serve(call("write_file", {"file_path": "new.txt", "content": "x\n"}), text("Done."))
    assert sandbox.here("-p", "Go.", "--output", "json", "--approve", "auto").code == 0
    assert git(repo, "status", "--porcelain") == "?? new.txt"
    assert git(repo, "for-each-ref") == before


@pytest.mark.req("CFG-08")
@pytest.mark.usefixtures("openai_loaded")
def test_a_run_leaves_plain_files_only(sandbox: Sandbox, serve: Serve) -> None:
    serve(
        calls(
            Call("write_file", {"file_path": "a.txt", "content": "x\n"}),
            Call("run_command", {"command": "seq 9999"}),
        ),
        call("write_todos", {"todos": [{"title": "one"}]}),
        text("Done."),
        text("Done."),
        text("Done."),
    )
    sandbox.here("-p", "Go.", "--output", "json", "--approve", "auto")
    state = sandbox.home / "opendev"
    git = state / "snapshot"  # of undo: git's own store
    found = (path for path in state.rglob("*") if path.is_file() and not path.is_relative_to(git))
    files = [path for path in found if path.stat().st_size]
    kinds = {path.suffix for path in files}
    assert {".json", ".jsonl"} <= kinds
    assert not kinds & {".db", ".sqlite", ".sqlite3", ".pickle", ".pkl"}
    for path in files:
        data = path.read_text("utf-8")  # nothing binary
        if path.suffix == ".json":
            json.loads(data)
        elif path.suffix == ".jsonl":
            assert [json.loads(line) for line in data.splitlines()], path
