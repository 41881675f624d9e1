"""The nine passes of Catalogue E: each finds every region of a document that ``old`` may mean; none of them writes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Protocol

from .canonical import (
    breaks_literal,
    collapse,
    escapes_in,
    fold,
    folded_line,
    has_numbers,
    unescape,
    without_numbers,
)
from .document import Document

MAX_REGIONS = 100_000  # a pass stops looking at this many: such an edit is refused in any case


@dataclass(frozen=True, slots=True)
class Wanted:
    """An edit as a pass understands it: what to find, what to put there."""

    old: str
    new: str

    @property
    def terminated(self) -> bool:
        """Whether ``old`` ends with a line end, so that it means whole lines."""
        return self.old.endswith("\n")

    @property
    def lines(self) -> list[str]:
        """The lines of ``old``, without the empty rest after its final line end."""
        return (self.old[:-1] if self.terminated else self.old).split("\n")


@dataclass(frozen=True, slots=True)
class Region:
    """A place: ``start`` to ``end`` (exclusive) in the document's view.

    ``chunks`` is set when whole lines matched: for each line of ``old`` the file's lines that stand for it.
    """

    start: int
    end: int
    chunks: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """All regions of one pass, with the edit as that pass read it."""

    regions: tuple[Region, ...]
    wanted: Wanted


class UnclearEdit(ValueError):
    """A pass found the place but cannot tell what to write there; the message says why."""


class Replacer(Protocol):
    """One link of the chain of responsibility (FIL-06)."""

    @property
    def name(self) -> str:
        """As reported to the model and the log (FIL-07)."""
        ...

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Every candidate; None when this pass has none."""
        ...


def _found(regions: Iterable[Region], wanted: Wanted) -> Found | None:
    kept = tuple(islice(regions, MAX_REGIONS))
    return Found(kept, wanted) if kept else None


def _spans(text: str, needle: str) -> Iterator[int]:
    """Every start of ``needle``, overlapping ones too: two overlapping places are two places."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _whole_lines(document: Document, wanted: Wanted, chunks: Sequence[tuple[int, ...]]) -> Region | None:
    """The region from the first to the last line in ``chunks``; None when it has no line end that ``old`` names."""
    indexes = [line for chunk in chunks for line in chunk]
    first, last = indexes[0], indexes[-1]
    if wanted.terminated and not document.ends[last]:
        return None
    end = document.starts[last] + len(document.lines[last]) + wanted.terminated
    return Region(document.starts[first], end, tuple(chunks))


def _line_windows(document: Document, wanted: Wanted, key: Callable[[str], str]) -> list[Region]:
    """Runs of lines equal to the lines of ``old`` under ``key``."""
    needle = [key(line) for line in wanted.lines]
    if not any(needle):
        return []
    lines = [key(line) for line in document.lines[: document.count]]
    size = len(needle)
    regions: list[Region] = []
    for at in range(len(lines) - size + 1):
        if lines[at] == needle[0] and lines[at : at + size] == needle:
            region = _whole_lines(document, wanted, [(at + k,) for k in range(size)])
            if region:
                regions.append(region)
    return regions


def _dense_windows(document: Document, wanted: Wanted, key: Callable[[str], str]) -> list[Region]:
    """Like ``_line_windows``, blank lines on either side not counted; they belong to the line above them."""
    needle = [(k, key(line)) for k, line in enumerate(wanted.lines)]
    needle = [(k, line) for k, line in needle if line]
    lines = [(k, key(line)) for k, line in enumerate(document.lines[: document.count])]
    lines = [(k, line) for k, line in lines if line]
    size = len(needle)
    regions: list[Region] = []
    for at in range(len(lines) - size + 1 if size else 0):
        if lines[at][1] != needle[0][1]:
            continue
        window = lines[at : at + size]
        if [line for _, line in window] == [line for _, line in needle]:
            chunks: list[tuple[int, ...]] = [()] * len(wanted.lines)
            for position, (old_line, _) in enumerate(needle):
                stop = window[position + 1][0] if position + 1 < size else window[position][0] + 1
                chunks[old_line] = tuple(range(window[position][0], stop))
            region = _whole_lines(document, wanted, chunks)
            if region:
                regions.append(region)
    return regions


class SimpleReplacer:
    """E1: the exact text."""

    name = "exact"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Every occurrence of the very characters."""
        size = len(wanted.old)
        return _found((Region(at, at + size) for at in _spans(document.view, wanted.old)), wanted)


class LineTrimmedReplacer:
    """E2: trailing white space of each line does not count."""

    name = "line-trimmed"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Runs of whole lines."""
        return _found(_line_windows(document, wanted, str.rstrip), wanted)


@dataclass(frozen=True)
class AnchorReplacer:
    """E3 and E8: first and last non-blank line are anchors, the lines between are scored (0 to 1).

    Such a region is a candidate only when its content equals ``old`` apart from white space (C-46: anchors locate)
    and, when ``forgiving``, typographic signs and copied line numbers; ``alike`` gives the others, to show them. With
    ``apply`` the best region that reaches ``threshold`` is a candidate: the paper to the letter.
    """

    name: str
    threshold: float
    forgiving: bool
    apply: bool = False

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Regions of equal content (or, with ``apply``, the region of the best score)."""
        wanted = self._plain(wanted)
        if len([line for line in wanted.lines if line.strip()]) < 3:
            return None
        equal = _dense_windows(document, wanted, folded_line if self.forgiving else collapse)
        if equal or not self.apply:
            return _found(equal, wanted)
        scored = self.alike(document, wanted)
        best = [span for score, span in scored if score == scored[0][0]]
        regions = [self._as_region(document, wanted, first, last) for first, last in best]
        return _found([region for region in regions if region], wanted)

    def alike(self, document: Document, wanted: Wanted) -> list[tuple[float, tuple[int, int]]]:
        """``(score, (first line, last line))`` of regions between the anchors, best first, at least ``threshold``."""
        needle = [line for line in map(folded_line, self._plain(wanted).lines) if line]
        if len(needle) < 3:
            return []
        lines = [folded_line(line) for line in document.lines[: document.count]]
        firsts = [k for k, line in enumerate(lines) if line == needle[0]][:50]
        lasts = [k for k, line in enumerate(lines) if line == needle[-1]]
        scored: list[tuple[float, tuple[int, int]]] = []
        for first in firsts:
            reach = first + 3 * len(needle) + 5
            for last in [k for k in lasts if first + 1 < k <= reach][:20]:
                between = [line for line in lines[first + 1 : last] if line]
                score = SequenceMatcher(None, "\n".join(needle[1:-1]), "\n".join(between)).ratio()
                if score >= self.threshold:
                    scored.append((score, (first, last)))
        return sorted(scored, key=lambda item: (-item[0], item[1]))

    def _plain(self, wanted: Wanted) -> Wanted:
        return _unnumbered(wanted) or wanted if self.forgiving else wanted

    def _as_region(self, document: Document, wanted: Wanted, first: int, last: int) -> Region | None:
        """All lines of the region stand for the whole of ``old``: first, the lines between, last."""
        between: list[tuple[int, ...]] = [()] * (len(wanted.lines) - 2)
        between[0] = tuple(range(first + 1, last))
        return _whole_lines(document, wanted, [(first,), *between, (last,)])


class WhitespaceNormalizedReplacer:
    """E4: runs of white space count as one space; also inside of a line."""

    name = "whitespace-normalized"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Whole lines first, else a stretch within lines."""
        regions = _line_windows(document, wanted, collapse)
        if regions or "\n" in wanted.old.strip():
            return _found(regions, wanted)
        words = wanted.old.split()
        if len(words) < 2:
            return None
        view = document.view
        spans = ((at, _end_of_words(view, at, words)) for at in _spans(view, words[0]))
        return _found(
            (Region(at, end) for at, end in spans if end and _apart(view, at, end)), _trimmed(wanted)
        )


class IndentationFlexibleReplacer:
    """E5: leading white space and blank lines do not count."""

    name = "indentation-flexible"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Runs of whole lines."""
        return _found(_dense_windows(document, wanted, str.strip), wanted)


class EscapeNormalizedReplacer:
    """E6: ``old`` was escaped once too often; the same escapes are undone in ``new``."""

    name = "escape-normalized"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """The un-escaped text, exactly or apart from indentation.

        Raises ``UnclearEdit`` when it cannot be told whether an escape of ``new`` is meant literally.
        """
        kinds = escapes_in(wanted.old)
        if not kinds:
            return None
        plain = replace(wanted, old=unescape(wanted.old))
        found = SimpleReplacer().find(document, plain) or IndentationFlexibleReplacer().find(document, plain)
        if found is None or not escapes_in(wanted.new):
            return found
        if escapes_in(wanted.new) - kinds or breaks_literal(wanted.new):
            raise UnclearEdit(
                "old_content matches only after its backslash escapes are undone, and it is not clear whether the"
                " escapes of new_content are meant literally."
            )
        return replace(found, wanted=replace(plain, new=unescape(wanted.new)))


class TrimmedBoundaryReplacer:
    """E7: white space at the edges of ``old`` does not count, as long as the hit does not cut into a neighbour."""

    name = "trimmed-boundary"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Occurrences of the trimmed text that stand apart from their neighbours where ``old`` said so."""
        trimmed = _trimmed(wanted)
        if trimmed.old == wanted.old or not trimmed.old:
            return None
        view = document.view
        spans = ((at, at + len(trimmed.old)) for at in _spans(view, trimmed.old))
        regions = (Region(at, end) for at, end in spans if _stands_apart(view, at, end, wanted.old))
        return _found(regions, trimmed)


class MultiOccurrenceReplacer:
    """E9: the last resort, every occurrence of the text apart from white space, typographic signs and line numbers."""

    name = "multi-occurrence"

    def find(self, document: Document, wanted: Wanted) -> Found | None:
        """Whole lines first, else a stretch that differs in typographic signs only."""
        for form in (wanted, _unnumbered(wanted)):
            if form is None:
                continue
            found = _found(_line_windows(document, form, folded_line), form)
            if found is None:
                needle = fold(form.old)
                spans = ((at, at + len(needle)) for at in _spans(fold(document.view), needle))
                regions = (Region(at, end) for at, end in spans if _apart(document.view, at, end))
                found = _found(regions, form)
            if found:
                return found
        return None


def _end_of_words(view: str, at: int, words: Sequence[str]) -> int | None:
    """Where ``words``, parted by any white space, end when they start at ``at``; None when they do not."""
    for number, word in enumerate(words):
        gap = at
        while number and at < len(view) and view[at].isspace():
            at += 1
        if (number and at == gap) or not view.startswith(word, at):
            return None
        at += len(word)
    return at


def _apart(view: str, start: int, end: int) -> bool:
    """Whether the stretch neither starts nor ends inside a word."""
    before = start > 0 and _is_word(view[start - 1]) and _is_word(view[start])
    after = end < len(view) and _is_word(view[end]) and _is_word(view[end - 1])
    return not before and not after


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _stands_apart(view: str, start: int, end: int, old: str) -> bool:
    """Whether white space stands in the file wherever ``old`` had some at its edges."""
    if not _apart(view, start, end):
        return False
    if old[0].isspace() and start > 0 and not view[start - 1].isspace():
        return False
    return not (old[-1].isspace() and end < len(view) and not view[end].isspace())


def _trimmed(wanted: Wanted) -> Wanted:
    """``old`` without the white space at its edges; ``new`` loses as many line ends, and then the same blanks."""
    old = wanted.old.strip()
    head = wanted.old[: len(wanted.old) - len(wanted.old.lstrip())]
    tail = wanted.old[len(wanted.old.rstrip()) :]
    new = wanted.new
    for _ in range(head.count("\n")):
        new = re.sub(r"\A[^\S\n]*\n", "", new)
    new = new.removeprefix(head.rpartition("\n")[2])
    for _ in range(tail.count("\n")):
        new = re.sub(r"\n[^\S\n]*\Z", "", new)
    return Wanted(old, new.removesuffix(tail.partition("\n")[0]))


def _unnumbered(wanted: Wanted) -> Wanted | None:
    """The edit without copied line numbers; None when ``old`` has none."""
    old = without_numbers(wanted.old, consecutive=True)
    if old is None:
        return None
    new = without_numbers(wanted.new, consecutive=False)
    if new is None and wanted.new.strip() and has_numbers(wanted.new):
        raise UnclearEdit("old_content has line numbers in front; new_content has them on some lines only.")
    return Wanted(old, wanted.new if new is None else new)


BLOCK_ANCHOR = AnchorReplacer("block-anchor", 0.3, forgiving=False)
CONTEXT_AWARE = AnchorReplacer("context-aware", 0.5, forgiving=True)
