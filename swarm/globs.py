"""Whether two scopes can touch the same file: by the files of the base commit, and by the patterns for files yet to come."""

from collections.abc import Sequence
from functools import lru_cache

from ..core.scope import Scope

Pattern = tuple[str, ...]


def shared_files(one: Scope, other: Scope, files: Sequence[str]) -> tuple[str, ...]:
    """The existing files that both scopes allow."""
    return tuple(path for path in files if one.allows(path) and other.allows(path))


def may_meet(one: Scope, other: Scope) -> bool:
    """Whether some path, existing or not, could be allowed by both. Errs on the side of True."""
    mine = _open_patterns(one, other)
    theirs = _open_patterns(other, one)
    return any(_meet(_segments(a), _segments(b)) for a in mine for b in theirs)


def _open_patterns(scope: Scope, other: Scope) -> tuple[str, ...]:
    """The patterns of ``scope`` without those that either side's ``avoid`` swallows whole."""
    closed = Scope(avoid=scope.avoid + other.avoid)
    return tuple(pattern for pattern in scope.may or ("**",) if closed.allows(pattern))


def _segments(pattern: str) -> Pattern:
    # In git's spelling a pattern that names a folder covers all below it.
    parts = tuple(part for part in pattern.strip("/").split("/") if part)
    return parts if parts[-1:] == ("**",) else (*parts, "**")


@lru_cache(maxsize=4096)
def _meet(one: Pattern, other: Pattern) -> bool:
    """Whether the languages of two segment patterns share a path; ``**`` stands for any number of segments."""
    if not one or not other:
        return all(part == "**" for part in one or other)
    if one[0] == "**":
        return _meet(one[1:], other) or _meet(one, other[1:])
    if other[0] == "**":
        return _meet(one, other[1:]) or _meet(one[1:], other)
    return _segment_meet(one[0], other[0]) and _meet(one[1:], other[1:])


@lru_cache(maxsize=4096)
def _segment_meet(one: str, other: str) -> bool:
    if "[" in one + other or "\\" in one + other:
        return True
    if not one or not other:
        return not (one or other).strip("*")
    if one[0] == "*":
        return _segment_meet(one[1:], other) or _segment_meet(one, other[1:])
    if other[0] == "*":
        return _segment_meet(one, other[1:]) or _segment_meet(one[1:], other)
    return ("?" in (one[0], other[0]) or one[0] == other[0]) and _segment_meet(one[1:], other[1:])
