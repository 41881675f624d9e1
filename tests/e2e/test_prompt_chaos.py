"""Whatever a model answers, a run of `opendev -p` ends soon, with one JSON object, an exit code that fits, and a sound conversation."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.command_line import Sandbox, paired
from support.model_server import Call, ModelServer, Reply, calls, failing, text

CODES = {
    "done": {0}, "failed": {1, 2}, "empty": {1}, "iteration_cap": {1}, "timeout": {1}, "verify_failed": {3},
    "budget": {5}, "infra": {6}, "unanswered": {7},
}  # fmt: skip
ARGUMENTS = st.one_of(
    st.sampled_from(
        [
            *({"file_path": "a.txt", "content": "x\n"}, {"file_path": "../out.txt", "content": "x"}, {"pattern": "x"}),
            *({"command": "echo hi"}, {"command": "exit 3"}, {"command": "rm -rf /"}, {"status": "success"}, {}),
            *('{"file_path": "a', "[]", "null", '{"file_path": NaN}', '{"content": "\\ud83d"}'),
        ]
    ),
    st.dictionaries(st.sampled_from(["file_path", "status", "agent", "todos"]), st.text(max_size=5) | st.integers(), max_size=2),
)  # fmt: skip
NAMES = st.sampled_from(
    [
        *("write_file", "read_file", "run_command", "search", "task_complete", "write_todos", "Write-File", "no_such", ""),
        *("spawn_subagent", "edit_file"),
    ]
)  # fmt: skip
CALLS = st.lists(st.builds(Call, NAMES, ARGUMENTS, st.sampled_from([None, None, "same", ""])), max_size=3)


def _answer(said: str, wanted: list[Call], faults: dict[str, Any]) -> Reply:
    return calls(*wanted, say=said, **faults)


ANSWERS = st.builds(
    _answer,
    st.sampled_from(["", "Well.", "Failure accepted: never mind.", "<think>", "\x1b[31m\x00 \ud83d"]),
    CALLS,
    st.sampled_from(
        [
            *({}, {}, {}, {"finish": "length"}, {"finish": "content_filter"}, {"finish": "odd"}, {"usage": None}),
            *({"drop_after": 2}, {"eof_after": 1}, {"fail_after": 3, "error": "broken"}, {"interleave": True}),
        ]
    ),
)  # fmt: skip
REPLIES = st.one_of(ANSWERS, st.builds(failing, st.sampled_from([500, 429, 400, 401, 404, 413])))


@pytest.mark.slow
@pytest.mark.usefixtures("litellm_loaded")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(REPLIES, min_size=1, max_size=6),
    model=st.sampled_from(["openai/gpt-4o-mini", "openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"]),
    verify=st.sampled_from(["", "test -f a.txt"]),
)
@pytest.mark.soak
def test_any_script_ends_honestly(
    tmp_path_factory: pytest.TempPathFactory, script: list[Reply], model: str, verify: str
) -> None:
    place = tmp_path_factory.mktemp("chaos")
    sandbox = Sandbox(place / "project", place / "home", model=model)
    sandbox.project.mkdir()
    sandbox.home.mkdir()
    sandbox.env["OPENDEV_RETRY__CAP_S"] = "0.02"
    with ModelServer([*script, text("The end.")], repeat=True) as sandbox.server:
        options = ("--approve", "auto", "--runtime", "local", "--max-iterations", "12", "--verify", verify)
        done = sandbox.here("-p", "Do it.", "--output", "json", *options)
        report = done.report
        assert done.code in CODES[report["status"]], done
        assert (report["error"] is None) is (done.code == 0)
        assert "defect" not in done.stderr
        assert "Traceback" not in done.stderr
        assert all(paired(seen) for seen in sandbox.server.seen)
        assert report["model_calls"] == len(sandbox.server.seen)
        if verify and report["status"] == "done":
            assert (sandbox.project / "a.txt").is_file()
    assert not (place / "out.txt").exists()
    assert_unchanged(sandbox.project, report)


def assert_unchanged(project: Path, report: dict[str, Any]) -> None:
    """What is there was told as changed."""
    assert {path.name for path in project.iterdir()} <= set(report["files_changed"])
