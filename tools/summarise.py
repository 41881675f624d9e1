"""The short form of a tool result, by the tool's name: kept beside the full text, shown in its place where history is condensed.

TOR-01..04. A result enters the conversation with both (C-16); the forms are those of TOR-02 and TOR-03.
"""

import re
from collections.abc import Callable

from ..core.errors import ErrorKind
from ..core.tool import ToolResult

MAX_CHARS = 200
VERBATIM_CHARS = 100
EMPTY = "(no output)"  # providers refuse blank content (M06)
FAILED = "\u00d7"  # the multiplication sign of TOR-04
_CLASS = re.compile(r"\b([A-Z][A-Za-z]*(?:Error|Exception|Warning|Interrupt)): ")
_CLASSES = {
    ErrorKind.NOT_FOUND: "FileNotFoundError",
    ErrorKind.TIMEOUT: "TimeoutError",
    ErrorKind.SCOPE: "PermissionError",
    ErrorKind.DENIED: "PermissionError",
    ErrorKind.CANCELLED: "CancelledError",
}
_NOTE = re.compile(r"^\[.*\]$")
_OMITTED = re.compile(r"^\[\.\.\. \d+ bytes omitted \.\.\.\]$", re.MULTILINE)


def summarise(tool: str, result: ToolResult) -> str:
    """One line of at most 200 characters for ``result`` of ``tool``."""
    if not result.ok:
        return _failure(result)
    known = _BY_TOOL.get(tool)
    return (known(result) if known else "") or _own(result)


def _failure(result: ToolResult) -> str:
    """``\u00d7 Error: <class>: <message>``; the class is the one the message names, else that of the kind of error (TOR-04)."""
    kind = result.error.kind if result.error else ErrorKind.TOOL
    message = " ".join((result.error.message if result.error else result.text).split())
    named = _CLASS.search(message)
    if named:
        message = f"{named[1]}: {message[: named.start()]}{message[named.end() :]}"
    else:
        message = f"{_CLASSES.get(kind, 'ToolError')}: {message}"
    return f"{FAILED} Error: {message}"[:MAX_CHARS]


def _own(result: ToolResult) -> str:
    """What the tool itself says; else the first line of its text."""
    text = result.summary or next(iter(result.text.strip().splitlines()), "")
    return " ".join(text.split())[:MAX_CHARS] or EMPTY


def _read(result: ToolResult) -> str:
    """Lines and characters of what was shown, without the line numbers; an empty file keeps its own words."""
    data = result.data or {}
    first, last = data.get("first"), data.get("last")
    if not isinstance(first, int) or not isinstance(last, int):
        return ""
    lines = [line.partition("\t") for line in result.text.splitlines()]
    chars = sum(len(text) + 1 for number, tab, text in lines if tab and number.strip().isdigit())
    return f"✓ Read file ({last - first + 1:,} lines, {chars:,} chars)"


def _command(result: ToolResult) -> str:
    """Short output verbatim, else how much there was. The notes in brackets behind the output are ours, not the command's."""
    lines = result.text.rstrip().splitlines()
    while lines and _NOTE.match(lines[-1]):
        lines.pop()
    output = "\n".join(lines).strip()
    if len(output) <= VERBATIM_CHARS:
        return " ".join(output.split("\n")) or EMPTY
    over = "over " if _OMITTED.search(output) else ""  # the middle of very long output is in its log only
    return f"✓ Command executed ({over}{len(lines):,} lines of output)"


# search and list_files count what they found themselves, in the forms of TOR-02.
_BY_TOOL: dict[str, Callable[[ToolResult], str]] = {
    "read_file": _read,
    "run_command": _command,
    "search": _own,
    "list_files": _own,
}
