"""A streamed answer cut into finished blocks of markdown: each is printed once, only the unfinished end is redrawn (U01)."""

import re

MAX_OPEN = 20_000  # characters of a block; a longer one is printed in pieces
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)
_BREAK = re.compile(r"\n[ \t]*\n(?=\S)")  # what is indented belongs to the block before it


class Stream:
    """Feed it the pieces; it gives back the blocks that nothing can change any more."""

    def __init__(self) -> None:
        self.open = ""  # not finished yet
        self._printed = ""  # of this answer, at most MAX_OPEN characters of its beginning are compared
        self._length = 0

    def feed(self, piece: str) -> list[str]:
        """The blocks that ``piece`` finishes."""
        self.open += piece
        found: list[str] = []
        while (at := _end_of_block(self.open)) or (at := len(self.open) // MAX_OPEN * MAX_OPEN):
            found.append(self._cut(at))
        return found

    def end(self, whole: str) -> list[str]:
        """The answer is complete: what was not printed yet; all of it where the stream was another text (a second try)."""
        begun = self._length > 0
        same = whole.startswith(self._printed) if begun else True
        rest = whole[self._length :] if same else whole
        self._reset()
        return [rest] if rest.strip() else []

    def flush(self) -> list[str]:
        """The answer ended without its end (an interrupt); what is open is printed as it stands."""
        rest = self.open
        self._reset()
        return [rest] if rest.strip() else []

    def _cut(self, at: int) -> str:
        block, self.open = self.open[:at], self.open[at:]
        self._printed = (self._printed + block)[:MAX_OPEN]
        self._length += at
        return block

    def _reset(self) -> None:
        self.open, self._printed, self._length = "", "", 0


def _end_of_block(text: str) -> int:
    """Where the last finished block ends: at an empty line outside of fenced code; 0 when none does."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    for at in reversed(ends):
        if len(_FENCE.findall(text, 0, at)) % 2 == 0:
            return at
    return 0
