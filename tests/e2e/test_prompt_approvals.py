"""`opendev -p` and `opendev swarm` with levels and permissions.json: what runs, what is left undone, what is on record (APR-01..07)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opendev.store.history import CommandHistory
from opendev.store.layout import Layout
from support.command_line import Sandbox
from support.model_server import Call, ModelServer, Reply, Seen, calls, text
from support.repos import make_repo
from support.swarm_cli import Bench, make_bench, sh, task

pytestmark = pytest.mark.usefixtures("openai_loaded")
Serve = Callable[..., ModelServer]
TOUCH = {"name": "touching", "rule_type": "prefix", "pattern": "touch", "action": "auto_approve"}
NO_B = {"name": "not b", "rule_type": "command", "pattern": "touch b", "action": "auto_deny", "priority": 5}


def rules(path: Path, *made: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "rules": made}))
    return path


def commands(*lines: str) -> Any:
    return calls(*(Call("run_command", {"command": line}) for line in lines))


def files(sandbox: Sandbox) -> set[str]:
    return {path.name for path in sandbox.project.iterdir() if not path.name.startswith(".")}


@pytest.mark.req("APR-01", "APR-02", "APR-03", "APR-05", "APR-07", "APR-10")
@pytest.mark.parametrize(
    ("level", "made", "code"),
    [("manual", {"a"}, 7), ("semi-auto", {"a"}, 7), ("auto", {"a", "c"}, 1)],
)
def test_rules_decide_before_the_level(
    sandbox: Sandbox, serve: Serve, level: str, made: set[str], code: int
) -> None:
    rules(sandbox.home / "opendev/permissions.json", TOUCH, NO_B)
    server = serve(commands("touch a", "touch b", "mkdir c", "rm -rf /"), text("Did what I could."))
    done = sandbox.here("-p", "Do it.", "--output", "json", "--approve", level)
    assert files(sandbox) == made
    assert done.code == code, done
    told = {row["content"] for row in server.seen[1].messages if row["role"] == "tool"}
    assert any("not b" in row for row in told)
    assert any("nobody answered" in row for row in told) is (level != "auto")
    assert not any("user denied" in row for row in told)
    history = CommandHistory(Layout(sandbox.home / "opendev").project(sandbox.project))
    found = {(row.command, row.action, row.layer, row.rule) for row in history.decisions()}
    assert {("touch a", "allow", "rules", "touching"), ("touch b", "deny", "rules", "not b"), ("rm -rf /", "deny", "floor", "")} <= found  # fmt: skip
    asked = {(row.command, row.action) for row in history.decisions() if row.command == "mkdir c"}
    assert asked == (
        {("mkdir c", "allow")} if level == "auto" else {("mkdir c", "ask"), ("mkdir c", "no_answer")}
    )
    assert history.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("APR-05")
def test_a_projects_rules_only_narrow_before_trust(sandbox: Sandbox, serve: Serve) -> None:
    path = rules(
        sandbox.project / ".opendev/permissions.json", {**TOUCH, "priority": 99}, {**NO_B, "priority": 100}
    )
    serve(commands("touch a", "touch b"), text("Tried."))
    done = sandbox.here("-p", "Do it.", "--approve", "semi-auto")
    assert (done.code, files(sandbox)) == (7, set())
    assert f"{path}: its rules that let calls pass (1)" in done.stderr
    serve(commands("touch a", "touch b"), text("Tried."))
    done = sandbox.here("-p", "Do it.", "--approve", "auto")
    assert files(sandbox) == {"a"}


@pytest.mark.req("APR-05", "SAF-09")
@pytest.mark.parametrize("place", ["home/opendev", "project/.opendev"])
def test_an_unclear_file_stops_the_run_before_it_starts(sandbox: Sandbox, serve: Serve, place: str) -> None:
    path = sandbox.home.parent / place / "permissions.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"rules": [\n{"rule_type": "prefix", "pattern": "touch"}]}')
    server = serve(text("never"))
    done = sandbox.here("-p", "Do it.", "--output", "json", "--approve", "auto")
    assert (done.code, server.seen) == (2, [])
    assert f"{path}, line 2: `rules[0].action`" in done.report["error"]["message"]


@pytest.mark.req("APR-09", "SUB-02")
def test_subagents_have_the_rules_of_their_parent(sandbox: Sandbox, serve: Serve) -> None:
    rules(sandbox.home / "opendev/permissions.json", {**TOUCH, "action": "auto_deny"})

    plan = {
        "the main task": [
            calls(Call("spawn_subagent", {"agent": "Coder", "prompt": "act now"})),
            text("All done."),
        ],
        "act now": [commands("touch a"), text("It was refused.")],
    }

    def play(seen: Seen) -> Reply:
        who = next(marker for marker in plan if seen.says(marker))
        return plan[who][sum(row["role"] == "assistant" for row in seen.messages)]

    sandbox.project = make_repo(sandbox.home.parent / "repo")
    before = files(sandbox)
    server = serve(play)
    done = sandbox.here("-p", "the main task", "--output", "json", "--approve", "auto", "--runtime", "local")
    assert files(sandbox) == before, done
    assert any(seen.says("refused by the rule `touching`") for seen in server.seen)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


@pytest.mark.soak
@pytest.mark.req("APR-02", "APR-09", "SWM-02")
@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_the_declared_policy_of_a_batch(bench: Bench, runtime: str) -> None:
    rules(bench.home / "permissions.json", TOUCH, NO_B)
    done = bench.run(
        task("allowed", sh("touch a"), scope=["a"]),
        task("refused", sh("touch b"), scope=["b"], attempts=1),
        task("asked", sh("cp lib.py c"), scope=["c"], attempts=1),
        approve="semi-auto",
        runtime=runtime,
    )
    assert done.code == 7
    assert done.statuses == {"allowed": "merged", "refused": "agent_failed", "asked": "blocked"}
    errors = {row.id: row.error for row in done.run.tasks if row.error}
    assert "not b" in errors["refused"]
    assert "nobody answered" in errors["asked"]
