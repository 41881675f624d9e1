"""What of a long output tells why it failed: the failing tests and the last lines, without the noise of success (TOR-09)."""

import re

TAIL_LINES = 80
MAX_CHARS = 6_000
_LINE_CHARS = 300
_NOISE = re.compile(
    r"""
    \b(PASSED|SKIPPED|XFAIL|XPASS)\b\s*(\[\s*\d+%\])?\s*$      # pytest -v
    | ^\S+\s[.sx]+\s*(\[\s*\d+%\])?\s*$                        # pytest, a file of dots
    | ^[.sx]{2,}\s*(\[\s*\d+%\])?\s*$                           # a line of dots
    | \.\.\.\s(ok|skipped.*)\s*$                              # unittest, cargo
    | ^\s*(✓|✔|√|PASS\b|ok\s|---\sPASS|===\s(RUN|PAUSE|CONT)\b)  # jest, mocha, go, tap
    | ^\s*(Compiling|Downloading|Downloaded|Collecting|Requirement\ already|Using\ cached|added\ \d+\ packages)\b
    | ^\s*$
    """,
    re.VERBOSE,
)


def failing_part(text: str) -> str:
    """The last 80 lines of ``text`` that are no noise of success, at most 6,000 characters; the newest are kept."""
    lines = [line[:_LINE_CHARS] for line in text.splitlines() if not _NOISE.search(line)]
    kept: list[str] = []
    room = MAX_CHARS
    for line in reversed(lines[-TAIL_LINES:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))
