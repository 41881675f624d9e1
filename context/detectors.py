"""What the harness notices by itself: failure classes, calls written as text, wishes for a plan, equal failures (ERR-01, M14)."""

import hashlib
import re
from collections.abc import Collection, Iterable

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
_LOOK_AT_CHARS = 50_000
ERROR_CLASSES = tuple(name for name, _ in _PATTERNS)
_BY_KIND = {
    ErrorKind.NOT_FOUND: "file_not_found",
    ErrorKind.TIMEOUT: "timeout",
    ErrorKind.RATE_LIMIT: "rate_limit",
    ErrorKind.SCOPE: "permission",
}


_DOCKER = re.compile(
    r"cannot connect to the docker daemon|docker daemon socket|error response from daemon|docker: command not found"
    r"|no such container|OCI runtime|failed to solve:",
    re.I,
)


def classify(error: ErrorInfo, own: Iterable[tuple[str, re.Pattern[str]]] = ()) -> str:
    """One of ``own``, ``docker_failed``, one of ``ERROR_CLASSES``, or ``tool_failed_generic``."""
    text = error.message[-_LOOK_AT_CHARS:]
    for name, pattern in own:
        if pattern.search(text):
            return name
    if _DOCKER.search(text):
        return "docker_failed"
    if error.kind in _BY_KIND:
        return _BY_KIND[error.kind]
    for name, pattern in _PATTERNS:
        if pattern.search(text):
            return name
    return "tool_failed_generic"


_VOLATILE = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?|/tmp/\S+", re.I)


def same_failure(tool: str, message: str) -> str:
    """A mark that is equal for two failures that say the same: numbers, addresses and spacing do not count."""
    plain = " ".join(_VOLATILE.sub("#", message).split())
    return hashlib.sha256(f"{tool}\0{plain}".encode()).hexdigest()[:16]


_STEP = r"(?:^|[.!?:;,]\s+|\n\s*|\b(?:please|you|let's|let us|me|us|to|and|then|first)\s+)"
_PLANNING = re.compile(
    rf"{_STEP}(?:plan|design|architect|draft a plan|propose an? (?:plan|design))\b"
    r"|\b(?:architecture|(?:implementation|migration|refactoring|project|rollout|step-by-step|detailed) plan)\b"
    r"|\b(?:a|an|the|your|write|make|give me|present|propose)\s+(?:\w+\s+)?(?:plan|design)\s+(?:for|of|to|how|first|before)\b",
    re.I,
)
_ABOUT_CODE = re.compile(r"\b(?:explain|what|where|who|why|how does|list|show|find|describe)\b", re.I)


def wants_plan(prompt: str) -> bool:
    """Whether a prompt asks for planning (LOOP-22): ``/plan``, or a request to plan, to design or about an architecture.

    A question about what exists ("where is the architecture described?") is none.
    """
    text = prompt.strip()[:_PROMPT_CHARS]
    if re.match(r"/plan\b", text):
        return True
    return bool(_PLANNING.search(text)) and not _ABOUT_CODE.match(text)


_PROMPT_CHARS = 4_000
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
    re.compile(
        r"<\|(?:python_tag|tool_calls?_begin|tool_call_start)\|>\W*(?:functions\.)?([\w.-]+)"
    ),  # marks of Llama and Kimi
    re.compile(r"(?:^|\s)functions\.([\w-]+):\d+\s*\{"),
    re.compile(r"<\|(?:python_tag|tool_call\w*)\|>.*?[\"']name[\"']\s*:\s*[\"']([\w.-]+)[\"']", re.S),
)


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
