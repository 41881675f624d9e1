"""Failure classes (ERR-01) and tool calls written as text (M14)."""

import pytest
from opendev.context.detectors import classify, same_failure, written_call
from opendev.core.errors import ErrorInfo, ErrorKind

TOOLS = ("read_file", "run_command", "task_complete")


@pytest.mark.req("ERR-01")
@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        (ErrorKind.TOOL, "bash: ./x: Permission denied", "permission"),
        (ErrorKind.SCOPE, "src/a.py is outside of what this task may change.", "permission"),
        (ErrorKind.NOT_FOUND, "no such thing", "file_not_found"),
        (ErrorKind.TOOL, "cat: x: No such file or directory", "file_not_found"),
        (ErrorKind.TOOL, "old_content was not found in a.py", "edit_mismatch"),
        (ErrorKind.TOOL, "a.py changed since you read it", "edit_mismatch"),
        (ErrorKind.TOOL, "SyntaxError: invalid syntax", "syntax"),
        (ErrorKind.TOOL, "HTTP 429 Too Many Requests", "rate_limit"),
        (ErrorKind.TIMEOUT, "x", "timeout"),
        (ErrorKind.TOOL, "the command timed out", "timeout"),
        (ErrorKind.TOOL, "exit code 1", "tool_failed_generic"),
        (
            ErrorKind.TOOL,
            "permission denied while trying to connect to the Docker daemon socket",
            "docker_failed",
        ),
        (ErrorKind.TOOL, "Error response from daemon: No such container: x", "docker_failed"),
    ],
)
def test_a_failure_has_its_class(kind: ErrorKind, message: str, expected: str) -> None:
    assert classify(ErrorInfo(kind=kind, message=message)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('I will look.\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n</invoke>', "read"),
        ('<tool_call>{"name": "read_file", "arguments": {}}</tool_call>', "read_file"),
        ("<function=run_command>ls</function>", "run_command"),
        ('<|python_tag|>read_file(file_path="n.py")', "read_file"),
        ('<|tool_call|>[{"name": "read_file", "arguments": {}}]', "read_file"),
        ('functions.read_file:0{"file_path": "n.py"}', "read_file"),
        ("It maps functions.read_file: 0 to 9.", ""),
        ('{"name": "functions.read_file", "arguments": {"file_path": "a"}}', "functions.read_file"),
        ('Use it like this:\n```xml\n<invoke name="read_file"></invoke>\n```', ""),
        ('The tag `<invoke name="read_file"></invoke>` is XML.', ""),
        ('<invoke name="read_file"> is how it begins', ""),
        ('<invoke name="teleport"></invoke>', ""),
        ("All tests pass.", ""),
    ],
)
def test_a_call_written_as_text_is_noticed(text: str, expected: str) -> None:
    assert written_call(text, TOOLS) == expected


def test_two_failures_are_the_same_when_only_numbers_and_spacing_differ() -> None:
    one = same_failure(
        "run_command", "exit code 1 after 0.1 s\n  File '/tmp/x1/a.py', line 3\nAssertionError: 7 != 8"
    )
    two = same_failure(
        "run_command", "exit code 1 after 2.5 s\nFile '/tmp/y/a.py', line 9\nAssertionError: 5 != 8"
    )
    assert one == two
    assert one != same_failure("run_command", "exit code 1 after 0.1 s\nKeyError: 'x'")
    assert one != same_failure(
        "read_file", "exit code 1 after 0.1 s\n  File '/tmp/x1/a.py', line 3\nAssertionError: 7 != 8"
    )
