"""`opendev -p`: the work is really done, and what goes over the wire and to standard output is what the documentation says."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Sandbox, paired
from support.model_server import Call as ToolCall
from support.model_server import ModelServer, call, calls, text
from support.repos import fingerprint, make_repo

Serve = Callable[..., ModelServer]
MODELS = (
    "openai/gpt-4o-mini",
    pytest.param("anthropic/claude-sonnet-4-5", marks=pytest.mark.xdist_group("litellm")),
)
SOURCE = "def double(x):\n    return x + 2\n"
MENDED = "def double(x):\n    return 2 * x  # twice\n"  # of another length: Python would take its cached code for the old one
TEST = "from calc import double\n\nassert double(5) == 10, double(5)\nprint('green')\n"
FIX = (
    calls(
        ToolCall("read_file", {"file_path": "calc.py"}),
        ToolCall("run_command", {"command": "python3 check.py"}),
    ),
    call(
        "edit_file",
        {"file_path": "calc.py", "old_content": "x + 2", "new_content": "2 * x  # twice"},
        say="I see.",
    ),
    call("run_command", {"command": "python3 check.py"}),
    text("The function doubles now."),
)


def broken_project(sandbox: Sandbox) -> None:
    (sandbox.project / "calc.py").write_text(SOURCE)
    (sandbox.project / "check.py").write_text(TEST)


def prefix(body: dict[str, Any]) -> str:
    """What a provider caches of a request: the tools and the stable part of the system prompt."""
    return json.dumps([body["tools"], body["system"][0] if "system" in body else body["messages"][0]])


@pytest.mark.req("CLI-02")
@pytest.mark.usefixtures("openai_loaded")
@pytest.mark.parametrize("model", MODELS)
def test_it_mends_a_file_and_tells_the_truth_to_user_and_model(
    sandbox: Sandbox, serve: Serve, model: str
) -> None:
    broken_project(sandbox)
    sandbox.model = model
    server = serve(*FIX)
    done = sandbox.here("-p", "Mend it.", "--output", "json", "--approve", "auto")
    assert (sandbox.project / "calc.py").read_text() == MENDED
    report, billed = done.report, server.billed()
    assert report | {"session_id": "", "wall_s": 0.0, "cost_usd": 0.0} == {
        "schema": 1,
        "session_id": "",
        "status": "done",
        "exit_code": 0,
        "text": "The function doubles now.",
        "turns": 4,
        "tool_calls": 4,
        "model_calls": 4,
        "tokens": {"input": billed.input, "output": billed.output, "cached": 0},
        "cost_usd": 0.0,
        "wall_s": 0.0,
        "files_changed": ["calc.py"],
        "error": None,
    }
    assert report["cost_usd"] > 0
    assert [seen.dialect for seen in server.seen] == [model.split("/")[0]] * 4
    assert all(seen.says("Mend it.") and paired(seen) for seen in server.seen)
    assert server.seen[1].says("AssertionError: 7")
    assert server.seen[3].says("green")
    assert {"read_file", "edit_file", "run_command", "spawn_subagent"} <= tool_names(server.seen[0].body)
    assert len({prefix(seen.body) for seen in server.seen}) == 1
    assert not any(b"test-key" in seen.raw for seen in server.seen)
    assert "test-key" not in done.stderr + done.stdout


def tool_names(body: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] if "function" in tool else tool["name"] for tool in body["tools"]}


def test_each_request_begins_with_the_bytes_of_the_one_before(sandbox: Sandbox, serve: Serve) -> None:
    broken_project(sandbox)
    server = serve(*FIX)
    sandbox.here("-p", "Mend it.", "--output", "json", "--approve", "auto")
    histories = [seen.messages for seen in server.seen]
    for earlier, later in itertools.pairwise(histories):
        assert json.dumps(later[: len(earlier)]) == json.dumps(earlier)


@pytest.mark.slow
def test_the_installed_command_streams_json_and_nothing_else(sandbox: Sandbox, serve: Serve) -> None:
    make_repo(sandbox.project / "repo")
    sandbox.project = sandbox.project / "repo"
    sandbox.env |= {"PYTHONWARNINGS": "always", "LITELLM_LOG": "DEBUG"}
    serve(
        call("run_command", {"command": "printf '\\033[31mred\\033[0m'; echo hi >&2"}),
        text("Done \x1b[31mhere."),
    )
    done = sandbox.run("-p", "Go.", "--output", "stream-json", "--approve", "auto")
    kinds = [event["kind"] for event in done.events]
    assert kinds[0] == "run_started"
    assert kinds[-2:] == ["run_finished", "report"]
    assert {"agent_started", "tool_started", "tool_finished", "assistant_text", "agent_finished"} <= set(
        kinds
    )
    assert len({event["run"] for event in done.events}) == 1
    assert done.code == 0


@pytest.mark.slow
def test_text_goes_to_stdout_and_the_rest_to_stderr_without_escapes(sandbox: Sandbox, serve: Serve) -> None:
    sandbox.env |= {"NO_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    serve(
        call("run_command", {"command": "printf '\\033[31mred\\033[0m'"}, say="\x1b[2Jfirst"),
        text("Done\x1b]0;title\x07 here.\nTwo lines: é."),
    )
    done = sandbox.run("-p", "-", "--approve", "auto", stdin="Go on.\n")
    assert done.stdout == "Done\\x1b]0;title\\x07 here.\nTwo lines: \\xe9.\n"
    assert "run_command" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.code == 0
    assert sandbox.server is not None
    assert sandbox.server.seen[0].says("Go on.")


@pytest.mark.slow
def test_packages_in_the_working_folder_are_not_imported(sandbox: Sandbox, serve: Serve) -> None:
    for name in ("tools", "agents", "core", "opendev"):
        (sandbox.project / name).mkdir()
        (sandbox.project / name / "__init__.py").write_text(f"raise SystemExit('decoy {name}')\n")
    for name in ("httpx", "json", "git", "litellm", "sitecustomize"):
        (sandbox.project / f"{name}.py").write_text(f"raise SystemExit('decoy {name}')\n")
    serve(text("Fine."))
    done = sandbox.run("-p", "Go.", "--output", "json", "--runtime", "local")
    assert (done.code, done.report["text"]) == (0, "Fine.")


def test_without_a_model_it_says_how_to_get_one(sandbox: Sandbox) -> None:
    told = sandbox.here("-p", "Go.")
    assert (told.code, told.stdout) == (2, "")
    assert "OPENDEV_MODEL=provider/NAME" in told.stderr
    as_json = sandbox.here("-p", "Go.", "--output", "json")
    assert (as_json.code, as_json.report["status"], as_json.report["error"]["kind"]) == (
        2,
        "failed",
        "config",
    )
    streamed = sandbox.here("-p", "Go.", "--output", "stream-json")
    assert [event["kind"] for event in streamed.events] == ["report"]
    assert sandbox.runs() == []


@pytest.mark.parametrize(
    "arguments",
    [("-p", "  "), ("-p", "Go.", "--agent", "Nobody"), ("-p", "Go.", "--working-dir", "nowhere")],
)
def test_wrong_usage_is_exit_2_in_every_form(
    sandbox: Sandbox, serve: Serve, arguments: tuple[str, ...]
) -> None:
    server = serve(text("never"))
    assert sandbox.here(*arguments).code == 2
    report = sandbox.here(*arguments, "--output", "json").report
    assert (report["exit_code"], report["error"]["kind"]) == (2, "usage")
    assert server.seen == []


def test_a_wrong_option_is_exit_2_with_a_pure_stdout(sandbox: Sandbox) -> None:
    for wrong in (("--mode", "fast"), ("--max-iterations", "0"), ("--output", "xml"), ("--nonsense",)):
        done = sandbox.here("-p", "Go.", *wrong)
        assert (done.code, done.stdout) == (2, "")
        assert wrong[0] in done.stderr


@pytest.mark.slow
@pytest.mark.req("MOD-11")
def test_a_recorded_run_is_replayed_without_a_server(sandbox: Sandbox, serve: Serve, tmp_path: Path) -> None:
    broken_project(sandbox)
    server = serve(
        *FIX[:2],
        call("run_command", {"command": "python3 check.py; date +%N"}),  # what it prints differs each time
        FIX[3],
    )
    tape = tmp_path / "tape.jsonl"
    first = sandbox.here("-p", "Mend it.", "--output", "json", "--approve", "auto", "--record", str(tape))
    server.stop()
    broken_project(sandbox)
    again = sandbox.here("-p", "Mend it.", "--output", "json", "--approve", "auto", "--replay", str(tape))
    assert (sandbox.project / "calc.py").read_text() == MENDED
    differing = {"session_id": "", "wall_s": 0.0}
    assert again.report | differing == first.report | differing
    assert len(server.seen) == 4
    assert not re.search("test-key", tape.read_text())
    sandbox.server = None
    broken_project(sandbox)
    bare = sandbox.here("-p", "Mend it.", "--output", "json", "--approve", "auto", "--replay", str(tape))
    assert bare.report | differing == first.report | differing  # the recording names its model
    other = sandbox.here("-p", "Another one.", "--output", "json", "--replay", str(tape))
    assert (other.code, other.report["error"]["kind"]) == (6, "model")


@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_it_works_in_the_folder_it_is_given_and_leaves_the_repository_alone(
    sandbox: Sandbox, serve: Serve, tmp_path: Path, output: str
) -> None:
    repo = make_repo(tmp_path / "elsewhere")
    before = fingerprint(repo)
    serve(call("write_file", {"file_path": "new.txt", "content": "new\n"}), text("Written."))
    options = ("--output", output, "--approve", "auto", "--working-dir", str(repo))
    done = sandbox.here("-p", "Write.", *options)
    assert done.code == 0
    assert (repo / "new.txt").read_text() == "new\n"
    (repo / "new.txt").unlink()
    assert fingerprint(repo) == before
    assert list(sandbox.project.iterdir()) == []


def test_bytes_that_are_no_text_do_not_end_a_run(sandbox: Sandbox, serve: Serve) -> None:
    """In the prompt, in a file's name, and as half a character in the model's words and arguments."""
    (sandbox.project / "caf\udce9.txt").write_text("x\n")
    server = serve(
        calls(ToolCall("list_files", {}), ToolCall("search", {"pattern": "x"})),
        call("write_file", {"file_path": "a.txt", "content": "\ud83d"}),
        call("write_file", {"file_path": "b.txt", "content": "\ud83d\ude00"}),
        text("Half \ud83d, whole \ud83d\ude00.", chunk=1),
    )
    done = sandbox.here("-p", "Go on\udcff.", "--output", "json", "--approve", "auto")
    assert server.seen[0].says("Go on?.")
    assert done.report["text"] == "Half \ufffd, whole \U0001f600."
    assert sorted(path.name for path in sandbox.project.iterdir()) == ["b.txt", "caf\udce9.txt"]
    assert (sandbox.project / "b.txt").read_text() == "\U0001f600"
    assert all(paired(seen) for seen in server.seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("printf 'a\\377b' | opendev -p - --output json", 0, '"status": "done"'),
        ("opendev -p x --output json 2>&-", 0, '"status": "done"'),
        ("opendev -p x >&-", 0, "done"),
        ("mkdir d; cd d; rmdir ../d; opendev -p x --output json", 2, "--working-dir"),
        ("opendev -p - <&-", 2, "prompt is empty"),
        ("opendev", 2, "opendev -p"),
        ("opendev -p x --output json --nonsense", 2, "--nonsense"),
    ],
)
def test_an_odd_caller_is_served_or_told(
    sandbox: Sandbox, serve: Serve, script: str, code: int, says: str
) -> None:
    serve(text("Fine."), repeat=True)
    done = sandbox.shell(script)
    assert (done.code, "Traceback" in done.stderr, "defect" in done.stderr) == (code, False, False), done
    assert says in done.stdout + done.stderr


@pytest.mark.req("RET-07", "RET-03", "PRM-09")
@pytest.mark.usefixtures("openai_loaded")
@pytest.mark.parametrize("model", MODELS)
def test_a_mentioned_file_is_in_the_first_request_and_the_stable_prompt_is_cacheable(
    sandbox: Sandbox, serve: Serve, model: str
) -> None:
    broken_project(sandbox)
    (sandbox.project / "AGENTS.md").write_text("RULE_OF_THE_PROJECT")
    (sandbox.project.parent / "outside.txt").write_text("OUTSIDE")
    sandbox.model = model
    server = serve(text("It adds two."))
    done = sandbox.here("-p", "Explain @calc.py, not @../outside.txt", "--output", "json")
    assert done.report["status"] == "done"
    (seen,) = server.seen
    assert seen.says("return x + 2")
    assert seen.says("Explain @calc.py, not @../outside.txt")
    assert not seen.says("OUTSIDE")
    assert "@../outside.txt is not attached" in done.stderr
    if model.startswith("anthropic"):
        stable, dynamic = seen.body["system"]
        assert stable["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" not in dynamic
        assert "tool_use blocks" in stable["text"]
        assert "RULE_OF_THE_PROJECT" in dynamic["text"]
    else:
        assert "RULE_OF_THE_PROJECT" in seen.body["messages"][0]["content"]
        assert "function calling" in seen.body["messages"][0]["content"]
