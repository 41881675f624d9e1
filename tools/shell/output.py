"""Command output as bounded, clean text: bytes in, first and last part out, whatever the volume (SHL-06, K21)."""

import codecs
import re

HELD = (
    65_536  # characters of one unfinished line that are held back; bounds memory when no newline ever comes
)
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
_NON_TEXT = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd"
# Non-text characters at most four apart, eight or more of them: data, not text with a stray byte in it.
_BINARY = re.compile(rf"[{_NON_TEXT}](?:[^{_NON_TEXT}\n]{{0,4}}[{_NON_TEXT}]){{7,}}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ERASE_LINE = re.compile(r"\x1b\[[12]K|\x1b\[1?G")
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]{0,4096}(?:\x07|\x1b\\)|[PX^_][^\x1b\r\n]{0,4096}\x1b\\|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)


class OutputBuffer:
    """Keeps at most ``whole`` characters; beyond that the first ``head`` and the last ``tail`` with a count between.

    Bytes are decoded as UTF-8 across chunk borders, undecodable ones replaced. Colours are removed and the frames of
    a progress line (carriage return, erase line, backspace) collapse to the last one *before* the limit counts.
    """

    def __init__(self, *, head: int = 10_000, tail: int = 10_000, whole: int = 30_000) -> None:
        self._head_cap, self._tail_cap, self._whole = head, tail, max(whole, head + tail)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""  # the unfinished line, raw
        self._head = ""
        self._rest = ""  # what follows the head, at most (whole - head) characters plus one piece
        self._chars = 0  # cleaned characters so far
        self._bytes = 0  # the same in UTF-8
        self.received = 0  # raw bytes

    def feed(self, data: bytes) -> str:
        """Take raw bytes; returns the cleaned lines they completed, for live display."""
        self.received += len(data)
        return self._take(self._decoder.decode(data))

    def finish(self) -> str:
        """No more bytes will come: the unfinished line counts as it stands."""
        piece = self._take(self._decoder.decode(b"", final=True))
        rest, self._line = self._line, ""
        return piece + self._keep(clean(rest))

    def _take(self, text: str) -> str:
        end = text.rfind("\n") + 1
        if not end:
            self._line = _last_frame(self._line + text)
            return self._shed()
        done, self._line = self._line + text[:end], _last_frame(text[end:])
        return self._keep(clean(done)) + self._shed()

    def _shed(self) -> str:
        """A line too long to hold is given up piece by piece, never in the middle of an escape sequence."""
        if len(self._line) <= HELD:
            return ""
        cut = self._line.rfind("\x1b", len(self._line) - 256)
        cut = len(self._line) if cut < 0 else cut
        piece, self._line = self._line[:cut], self._line[cut:]
        return self._keep(clean(piece))

    def _keep(self, text: str) -> str:
        self._chars += len(text)
        self._bytes += _size(text)
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += text[:room]
        later = text[max(room, 0) :]
        if later:
            self._rest = (self._rest + later)[-(self._whole - self._head_cap) :]
        return text

    @property
    def omitted_bytes(self) -> int:
        """Bytes of cleaned text that ``text()`` leaves out."""
        if self._chars <= self._whole:
            return 0
        return self._bytes - _size(self._head) - _size(self._last())

    def text(self) -> str:
        """What is kept, with the note ``[N bytes omitted]`` where something is missing."""
        if self._chars <= self._whole:
            return self._head + self._rest
        return f"{self._head}\n[... {self.omitted_bytes} bytes omitted ...]\n{self._last()}"

    def _last(self) -> str:
        return self._rest[-self._tail_cap :] if self._tail_cap else ""


def clean(text: str) -> str:
    """Text as a person would see it at the end: no colours, last frame of each line, binary data counted."""
    if not _SPECIAL.search(text):
        return text
    text = _ANSI.sub("", _ERASE_LINE.sub("\r", text))
    if "\r" in text or "\b" in text:
        text = "\n".join(_settle(line) for line in text.split("\n"))
    text = _BINARY.sub(lambda found: f"[binary data, about {len(found[0])} bytes]", text)
    return _CONTROL.sub("\ufffd", text)


def _settle(line: str) -> str:
    """One line after its carriage returns and backspaces: the last frame that shows anything."""
    frames = [frame for frame in line.split("\r") if frame]
    last = frames[-1] if frames else ""
    if "\b" not in last:
        return last
    shown: list[str] = []
    for char in last:
        if char != "\b":
            shown.append(char)
        elif shown:
            shown.pop()
    return "".join(shown)


def _last_frame(line: str) -> str:
    """The part of an unfinished line that can still show: from its last frame that certainly shows something.

    A ``\\r`` at the very end may belong to ``\\r\\n``, and an escape sequence may be cut by the chunk's border.
    """
    if "\x1b" in line:
        line = _ERASE_LINE.sub("\r", line)
    if "\r" not in line:
        return line
    frames = line.split("\r")
    if _ANSI.sub("", frames[-1]).partition("\x1b")[0]:
        return frames[-1]
    for number in range(len(frames) - 2, 0, -1):
        if _ANSI.sub("", frames[number]):
            return "\r".join(frames[number:])
    return line


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
