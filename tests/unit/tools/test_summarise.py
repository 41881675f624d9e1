"""Summaries by tool name in the exact forms of TOR-02..04, and what of a failed command's output is kept (TOR-09)."""

from pathlib import Path

import pytest
from opendev.context.summaries import RESULT_TOKENS, condensed
from opendev.core.chat import ToolMessage
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.ports import CommandResult
from opendev.core.tool import Limits, ToolResult
from opendev.tools import list_files, read_file, run_command, search
from opendev.tools.failing_part import MAX_CHARS, TAIL_LINES, failing_part
from opendev.tools.offload import Offloader
from opendev.tools.summarise import MAX_CHARS as SUMMARY_CHARS
from opendev.tools.summarise import summarise
from support.tool_context import FakeShell, make_context


def project(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    root.mkdir()
    (root / "a.py").write_text("".join(f"value_{n} = {n}\n" for n in range(142)))
    (root / "b.py").write_text("value_7 = 1\n")
    return root


@pytest.mark.req("TOR-01", "TOR-02", "C-16")
async def test_reading_searching_and_listing(tmp_path: Path) -> None:
    root = project(tmp_path)
    ctx = make_context(root)
    read = await read_file.TOOL.run(read_file.Args(file_path="a.py"), ctx)
    chars = len((root / "a.py").read_text())
    assert summarise("read_file", read) == f"✓ Read file (142 lines, {chars:,} chars)"
    assert "value_141 = 141" in read.text
    part = await read_file.TOOL.run(read_file.Args(file_path="a.py", offset=2, max_lines=3), ctx)
    assert summarise("read_file", part) == "✓ Read file (3 lines, 36 chars)"
    (root / "empty").touch()
    empty = await read_file.TOOL.run(read_file.Args(file_path="empty"), ctx)
    assert summarise("read_file", empty) == "✓ Read empty (empty)"
    (root / "empty").unlink()
    found = await search.TOOL.run(search.Args(pattern="value_7 "), ctx)
    assert summarise("search", found) == "✓ Search completed (2 matches)"
    nothing = await search.TOOL.run(search.Args(pattern="no such text"), ctx)
    assert summarise("search", nothing) == "✓ Search completed (no matches)"
    listed = await list_files.TOOL.run(list_files.Args(), ctx)
    assert summarise("list_files", listed) == "✓ Listed directory (2 items)"


@pytest.mark.req("TOR-03")
@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("ok\n", "ok"),
        ("", "(no output)"),
        ("a" * 100, "a" * 100),
        ("a" * 101, "✓ Command executed (1 lines of output)"),
        ("line\n" * 312, "✓ Command executed (312 lines of output)"),
        ("a\n" * 99 + "[... 9 bytes omitted ...]\nz\n", "✓ Command executed (over 101 lines of output)"),
    ],
)
async def test_a_command(tmp_path: Path, output: str, summary: str) -> None:
    shell = FakeShell(CommandResult(exit_code=0, text=output, ended="exit", wall_s=0.1, log="/x.log"))
    ctx = make_context(project(tmp_path), shell=shell)
    result = await run_command.TOOL.run(run_command.Args(command="make"), ctx)
    assert summarise("run_command", result) == summary


@pytest.mark.req("TOR-04")
@pytest.mark.parametrize(
    ("kind", "message", "summary"),
    [
        (ErrorKind.NOT_FOUND, "no a.py", "\u00d7 Error: FileNotFoundError: no a.py"),
        (ErrorKind.TIMEOUT, "too\nslow", "\u00d7 Error: TimeoutError: too slow"),
        (ErrorKind.SCOPE, "outside", "\u00d7 Error: PermissionError: outside"),
        (ErrorKind.TOOL, "it broke", "\u00d7 Error: ToolError: it broke"),
        (ErrorKind.INTERNAL, "f failed: KeyError: 'k'", "\u00d7 Error: KeyError: f failed: 'k'"),
    ],
)
def test_a_failure_names_its_class(kind: ErrorKind, message: str, summary: str) -> None:
    result = ToolResult(ok=False, text=message, error=ErrorInfo(kind=kind, message=message))
    assert summarise("read_file", result) == summary
    long = ToolResult.failure("x" * 5_000)
    assert len(summarise("anything", long)) == SUMMARY_CHARS == 200


@pytest.mark.req("TOR-01")
def test_a_tool_without_a_form_of_its_own_says_it_itself_and_stays_short() -> None:
    assert summarise("other", ToolResult(ok=True, text="x", summary="✓ Did it")) == "✓ Did it"
    assert summarise("other", ToolResult(ok=True, text="first\nsecond")) == "first"
    assert summarise("other", ToolResult(ok=True, text=" ")) == "(no output)"
    assert len(summarise("other", ToolResult(ok=True, text="y" * 9_000))) == 200


@pytest.mark.req("TOR-07", "TOR-08", "C-17")
def test_the_summariser_gets_the_summary_and_at_most_300_tokens() -> None:
    limit = RESULT_TOKENS * 4
    short = ToolMessage(call_id="a", name="t", content="s" * limit, summary="S")
    long = ToolMessage(
        call_id="b", name="t", content="l" * (limit + 1), summary="✓ Read file (9 lines, 99 chars)"
    )
    bare = ToolMessage(call_id="c", name="t", content="b" * 90_000)
    first, second, third = (
        message.content for message in condensed((short, long, bare)) if message.role == "tool"
    )
    assert (first, second) == (short.content, long.summary)
    assert RESULT_TOKENS == 300
    assert len(third) < limit + 20


PYTEST_LOG = (
    "".join(f"tests/test_{n}.py::test_case_{n} PASSED   [ {n % 100}%]\n" for n in range(2_000))
    + "tests/test_x.py ......F.... [100%]\n"
    + "=== FAILURES ===\n    def test_x():\n>       assert add(1, 2) == 4\nE       assert 3 == 4\n\ntests/test_x.py:7: AssertionError\n"
    + "FAILED tests/test_x.py::test_x - assert 3 == 4\n1 failed, 2000 passed in 9.9s\n"
)


@pytest.mark.req("TOR-09")
def test_the_failing_part_is_kept_and_the_noise_of_success_is_not() -> None:
    kept = failing_part(PYTEST_LOG)
    assert "PASSED" not in kept
    for line in (
        "E       assert 3 == 4",
        "tests/test_x.py:7: AssertionError",
        "1 failed, 2000 passed in 9.9s",
    ):
        assert line in kept
    other = "=== RUN TestA\n--- PASS: TestA (0.00s)\nok  \tpkg\t0.01s\ntest a ... ok\n  ✓ works\nFAIL pkg\n"
    assert failing_part(other) == "FAIL pkg"
    flood = failing_part("\n".join(f"error {n}" for n in range(10_000)))
    assert flood.splitlines() == [f"error {n}" for n in range(10_000 - TAIL_LINES, 10_000)]
    assert len(failing_part("\n".join("z" * 5_000 for _ in range(500)))) <= MAX_CHARS


@pytest.mark.req("TOR-09", "TOR-05")
def test_a_long_failed_command_leaves_preview_path_and_failing_part(tmp_path: Path) -> None:
    offloader = Offloader(tmp_path / "scratch", Limits(), frozenset({"read_file"}))
    args = run_command.Args(command="pytest -v")
    failed = offloader.shorten(run_command.TOOL, args, "c", PYTEST_LOG, failed=True)
    passed = offloader.shorten(run_command.TOOL, args, "d", PYTEST_LOG)
    assert failed.startswith(PYTEST_LOG[:500])
    assert (
        f"[Output offloaded: {PYTEST_LOG.count(chr(10)):,} lines, {len(PYTEST_LOG):,} chars → {tmp_path}"
        in failed
    )
    assert "E       assert 3 == 4" in failed
    assert "E       assert 3 == 4" not in passed
    assert len(failed) < 2_000
    assert (tmp_path / "scratch/results/run_command-c.txt").read_text() == PYTEST_LOG
