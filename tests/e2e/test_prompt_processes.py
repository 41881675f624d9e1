"""Background tasks of a prompt run: shown while they live, told when they end, gone with the run (SHL-10, SHL-11, SHL-14; P03, P17)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.tools.shell.reap import process_start
from support.command_line import Sandbox
from support.model_server import ModelServer, call, text

Serve = Callable[..., ModelServer]


@pytest.mark.req("SHL-10", "SHL-11", "SHL-14")
@pytest.mark.slow
def test_a_task_lives_as_long_as_the_run(sandbox: Sandbox, serve: Serve) -> None:
    stay = "setsid sleep 300 & echo $! > one; sleep 301 & echo $! > two; echo ready; wait"
    fail = "sleep 1.6; exit 3"
    server = serve(
        call("run_command", {"command": stay, "background": True}),
        call("run_command", {"command": fail, "background": True}),
        call("run_command", {"command": "sleep 1.5"}),
        call("list_processes", {}),
        text("Done."),
    )
    done = sandbox.here("-p", "Go.", "--approve", "auto", "--output", "stream-json", "--runtime", "local")
    assert done.code == 0
    last = server.seen[4]
    assert last.says("It runs in the background as task ")
    assert last.says("failed, exit code 3")
    changed = [event for event in done.events if event["kind"] == "process_changed"]
    ids = list(dict.fromkeys(event["id"] for event in changed))
    states = {id: [event["state"] for event in changed if event["id"] == id] for id in ids}
    assert list(states.values()) == [["running", "killed"], ["running", "failed"]]
    for name in ("one", "two"):
        assert process_start(int((sandbox.project / name).read_text())) is None
    output = next(Path("/tmp/opendev").rglob(f"{ids[0]}.output"))
    assert output.read_text() == "ready\n"
    shutil.rmtree(output.parents[1])


@pytest.mark.req("TSK-02")
@pytest.mark.slow
def test_a_question_that_nobody_can_answer_ends_with_its_own_exit_code(
    sandbox: Sandbox, serve: Serve
) -> None:
    options = [{"label": "yes", "description": ""}, {"label": "no", "description": ""}]
    asked = {"questions": [{"question": "Go on?", "header": "Go", "options": options}]}
    server = serve(call("ask_user", asked), text("I cannot decide that."))
    done = sandbox.here("-p", "Go.", "--output", "json", "--runtime", "local")
    assert done.code == 7
    assert server.seen[1].says("Nobody answered the questions.")
