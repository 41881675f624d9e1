"""What to show when an edit finds no place: the region of the file most like it, exactly as it stands there."""

from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher

from .canonical import folded_line, printable
from .document import Document
from .passes import BLOCK_ANCHOR, CONTEXT_AWARE, Wanted

_SHOWN_LINES = 60
_SHOWN_CHARS = 4_000
_SCORED_LINES = 5_000


def nearest(document: Document, wanted: Wanted) -> tuple[int, int] | None:
    """First and last line (indexes) of the region most like ``old``; None when nothing resembles it."""
    for anchors in (BLOCK_ANCHOR, replace(CONTEXT_AWARE, threshold=0.0)):
        alike = anchors.alike(document, wanted)
        if alike:
            return alike[0][1]
    return _by_shared_lines(document, wanted) or _by_longest_line(document, wanted)


def show(document: Document, first: int, last: int) -> str:
    """Lines ``first`` to ``last`` as the file has them, bounded; to be copied into old_content."""
    lines = document.lines[first : last + 1][:_SHOWN_LINES]
    text = printable("\n".join(lines)[:_SHOWN_CHARS])
    left = last - first + 1 - len(text.split("\n"))
    return text + (f"\n[… {left} more lines: read_file offset={last - left + 2}]" if left else "")


def _by_shared_lines(document: Document, wanted: Wanted) -> tuple[int, int] | None:
    """The window that shares the most lines with ``old``; lines that are rare in the file count more."""
    needle = {line for line in map(folded_line, wanted.lines) if len(line) > 3}
    lines = [folded_line(line) for line in document.lines[: document.count]]
    counts = Counter(lines)
    weights = [1 / counts[line] if line in needle else 0.0 for line in lines]
    size = min(len(wanted.lines), len(lines))
    if not any(weights):
        return None
    score = best = sum(weights[:size])
    at = 0
    for start in range(1, len(lines) - size + 1):
        score += weights[start + size - 1] - weights[start - 1]
        if score > best + 1e-9:
            at, best = start, score
    return at, at + size - 1


def _by_longest_line(document: Document, wanted: Wanted) -> tuple[int, int] | None:
    """Around the line most like the longest line of ``old``."""
    needles = [folded_line(line) for line in wanted.lines]
    longest = max(range(len(needles)), key=lambda k: len(needles[k]))
    matcher = SequenceMatcher(None, "", needles[longest][:500])
    best, place = 0.6, None
    for k, line in enumerate(document.lines[: min(document.count, _SCORED_LINES)]):
        matcher.set_seq1(folded_line(line)[:500])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
            best, place = matcher.ratio(), k
    if place is None:
        return None
    first = max(0, place - longest)
    return first, min(document.count - 1, first + len(needles) - 1)
