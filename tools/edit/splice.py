"""Writing an edit into a document: lines that stay keep every character, new ones take the file's indentation and ends."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from .document import Document
from .indent import Indentation
from .passes import Found, Region, Wanted


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace ``raw[start:end]`` by ``text``."""

    start: int
    end: int
    text: str


def splices(document: Document, found: Found) -> list[Splice]:
    """The splices of all regions; the regions must not overlap."""
    return [
        _merge_lines(document, region, found.wanted)
        if region.chunks
        else literal_splice(document, region.start, region.end, found.wanted.new)
        for region in found.regions
    ]


def apply_splices(raw: str, changes: Iterable[Splice]) -> str:
    """``raw`` with non-overlapping changes made."""
    parts: list[str] = []
    at = 0
    for change in sorted(changes, key=lambda change: change.start):
        parts += [raw[at : change.start], change.text]
        at = change.end
    return "".join([*parts, raw[at:]])


def literal_splice(document: Document, start: int, end: int, new: str) -> Splice:
    """Put ``new`` literally in place of ``view[start:end]``; only its line ends become the file's."""
    return Splice(document.to_raw(start), document.to_raw(end), _with_ends(document, start, end, new))


def _with_ends(document: Document, start: int, end: int, new: str) -> str:
    lines = new.replace("\r\n", "\n").split("\n")
    if len(lines) == 1:
        return new
    if not document.mixed:
        return document.common_end.join(lines)
    first = document.line_at(start)
    old = document.view[start:end].split("\n")
    origin = _origins(old, lines)
    parts: list[str] = []
    ending = document.end_near(first)
    for number, line in enumerate(lines[:-1]):
        source = origin[number]
        if source is not None and source < len(old) - 1:
            ending = document.ends[first + source]
        parts += [line, ending]
    return "".join([*parts, lines[-1]])


def _aligned(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Opcodes as of ``SequenceMatcher``; what both share at the start and at the end is never moved."""
    short = min(len(old), len(new))
    head = next((k for k in range(short) if old[k] != new[k]), short)
    tail = next((k for k in range(short - head) if old[-1 - k] != new[-1 - k]), short - head)
    stop, new_stop = len(old) - tail, len(new) - tail
    middle: list[tuple[str, int, int, int, int]] = []
    if len(old) == len(new):
        pairs = enumerate(zip(old[head:stop], new[head:new_stop], strict=True))
        middle = [("equal" if a == b else "replace", k, k + 1, k, k + 1) for k, (a, b) in pairs]
    else:
        middle += SequenceMatcher(None, old[head:stop], new[head:new_stop], autojunk=False).get_opcodes()
    return [
        ("equal", 0, head, 0, head),
        *((tag, i + head, i_end + head, j + head, j_end + head) for tag, i, i_end, j, j_end in middle),
        ("equal", stop, len(old), new_stop, len(new)),
    ]


def _origins(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each new line the old line it is, or replaces; None for an inserted one."""
    origin: list[int | None] = [None] * len(new)
    for _, i, i_end, j, j_end in _aligned(old, new):
        for step in range(min(i_end - i, j_end - j)):
            origin[j + step] = i + step
    return origin


def _merge_lines(document: Document, region: Region, wanted: Wanted) -> Splice:
    """Whole lines: what ``old`` and ``new`` have in common stays as the file has it, byte for byte."""
    indexes = [line for chunk in region.chunks for line in chunk]
    first, last = indexes[0], indexes[-1]
    kept = list(_merged(document, region.chunks, wanted))
    stop = document.raw_starts[last] + len(document.lines[last]) + len(document.ends[last])
    parts: list[str] = []
    for number, (line, ending) in enumerate(kept):
        final = number == len(kept) - 1
        parts += [line, document.ends[last] if final else ending or document.end_near(last)]
    return Splice(document.raw_starts[first], stop, "".join(parts))


def _merged(
    document: Document, chunks: Sequence[tuple[int, ...]], wanted: Wanted
) -> Iterator[tuple[str, str]]:
    """The lines of the result with their ends (empty: any)."""
    old = wanted.lines
    new = (wanted.new.removesuffix("\n") if wanted.terminated else wanted.new).split("\n")
    if wanted.terminated and not wanted.new:
        new = []
    pairs = [(old[k], document.lines[chunk[0]]) for k, chunk in enumerate(chunks) if chunk]
    indentation = Indentation(pairs, [*old, *new])
    ending = document.ends[next(chunk[0] for chunk in chunks if chunk)]
    for tag, i, i_end, j, j_end in _aligned(old, new):
        if tag == "equal":
            for line in (line for chunk in chunks[i:i_end] for line in chunk):
                ending = document.ends[line]
                yield document.lines[line], ending
            continue
        for step in range(j_end - j):
            chunk = chunks[i + step] if i + step < i_end else ()
            ending = document.ends[chunk[0]] if chunk else ending
            yield indentation.apply(new[j + step]), ending
        if tag == "replace" and chunks[i_end - 1]:
            for line in chunks[i_end - 1][1:]:  # blank lines below the replaced line
                yield document.lines[line], document.ends[line]
