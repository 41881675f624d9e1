"""What a task may write: allowed and forbidden globs, relative to the root, in git's wildmatch spelling."""

from functools import cached_property

from pathspec import GitIgnoreSpec

from .model import Frozen


class Scope(Frozen):
    """``may`` empty = everything; ``avoid`` always wins. Patterns are anchored at the root (SWM-05, SWM-08)."""

    may: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()

    @cached_property
    def _may(self) -> GitIgnoreSpec:
        return _spec(self.may)

    @cached_property
    def _avoid(self) -> GitIgnoreSpec:
        return _spec(self.avoid)

    def allows(self, path: str) -> bool:
        """Whether ``path`` (relative, ``/`` separated) may be written."""
        if self._avoid.match_file(path):
            return False
        return not self.may or self._may.match_file(path)

    def outside(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """The paths that may not be written, in order."""
        return tuple(path for path in paths if not self.allows(path))


def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    anchored = [p if p.startswith("/") else f"/{p}" for p in patterns]
    return GitIgnoreSpec.from_lines(anchored)
