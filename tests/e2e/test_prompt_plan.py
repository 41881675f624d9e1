"""`opendev -p` with a plan and with thoughts: the Planner really runs, nobody decides, or the level auto does (C-08, LOOP-05)."""

import json
import re
from collections.abc import Callable

import pytest
from support.command_line import Sandbox, paired
from support.model_server import ModelServer, Reply, Seen, call, text
from support.repos import make_repo

Serve = Callable[..., ModelServer]
PLAN = """BEGIN PLAN
## Goal
Make a.txt, so that whoever looks for it finds it in the folder of the project.
## Context
none
## Files to modify
none
## New files
- a.txt
## Implementation steps
1. Write a.txt.
## Verification criteria
- test -f a.txt
## Risks
none
END PLAN
"""


def planner_path(seen: Seen) -> str:
    found = re.search(r"Plan file, the only file you write: (\S+?\.md)", json.dumps(seen.body))
    return found[1] if found else ""


def reported_path(seen: Seen) -> str:
    found = re.search(r"plan_file_path: (\S+?\.md)", json.dumps(seen.messages))
    return found[1] if found else ""


def called(seen: Seen) -> set[str]:
    """The tools that were called so far."""
    return {c["function"]["name"] for row in seen.messages for c in row.get("tool_calls") or ()}


def answers(seen: Seen) -> Reply:
    """The Planner writes and reports; the main agent delegates, presents, then works."""
    done = called(seen)
    if path := planner_path(seen):
        if "write_file" not in done:
            return call("write_file", {"file_path": path, "content": PLAN})
        return call("task_complete", {"status": "success", "summary": f"plan_file_path: {path}\nOne step."})
    decided = seen.says("is approved by")
    steps = (
        ("spawn_subagent" in done, call("spawn_subagent", {"agent": "Planner", "prompt": "Plan a.txt."})),
        ("present_plan" in done, call("present_plan", {"plan_file_path": reported_path(seen)})),
        (decided, text(f"The plan is in {reported_path(seen)}; nobody decided.")),
        ("write_file" in done, call("write_file", {"file_path": "a.txt", "content": "x"})),
        ("complete_todo" in done, call("complete_todo", {"todo_id": "1"})),
    )
    return next((reply for over, reply in steps if not over), text("Made a.txt."))


@pytest.mark.req("LOOP-23")
@pytest.mark.req("CLI-02")
def test_in_plan_mode_nobody_decides_and_the_exit_code_says_so(sandbox: Sandbox, serve: Serve) -> None:
    make_repo(sandbox.project / "repo")
    sandbox.project = sandbox.project / "repo"
    server = serve(answers)
    done = sandbox.here(
        "-p", "Make a.txt.", "--output", "json", "--approve", "auto", "--mode", "plan", "--runtime", "local"
    )
    assert (done.code, done.report["status"]) == (7, "unanswered")
    assert not (sandbox.project / "a.txt").exists()
    plans = list((sandbox.home / "opendev" / "plans").glob("*.md"))
    assert [plan.read_text() for plan in plans] == [PLAN]
    assert str(plans[0]) in done.report["text"]
    assert all(paired(seen) for seen in server.seen)


@pytest.mark.req("TSK-06")
def test_at_level_auto_the_plan_is_approved_and_carried_out(sandbox: Sandbox, serve: Serve) -> None:
    make_repo(sandbox.project / "repo")
    sandbox.project = sandbox.project / "repo"
    serve(answers)
    done = sandbox.here(
        "-p", "/plan Make a.txt.", "--output", "json", "--approve", "auto", "--runtime", "local"
    )
    assert (done.code, done.report["text"], done.report["files_changed"]) == (0, "Made a.txt.", ["a.txt"])


@pytest.mark.req("LOOP-05")
@pytest.mark.req("LOOP-06")
def test_thinking_is_switched_on_by_the_command_line(sandbox: Sandbox, serve: Serve) -> None:
    def reply(seen: Seen) -> Reply:
        return text("It is fine." if "tools" not in seen.body else "Done.")

    server = serve(reply)
    for level, bare in (("off", 0), ("low", 1), ("high", 3)):
        before = len(server.seen)
        done = sandbox.here("-p", "Go.", "--output", "json", "--thinking", level)
        assert (done.code, done.report["text"]) == (0, "Done.")
        calls = server.seen[before:]
        assert sum("tools" not in seen.body for seen in calls) == bare
        assert done.report["model_calls"] == len(calls) == bare + 1
    assert sandbox.here("-p", "Go.", "--thinking", "deep").code == 2


@pytest.mark.req("C-08")
def test_in_plan_mode_no_agent_that_writes_is_started(sandbox: Sandbox, serve: Serve) -> None:
    make_repo(sandbox.project / "repo")
    sandbox.project = sandbox.project / "repo"
    server = serve(call("spawn_subagent", {"agent": "Coder", "prompt": "Write a.txt."}), text("Refused."))
    sandbox.here("-p", "Go.", "--output", "json", "--approve", "auto", "--mode", "plan", "--runtime", "local")
    assert len(server.seen) == 2
    assert server.seen[1].says("Plan mode is on, and Coder changes things.")
    assert not (sandbox.project / "a.txt").exists()
