"""A text file as lines with their own line ends, seen with plain ``\\n`` ends and mapped back to the real characters."""

import re
from bisect import bisect_right
from collections import Counter
from functools import cached_property


class Document:
    """``raw`` is the file's text; ``view`` the same with every line end shown as ``\\n``. Offsets count characters.

    A lone carriage return is a line end only in a file without any ``\\n`` (classic Mac text).
    """

    def __init__(self, raw: str, fallback_end: str = "\n") -> None:
        self.raw = raw
        self._fallback_end = fallback_end
        if "\r" not in raw:
            self.lines = raw.split("\n")
            self.ends = ["\n"] * (len(self.lines) - 1) + [""]
        else:
            parts = re.split(r"(\r?\n)" if "\n" in raw else r"(\r)", raw)
            self.lines = parts[::2]
            self.ends = [*parts[1::2], ""]
        self.view = raw if "\r" not in raw else "\n".join(self.lines)

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts in ``view``."""
        starts = [0]
        for line in self.lines[:-1]:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    @cached_property
    def raw_starts(self) -> list[int]:
        """Where each line starts in ``raw``."""
        starts = [0]
        for line, end in zip(self.lines[:-1], self.ends[:-1], strict=True):
            starts.append(starts[-1] + len(line) + len(end))
        return starts

    @property
    def count(self) -> int:
        """Number of lines; the empty rest after a final line end is none."""
        return len(self.lines) - (self.lines[-1] == "")

    def line_at(self, offset: int) -> int:
        """Index of the line that holds the offset of ``view``."""
        return bisect_right(self.starts, offset) - 1

    def to_raw(self, offset: int) -> int:
        """The offset of ``raw`` that an offset of ``view`` stands for."""
        line = self.line_at(offset)
        return self.raw_starts[line] + offset - self.starts[line]

    def to_view(self, offset: int) -> int:
        """The offset of ``view`` for an offset of ``raw``; inside a line end it is that line's end."""
        line = bisect_right(self.raw_starts, offset) - 1
        return self.starts[line] + min(offset - self.raw_starts[line], len(self.lines[line]))

    @cached_property
    def common_end(self) -> str:
        """The most frequent line end; ``fallback_end`` when the file has none."""
        counted = Counter(end for end in self.ends if end)
        return counted.most_common(1)[0][0] if counted else self._fallback_end

    @cached_property
    def mixed(self) -> bool:
        """Whether the file uses more than one kind of line end."""
        return len({end for end in self.ends if end}) > 1

    def end_near(self, line: int) -> str:
        """The line end that a line inserted at ``line`` should have."""
        if self.ends[line]:
            return self.ends[line]
        return self.ends[line - 1] if line else self.common_end
