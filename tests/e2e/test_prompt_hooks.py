"""Hooks from the command line: all ten events of a run, a project's only after consent, the same gates for a tool run by hand (HOK, T12)."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Sandbox
from support.model_server import ModelServer, call, text

Serve = Callable[..., ModelServer]
EVENTS = [
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("SubagentStart", "SubagentStop", "Stop", "PreCompact", "SessionEnd"),
]


def put(folder: Path, hooks: dict[str, str], **more: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    groups = {event: [{"hooks": [{"type": "command", "command": line}]}] for event, line in hooks.items()}
    (folder / "settings.json").write_text(json.dumps({"hooks": groups, **more}))


def log(path: Path) -> str:
    return f"read -r letter; printf '%s\\n' \"$letter\" >> {shlex.quote(str(path))}"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def play() -> dict[str, list[Any]]:
    return {
        "the main task": [
            call("read_file", {"file_path": "a.txt"}),
            call("read_file", {"file_path": "gone.txt"}),
            call("spawn_subagent", {"agent": "Code-Explorer", "prompt": "explore it"}),
            text("All done."),
        ],
        "explore it": [call("read_file", {"file_path": "a.txt"}), text("Explored.")],
    }


@pytest.mark.slow
@pytest.mark.req("HOK-01", "HOK-02", "HOK-03", "LOOP-16")
def test_every_event_of_a_run_is_told(sandbox: Sandbox, serve: Serve) -> None:
    told = sandbox.home / "log"
    (sandbox.project / "a.txt").write_text("hello\n")
    put(sandbox.home / "opendev", dict.fromkeys(EVENTS, log(told)))
    serve(sessions=play())
    done = sandbox.here("-p", "Do the main task.", "--output", "json", "--runtime", "local")
    assert (done.code, done.report["text"]) == (0, "All done.")
    seen = rows(told)
    session = done.report["session_id"]
    assert {row["session_id"] for row in seen} == {session}
    names = [row["hook_event_name"] for row in seen]
    assert {name: names.count(name) for name in sorted(set(names))} == {
        "PostToolUse": 3,
        "PostToolUseFailure": 1,
        "PreToolUse": 4,
        "SessionEnd": 1,
        "SessionStart": 1,
        "Stop": 1,
        "SubagentStart": 1,
        "SubagentStop": 1,
        "UserPromptSubmit": 1,
    }  # PreCompact: tests/unit/agents/test_hooks.py
    start = next(row for row in seen if row["hook_event_name"] == "SubagentStart")
    assert (start["agent_type"], start["agent_task"]) == ("Code-Explorer", "explore it")
    before = [row["tool_name"] for row in seen if row["hook_event_name"] == "PreToolUse"]
    assert before == ["read_file", "read_file", "spawn_subagent", "read_file"]


@pytest.mark.slow
@pytest.mark.req("HOK-02", "HOK-04", "SAF-01")
def test_a_projects_hooks_act_after_consent_and_only_as_they_were(sandbox: Sandbox, serve: Serve) -> None:
    told, script = sandbox.home / "log", sandbox.project / ".opendev" / "hooks" / "guard.sh"
    put(
        sandbox.project / ".opendev",
        {**dict.fromkeys(EVENTS, log(told)), "PreToolUse": "sh .opendev/hooks/guard.sh"},
    )
    script.parent.mkdir()
    script.write_text(f"{log(told)}\necho not here >&2; exit 2\n")
    (sandbox.project / "a.txt").write_text("hello\n")

    def prompt() -> tuple[list[str], str]:
        server = serve(call("read_file", {"file_path": "a.txt"}), text("Done."))
        done = sandbox.here("-p", "Read it.", "--output", "stream-json", "--runtime", "local")
        assert done.code == (0 if "hello" in json.dumps(server.seen[1].messages) else 1)
        return [str(e.get("text")) for e in done.events if e["kind"] == "notice"], json.dumps(
            server.seen[1].messages
        )

    for command in (
        ("hooks", "list"),
        ("config", "show"),
        ("tools", "run", "read_file", "--args", '{"file_path": "a.txt"}'),
    ):
        assert sandbox.here(*command).code == 0
    notices, result = prompt()
    assert "hello" in result
    assert any("opendev hooks trust" in notice and "guard.sh" in notice for notice in notices)
    assert not told.exists()

    agreed = sandbox.here("hooks", "trust")
    assert "sh .opendev/hooks/guard.sh" in agreed.stdout
    notices, result = prompt()
    assert "A hook of the user refused it: not here" in result
    assert "SessionStart" in [row["hook_event_name"] for row in rows(told)]
    by_hand = sandbox.here("tools", "run", "read_file", "--args", '{"file_path": "a.txt"}')
    assert (by_hand.code, json.loads(by_hand.stdout)["error"]["kind"]) == (7, "denied")

    told.unlink()
    script.write_text(f"{log(told)}\ntouch EVIL\n")
    notices, result = prompt()
    assert "hello" in result
    assert any("as they are now" in notice for notice in notices)
    assert not told.exists()
    assert not (sandbox.project / "EVIL").exists()
    assert "not trusted" in sandbox.here("hooks", "list").stdout


def test_a_matcher_that_is_found_in_no_tool_is_named(sandbox: Sandbox) -> None:
    groups = [
        {"matcher": matcher, "hooks": [{"command": "true"}]} for matcher in ("Bash", "^run_", "mcp__x__.*")
    ]
    put(sandbox.home / "opendev", {})
    (sandbox.home / "opendev" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": groups}}))
    listed = sandbox.here("hooks", "list")
    assert listed.stdout.count("PreToolUse") == 3
    assert listed.stderr.count("is found in the name of no built-in tool") == 1
    assert "The matcher Bash of PreToolUse" in listed.stderr


def test_an_agent_cannot_agree(sandbox: Sandbox) -> None:
    put(sandbox.project / ".opendev", {"Stop": "true"})
    sandbox.env["OPENDEV_AGENT"] = "a1"
    refused = sandbox.here("hooks", "trust")
    assert "An agent cannot agree to hooks." in refused.stderr
    assert not (sandbox.home / "opendev" / "trust.json").exists()


@pytest.mark.req("HOK-04")
def test_a_refused_prompt_ends_the_command(sandbox: Sandbox, serve: Serve) -> None:
    put(sandbox.home / "opendev", {"UserPromptSubmit": "echo no secrets please >&2; exit 2"})
    server = serve(text("never"))
    done = sandbox.here("-p", "My password is x.", "--output", "json", "--runtime", "local")
    assert done.code == 1
    assert "no secrets please" in done.report["error"]["message"]
    assert server.seen == []
