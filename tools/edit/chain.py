"""The chain of the nine passes: the first that finds a candidate decides; exactly one place, or a refusal that helps."""

from dataclasses import dataclass, replace
from typing import Literal

from ...core.errors import ErrorKind, OpenDevError
from .canonical import folded_line, printable
from .document import Document
from .nearest import nearest, show
from .passes import (
    BLOCK_ANCHOR,
    CONTEXT_AWARE,
    MAX_REGIONS,
    EscapeNormalizedReplacer,
    Found,
    IndentationFlexibleReplacer,
    LineTrimmedReplacer,
    MultiOccurrenceReplacer,
    Region,
    Replacer,
    SimpleReplacer,
    TrimmedBoundaryReplacer,
    UnclearEdit,
    Wanted,
    WhitespaceNormalizedReplacer,
)
from .splice import apply_splices, splices

_LISTED_LINES = 20
Similarity = Literal["locate", "apply"]


@dataclass(frozen=True, slots=True)
class Edited:
    """``text`` is the whole new text; ``matched`` the substrings really found (FIL-07).

    ``lines`` (from 1) and ``offsets`` (characters of the old text) say where each starts.
    """

    text: str
    by: str
    lines: tuple[int, ...]
    offsets: tuple[int, ...]
    matched: tuple[str, ...]


def chain(similarity: Similarity = "locate") -> tuple[Replacer, ...]:
    """The passes in the order of Catalogue E; ``similarity`` as in reading C-46."""
    apply = similarity == "apply"
    return (
        SimpleReplacer(),
        LineTrimmedReplacer(),
        replace(BLOCK_ANCHOR, apply=apply),
        WhitespaceNormalizedReplacer(),
        IndentationFlexibleReplacer(),
        EscapeNormalizedReplacer(),
        TrimmedBoundaryReplacer(),
        replace(CONTEXT_AWARE, apply=apply),
        MultiOccurrenceReplacer(),
    )


STRICT = chain()


def edit(
    raw: str,
    old: str,
    new: str,
    *,
    path: str,
    replace_all: bool = False,
    passes: tuple[Replacer, ...] = STRICT,
) -> Edited:
    """``raw`` with ``old`` replaced by ``new`` at the one place (or all places) it means.

    Raises:
        OpenDevError: ``TOOL``; nothing matches, several places match (FIL-08), or nothing would change.
    """
    if not old:
        raise _refusal(f"old_content is empty: it names no place in {path}.", "Give the text to replace.")
    if old == new:
        raise _refusal(f"old_content and new_content are the same: nothing to change in {path}.")
    document = Document(raw, "\r\n" if "\r\n" in new else "\n")
    wanted = Wanted(old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
    by, found = _locate(document, wanted, path, passes)
    regions = _separate(found.regions) if replace_all else found.regions
    if (len(regions) > 1 and not replace_all) or len(found.regions) >= MAX_REGIONS:
        raise _ambiguous(document, found, path)
    text = apply_splices(raw, splices(document, replace(found, regions=regions)))
    if text == raw:
        raise _refusal(
            f"The edit changes nothing in {path}: it differs from the file in white space or line ends only.",
            "The file keeps its own; nothing to do.",
        )
    return Edited(
        text=text,
        by=by,
        lines=tuple(document.line_at(region.start) + 1 for region in regions),
        offsets=tuple(document.to_raw(region.start) for region in regions),
        matched=tuple(raw[document.to_raw(region.start) : document.to_raw(region.end)] for region in regions),
    )


def _locate(document: Document, wanted: Wanted, path: str, passes: tuple[Replacer, ...]) -> tuple[str, Found]:
    blank = not wanted.old.strip()
    for replacer in passes[:1] if blank else passes:
        try:
            found = replacer.find(document, wanted)
        except UnclearEdit as error:
            raise _refusal(
                f"{error} {path} is unchanged.", "Send both exactly as the file shall have them."
            ) from error
        if found:
            return replacer.name, found
    raise _no_match(document, wanted, path)


def _separate(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """The regions from the top, without those that overlap an earlier one."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: region.start):
        if not kept or region.start >= kept[-1].end:
            kept.append(region)
    return tuple(kept)


def _ambiguous(document: Document, found: Found, path: str) -> OpenDevError:
    lines = [str(document.line_at(region.start) + 1) for region in found.regions]
    more = f" and {len(lines) - _LISTED_LINES} more" if len(lines) > _LISTED_LINES else ""
    at_least = "at least " if len(lines) >= MAX_REGIONS else ""
    return _refusal(
        f"old_content matched {at_least}{len(lines)} times in {path} (lines {', '.join(lines[:_LISTED_LINES])}{more});"
        " it must match exactly once. Nothing was written.",
        "Add surrounding lines to old_content, or pass replace_all=true to change all of them.",
    )


def _no_match(document: Document, wanted: Wanted, path: str) -> OpenDevError:
    region = nearest(document, wanted) if wanted.old.strip() and document.count else None
    if region is None:
        return _refusal(
            f"old_content was not found in {path} (0 matches); no line resembles it. Nothing was written.",
            "Read the file again and copy the text to replace.",
        )
    first, last = region
    return _refusal(
        f"old_content was not found in {path} (0 matches); nothing was written. The most similar region is lines"
        f" {first + 1}-{last + 1}, whose exact text is:\n{show(document, first, last)}\n{_difference(document, wanted, region)}",
        "Retry with old_content copied from there if this is the place.",
    )


def _difference(document: Document, wanted: Wanted, region: tuple[int, int]) -> str:
    """The first line where old_content and the region part, in words."""
    theirs = [line for line in document.lines[region[0] : region[1] + 1] if line.strip()]
    ours = [line for line in wanted.lines if line.strip()]
    for mine, real in zip(ours, theirs, strict=False):
        if folded_line(mine) != folded_line(real):
            shown = printable(real.strip()[:200])
            return f"First difference: old_content has `{mine.strip()[:200]}`, the file has `{shown}`."
    return f"old_content has {len(ours)} lines with text, the region has {len(theirs)}."


def _refusal(message: str, hint: str = "") -> OpenDevError:
    return OpenDevError(ErrorKind.TOOL, message, hint)
