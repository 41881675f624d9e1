"""What the harness notices by itself: the class of a failure, a tool call written as text (ERR-01, M14)."""

import re
from collections.abc import Collection

from ..core.errors import ErrorInfo, ErrorKind

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "permission",
        re.compile(r"permission denied|operation not permitted|EACCES|read-only file system", re.I),
    ),
    (
        "edit_mismatch",
        re.compile(
            r"(old_content|old text|anchor).*(not found|does not occur|no match)|changed since|matches? \d+ (times|places)",
            re.I | re.S,
        ),
    ),
    (
        "file_not_found",
        re.compile(r"no such file|file not found|does not exist|FileNotFoundError|ENOENT", re.I),
    ),
    (
        "syntax",
        re.compile(r"syntax ?error|IndentationError|unexpected token|parse error|invalid syntax", re.I),
    ),
    ("rate_limit", re.compile(r"rate.?limit|too many requests|\b429\b", re.I)),
    ("timeout", re.compile(r"timed? ?out|time-out|no output for \d+|deadline exceeded", re.I)),
)
ERROR_CLASSES = tuple(name for name, _ in _PATTERNS)
_BY_KIND = {
    ErrorKind.NOT_FOUND: "file_not_found",
    ErrorKind.TIMEOUT: "timeout",
    ErrorKind.RATE_LIMIT: "rate_limit",
    ErrorKind.SCOPE: "permission",
}


def classify(error: ErrorInfo) -> str:
    """One of ``ERROR_CLASSES``, or ``tool_failed_generic``."""
    if error.kind in _BY_KIND:
        return _BY_KIND[error.kind]
    for name, pattern in _PATTERNS:
        if pattern.search(error.message):
            return name
    return "tool_failed_generic"


_FENCE = re.compile(r"```.*?(```|\Z)", re.S)
_INLINE = re.compile(r"`[^`\n]*`")
_WRITTEN = (
    re.compile(r"<invoke\s+name=[\"']([\w.-]+)[\"']\s*>.*?</invoke>", re.S),
    re.compile(
        r"<(?:tool_call|function_call)>.*?[\"']name[\"']\s*:\s*[\"']([\w.-]+)[\"'].*?</(?:tool_call|function_call)>",
        re.S,
    ),
    re.compile(r"<function=([\w.-]+)>.*?</function>", re.S),
    re.compile(r"\[TOOL_CALLS?\].*?[\"']name[\"']\s*:\s*[\"']([\w.-]+)[\"'].*?\]", re.S),
    re.compile(
        r"^\s*\{\s*[\"']name[\"']\s*:\s*[\"']([\w.-]+)[\"']\s*,\s*[\"'](?:arguments|parameters|input)[\"']\s*:.*\}\s*$",
        re.S,
    ),
)
_LOOK_AT_CHARS = 50_000


def written_call(text: str, tools: Collection[str]) -> str:
    """The name of a tool whose call stands in ``text`` as text, outside of code; empty when there is none.

    A name counts when it is registered, or is a part of a registered one (``read`` of ``read_file``).
    """
    plain = _INLINE.sub("", _FENCE.sub("", text[:_LOOK_AT_CHARS]))
    for pattern in _WRITTEN:
        for match in pattern.finditer(plain):
            name = match.group(1).rsplit(".", 1)[-1].lower()
            if any(name == tool or name in tool.split("_") for tool in tools):
                return match.group(1)
    return ""
