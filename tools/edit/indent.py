"""Indentation of inserted lines: the model's widths translated to what the file uses."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd


def leading(line: str) -> str:
    """The white space a line starts with."""
    return line[: len(line) - len(line.lstrip())]


class Indentation:
    """Learned from pairs of matching lines (the model's, the file's); translates any other line of the model.

    A width that occurs in a pair takes the file's spelling; others are derived from the nearest known width.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], lines: Sequence[str]) -> None:
        self._known: dict[str, str] = {}
        for ours, theirs in pairs:
            if ours.strip() and theirs.strip():
                self._known.setdefault(leading(ours), leading(theirs))
        self._sign = "\t" if any(leading(line).startswith("\t") for line in lines) else " "
        self._ratio = self._learn(lines)

    def apply(self, line: str) -> str:
        """``line`` with the indentation the file would give it; a blank line stays as it is."""
        if not line.strip() or not self._known:
            return line
        indent = leading(line)
        return self._translate(indent) + line[len(indent) :]

    def _translate(self, indent: str) -> str:
        if indent in self._known:
            return self._known[indent]
        below = [base for base in self._known if indent.startswith(base)]
        if below:
            base = max(below, key=len)
            return self._known[base] + self._spelled(indent[len(base) :])
        above = [base for base in self._known if base.startswith(indent)]
        if above:
            base = min(above, key=len)
            dropped = self._spelled(base[len(indent) :])
            return self._known[base].removesuffix(dropped)
        return indent

    def _spelled(self, extra: str) -> str:
        """White space beyond a known width, spelled as the file does."""
        ours, theirs, sign = self._ratio
        if set(extra) != {self._sign} or len(extra) * theirs % ours:
            return extra
        return sign * (len(extra) * theirs // ours)

    def _learn(self, lines: Sequence[str]) -> tuple[int, int, str]:
        """``(a, b, sign)``: ``a`` characters of the model's indentation are ``b`` times ``sign`` in the file."""
        levels = sorted(self._known.items(), key=lambda pair: len(pair[0]))
        for (a, x), (b, y) in pairwise(levels):
            step = y[len(x) :]
            if y.startswith(x) and len(set(step)) == 1:
                shared = gcd(len(b) - len(a), len(step))
                return (len(b) - len(a)) // shared, len(step) // shared, step[0]
        signs = set("".join(self._known.values()))
        if signs == {"\t"} and self._sign == " ":
            return _smallest_step(lines), 1, "\t"
        if signs == {" "} and self._sign == "\t":
            (ours, theirs), *_ = [pair for pair in levels if pair[1]]
            return (len(ours), len(theirs), " ") if ours else (1, 4, " ")
        return 1, 1, self._sign


def _smallest_step(lines: Sequence[str]) -> int:
    """The smallest difference between two indentations in use; 4 when there is only one."""
    widths = sorted({len(leading(line)) for line in lines if line.strip()})
    return min((b - a for a, b in pairwise(widths)), default=4)
