"""What is wrong with the configuration, as data: the place, the line, the fault and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import ErrorKind, OpenDevError


@dataclass(frozen=True)
class Problem:
    """One fault. ``place`` is a file or a variable; ``line`` 0 = none."""

    place: str
    line: int
    what: str
    hint: str = ""

    def sentence(self) -> str:
        """Place, line, fault."""
        line = f", line {self.line}" if self.line else ""
        return f"{self.place}{line}: {self.what}."


def refusal(problems: Sequence[Problem]) -> OpenDevError:
    """The error (config) that tells the first and counts the others."""
    first, more = problems[0], len(problems) - 1
    others = f" There {'is one other fault' if more == 1 else f'are {more} other faults'}: `opendev config check` lists all."
    return OpenDevError(ErrorKind.CONFIG, first.sentence(), first.hint + (others if more else ""))
