"""`opendev -p --continue`, `--resume` and `opendev sessions`: the conversation, the todos, the mode and the costs go on (CLI-03, SES)."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Outcome, Sandbox, end, paired, while_running
from support.model_server import ModelServer, Reply, Seen, call, failing, text
from support.repos import make_repo

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("openai_loaded")]
Serve = Callable[..., ModelServer]


def go(sandbox: Sandbox, *words: str) -> Outcome:
    done = sandbox.here("-p", *words, "--output", "json", "--approve", "auto", "--runtime", "local")
    assert done.code == 0, done
    return done


def shown(sandbox: Sandbox, *words: str) -> Any:
    done = sandbox.here("sessions", *words, "--json")
    assert done.code == 0, done
    return json.loads(done.stdout)


def settings(sandbox: Sandbox, **values: Any) -> None:
    (sandbox.home / "opendev").mkdir(exist_ok=True)
    (sandbox.home / "opendev/settings.json").write_text(json.dumps(values))


def said(seen: Seen) -> list[str]:
    """What the model is shown of the conversation."""
    return [str(row["content"]) for row in seen.messages if row["role"] != "system" and row["content"]]


@pytest.mark.req("CLI-03", "SES-08", "SES-09", "MOD-07", "TSK-09")
def test_the_newest_session_goes_on_with_all_it_knew(sandbox: Sandbox, serve: Serve) -> None:
    todos = call("write_todos", {"todos": [{"title": "find the bug"}]})
    server = serve(
        todos,
        *(text("Begun."), text("Begun."), text("Begun.")),
        call("complete_todo", {"id": "1"}),
        text("All done."),
        text("Apart."),
        text("Third."),
    )
    first = go(sandbox, "Remember the word HERON.").report
    second = go(sandbox, "Go on.", "--continue").report
    assert second["session_id"] == first["session_id"]
    assert re.fullmatch(r"[A-Za-z0-9]{8}", first["session_id"])
    assert second["text"] == "All done."
    begun = int(first["model_calls"])
    asked = server.seen[begun]
    assert said(asked)[0] == "Remember the word HERON."
    assert said(asked)[-1] == "Go on."
    assert any("[x] 1. find the bug" in row or "✓" in row for row in said(server.seen[begun + 1]))
    found = shown(sandbox, "show", first["session_id"])
    assert found["model_calls"] == first["model_calls"] + second["model_calls"] == len(server.seen)
    assert found["tokens"]["input"] == first["tokens"]["input"] + second["tokens"]["input"]
    assert found["cost_usd"] == pytest.approx(first["cost_usd"] + second["cost_usd"])
    assert found["status"] == "done"

    other = go(sandbox, "Something else.").report["session_id"]
    assert said(server.seen[-1]) == ["Something else."]
    third = go(sandbox, "And this?", "--resume", first["session_id"]).report
    assert third["session_id"] == first["session_id"] != other
    assert "HERON" in said(server.seen[-1])[0]
    listed = shown(sandbox, "list")["sessions"]
    assert [row["id"] for row in listed] == [first["session_id"], other]
    assert [row["title"] for row in listed] == ["Remember the word HERON.", "Something else."]


@pytest.mark.req("ACT-14", "MOD-07")
def test_one_ledger_holds_every_call_and_equals_the_providers_log(sandbox: Sandbox, serve: Serve) -> None:
    """Retries, a sub-agent, memory and a summary; and all of it again after a resume."""
    sandbox.project = make_repo(sandbox.project / "repo")
    settings(sandbox, memory={"learn": "always"})
    failed: list[int] = []

    def script(seen: Seen) -> Reply:
        body = json.dumps(seen.body)
        if seen.number in (2, 9):
            failed.append(seen.number)
            return failing(500)
        if "You summarise the work" in body:
            return text("## Goal\nGo on.\n## Done\nMuch.")
        if "LOOK" in said(seen)[0]:
            return text("I looked.") if "tool_call_id" in body else call("list_files", {"path": "."})
        turns = sum(row["role"] == "assistant" for row in seen.messages)
        if turns % 8 == 7:
            return text("End.")
        if turns == 1:
            return call("spawn_subagent", {"agent": "Code-Explorer", "prompt": "LOOK around."})
        return call("list_files", {"path": ".", "max_results": turns + 1})

    server = serve(script)
    first = go(sandbox, "Work.").report
    shown(sandbox, "show", first["session_id"])
    go(sandbox, "Again.", "--continue")
    assert len(failed) == 2
    billed, found = server.billed(), shown(sandbox, "show", first["session_id"])
    assert (found["tokens"]["input"], found["tokens"]["output"]) == (billed.input, billed.output)
    assert found["tokens"]["cached"] == billed.cached
    assert found["model_calls"] == len(server.seen)
    assert [agent["agent"] for agent in found["agents"]] == ["Code-Explorer"]
    record = next((sandbox.home / "opendev/projects").rglob(f"{first['session_id']}.json"))
    cost = json.loads(record.read_bytes())["metadata"]["cost_tracking"]
    assert (cost["total_input_tokens"], cost["api_call_count"]) == (billed.input, len(server.seen))
    child = shown(sandbox, "show", found["agents"][0]["id"])
    assert (child["kind"], child["parent"]) == ("agent", f"main-{first['session_id']}")


@pytest.mark.soak
def test_a_cap_counts_from_the_run_it_is_given_to(sandbox: Sandbox, serve: Serve) -> None:
    server = serve(*[text("Fine.")] * 3)
    first = go(sandbox, "One.").report
    cost = first["cost_usd"]
    settings(sandbox, max_tokens=256)
    again = go(sandbox, "Two.", "--continue", "--max-cost", str(cost * 1.8)).report
    assert 0 < again["cost_usd"] <= cost * 1.8
    spent = sandbox.here(
        *("-p", "Three.", "--continue", "--max-cost", str(cost / 100), "--output", "json"),
    )
    assert spent.code == 5
    assert len(server.seen) == 2
    go(sandbox, "Four.", "--continue")


@pytest.mark.req("SES-08")
def test_the_mode_of_a_session_goes_on(sandbox: Sandbox, serve: Serve) -> None:
    write = call("write_file", {"file_path": "a.txt", "content": "x"})
    serve(text("Planned."), write, text("Refused."), write, text("Written."))
    go(sandbox, "Look.", "--mode", "plan")
    refused = sandbox.here("-p", "Write.", "--continue", "--approve", "auto")
    assert "plan mode is on" in refused.stderr
    assert not (sandbox.project / "a.txt").exists()
    go(sandbox, "Write.", "--continue", "--mode", "normal")
    assert (sandbox.project / "a.txt").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-p", "x", "--continue"), "There is no session of"),
        (("-p", "x", "--resume", "nobody12"), "There is no session `nobody12`"),
        (("-p", "x", "--resume", "../../etc"), "There is no session"),
        (("-p", "x", "--resume", ""), "needs the id"),
        (("-p", "x", "--continue", "--resume", "a"), "does not go with"),
        (("--continue", "doctor"), "no session to go on with"),
        (("sessions", "show", "../x"), "There is no session"),
        (("sessions", "export", "nobody12"), "There is no session"),
        (("sessions", "delete", "nobody12", "--yes"), "There is no session"),
    ],
)
def test_a_session_there_is_not_is_wrong_usage(
    sandbox: Sandbox, serve: Serve, words: tuple[str, ...], told: str
) -> None:
    server = serve(text("never"))
    done = sandbox.here(*words)
    assert done.code == 2, done
    assert told in done.stderr
    assert server.seen == []
    assert sandbox.runs() == []


def test_what_is_exported_holds_no_secret_and_what_is_deleted_is_gone(sandbox: Sandbox, serve: Serve) -> None:
    sandbox.env |= {"SOME_API_KEY": "plainwords-1234"}
    serve(text("Use <script>alert(1)</script> with plainwords-1234."), text("More."))
    id = go(sandbox, "My token is ghp_" + "a" * 36 + " and ```` too").report["session_id"]
    for kind in ("json", "md", "html"):
        done = sandbox.here("sessions", "export", id, "--format", kind, "-o", f"out.{kind}")
        assert (done.code, done.stdout) == (0, "")
        whole = (sandbox.project / f"out.{kind}").read_text()
        assert (sandbox.project / f"out.{kind}").stat().st_mode & 0o777 == 0o600
        assert "ghp_aaa" not in whole
        assert "plainwords-1234" not in whole
        assert "[redacted]" in whole
    assert json.loads((sandbox.project / "out.json").read_bytes())["session"]["id"] == id
    assert "<script>" not in (sandbox.project / "out.html").read_text()
    assert sandbox.here("sessions", "export", id).stdout == (sandbox.project / "out.md").read_text()
    assert sandbox.here("sessions", "delete", id).code == 7
    assert sandbox.here("sessions", "delete", id, "--yes").code == 0
    assert shown(sandbox, "list")["sessions"] == []
    home = sandbox.home / "opendev"
    assert [p for p in home.rglob(f"*{id}*") if p.suffix not in (".lock", ".held")] == []


@pytest.mark.parametrize("home", ["/dev/null/x", "/proc/opendev", "file"])
def test_a_state_root_that_cannot_be_written_costs_a_warning(
    sandbox: Sandbox, serve: Serve, home: str
) -> None:
    """D07: the work is done all the same."""
    place = home if home.startswith("/") else str(sandbox.home / home)
    (sandbox.home / "file").write_text("no folder")
    sandbox.env["OPENDEV_HOME"] = place
    serve(text("Fine."))
    done = go(sandbox, "Go.")
    assert done.report["text"] == "Fine."
    warning = next(line for line in done.stderr.splitlines() if place in line)
    kept = Path(re.search(r"state in (\S+);", warning)[1])  # type: ignore[index]
    assert list(kept.glob("projects/*/*.jsonl"))
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_home_that_is_not_there(sandbox: Sandbox, serve: Serve, tmp_path: Path) -> None:
    """Its state root is made when that can be done, else a temporary one."""
    serve(text("Fine."), text("Fine."))
    for place in (tmp_path / "none/home", Path("/dev/null/home")):
        sandbox.env |= {"HOME": str(place), "OPENDEV_HOME": ""}
        done = go(sandbox, "Go.")
        assert ("state in" in done.stderr) is (not (place / ".opendev").is_dir())


def test_keys_are_in_no_file_and_files_are_private(sandbox: Sandbox, serve: Serve) -> None:
    """D19: umask 022, the provider answers 401 with the key in its text, a tool prints the key."""
    sandbox.env |= {"OPENAI_API_KEY": "sk-test-123", "LITELLM_LOG": "DEBUG"}
    (sandbox.project / ".env").write_text("MY_SECRET_KEY=sk-test-123\n")
    server = serve(
        call("run_command", {"command": "cat .env; env; echo sk-test-123"}),
        failing(401, "Incorrect API key provided: sk-test-123", kind="invalid_request_error"),
    )
    server_env = server.env
    server.env = lambda: {**server_env(), "OPENAI_API_KEY": "sk-test-123"}
    done = sandbox.here("-p", "Go.", "--output", "stream-json", "--approve", "auto")
    assert done.code == 6
    assert "sk-test-123" not in done.stderr
    files = [path for path in (sandbox.home / "opendev").rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        raw = path.read_bytes()
        shown_to_model = path.suffix == ".jsonl" and b"echo sk-test-123" in raw
        assert b"sk-test-123" not in raw.replace(b"echo sk-test-123", b"") or shown_to_model, path
        assert path.stat().st_mode & 0o077 == 0, path
    for path in (sandbox.home / "opendev").rglob("*"):
        assert not path.is_dir() or path.stat().st_mode & 0o077 == 0, path


@pytest.mark.req("SES-04", "C-28")
@pytest.mark.soak
def test_a_killed_run_is_gone_on_with(sandbox: Sandbox, serve: Serve) -> None:
    """SIGKILL while the model thinks: all that was said is there, and a second process has the session to itself again."""
    hold = threading.Event()

    def script(seen: Seen) -> Reply:
        if seen.number == 2:
            hold.wait(30)
        return call("list_files", {"path": "."}) if seen.number == 1 else text("On.")

    server = serve(script)
    process = sandbox.start("-p", "Begin with OTTER.", "--approve", "auto")
    while_running(process, lambda: len(server.seen) == 2)
    busy = sandbox.here("-p", "Me too.", "--continue")
    assert (busy.code, "in use by another process" in busy.stderr) == (2, True)
    end(process, signal.SIGKILL)
    hold.set()
    done = go(sandbox, "Go on.", "--continue")
    assert done.report["text"] == "On."
    told = json.dumps(server.seen[-1].messages)
    assert "OTTER" in told
    assert paired(server.seen[-1])
    found = shown(sandbox, "show", done.report["session_id"])
    assert (found["messages"], found["status"]) == (5, "done")


@pytest.mark.soak
def test_two_sessions_at_once_in_one_project(sandbox: Sandbox, serve: Serve) -> None:
    gate = threading.Barrier(2, timeout=30)

    def script(seen: Seen) -> Reply:
        if len(seen.messages) == 2:
            gate.wait()  # both are at work
            return call("list_files", {"path": "."})
        return text(f"End of {said(seen)[0]}")

    serve(script)
    processes = [
        sandbox.start("-p", f"Task {n}", "--output", "json", "--runtime", "local", "--approve", "auto")
        for n in (1, 2)
    ]
    for number, process in enumerate(processes, 1):
        stdout, stderr = process.communicate(timeout=60)
        assert json.loads(stdout)["text"] == f"End of Task {number}", stderr
    listed = shown(sandbox, "list")["sessions"]
    assert sorted(row["title"] for row in listed) == ["Task 1", "Task 2"]
    assert [row["messages"] for row in listed] == [4, 4]


def test_a_disk_that_fills_up_ends_the_run_with_a_sentence(sandbox: Sandbox, serve: Serve) -> None:
    home = sandbox.home / "opendev"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(home)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:

        def script(seen: Seen) -> Reply:
            if seen.number == 2:
                subprocess.run(
                    f"cat /dev/zero > {home}/ballast", shell=True, check=False, capture_output=True
                )
            long = "It takes more than the last block. " * 300
            return call("list_files", {"path": "."}, say=long) if seen.number < 3 else text("On.")

        server = serve(script)
        done = sandbox.here("-p", "Go.", "--output", "json", "--approve", "auto", "--runtime", "local")
        assert (done.code, done.report["status"]) == (6, "infra")
        assert "No space left" in done.stderr
        (home / "ballast").unlink()
        again = go(sandbox, "Go on.", "--continue")
        assert again.report["text"] == "On."
        assert all(paired(seen) for seen in server.seen)
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become nobody")
def test_a_project_that_cannot_be_written_is_told_and_read(
    sandbox: Sandbox, serve: Serve, tmp_path: Path
) -> None:
    """As another user: nothing of the project can be written, its state root can."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(sandbox.project)], check=False)
    try:
        (sandbox.project / "a.txt").write_text("HELLO\n")
        remount = ["mount", "-o", "remount,ro", str(sandbox.project)]
        if subprocess.run(remount, capture_output=True, check=False).returncode:
            pytest.skip("no read-only mount can be made here")
        server = serve(
            call("write_file", {"file_path": "b.txt", "content": "x"}),
            call("read_file", {"file_path": "a.txt"}),
            text("It cannot be written."),
        )
        done = sandbox.here("-p", "Go.", "--output", "json", "--approve", "auto", "--runtime", "local")
        assert done.report["text"] == "It cannot be written."
        assert "Read-only file system" in json.dumps(server.seen[1].messages)
        assert "HELLO" in json.dumps(server.seen[2].messages)
        assert len(shown(sandbox, "list")["sessions"]) == 1
    finally:
        subprocess.run(["umount", "-l", str(sandbox.project)], check=False)
