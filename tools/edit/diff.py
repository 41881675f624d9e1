"""Unified diffs for people, bounded, without comparing what plainly did not change."""

import re
from difflib import unified_diff
from itertools import takewhile

_CONTEXT = 3
_MAX_CHARS = 20_000
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def diff(path: str, before: str, after: str) -> str:
    """The change as a unified diff (FIL-11), at most 20,000 characters; a marker says when more was cut."""
    old, new = _lines(before), _lines(after)
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    skip = max(0, head - _CONTEXT)
    rest = min(len(old), len(new)) - head
    backwards = zip(reversed(old), reversed(new), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], backwards))
    cut = max(0, min(tail, rest) - _CONTEXT)
    shown = [
        _moved(line, skip)
        for line in unified_diff(
            old[skip : len(old) - cut],
            new[skip : len(new) - cut],
            f"a/{path}" if before else "/dev/null",
            f"b/{path}" if after else "/dev/null",
            n=_CONTEXT,
        )
    ]
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shown
    )
    if len(text) > _MAX_CHARS:
        return f"{text[:_MAX_CHARS]}\n[diff cut: {len(text) - _MAX_CHARS:,} more characters]\n"
    return text


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _moved(line: str, skip: int) -> str:
    """A hunk header with its line numbers counted from the file's start."""
    match = _HUNK.match(line) if skip and line.startswith("@@") else None
    if match is None:
        return line
    old, new = int(match[1]) + skip, int(match[3]) + skip
    return f"@@ -{old}{match[2] or ''} +{new}{match[4] or ''} @@{line[match.end() :]}"
