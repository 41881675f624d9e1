"""What an approximate pass may forgive: white space, typographic signs, escapes and copied line numbers."""

import re

_SIGNS = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201a": "'",
        "\u201b": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u201f": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
        "\u00a0": " ",
        "\u202f": " ",
    }
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "`": "`", "\\": "\\"}
_ESCAPE = re.compile(r"\\([ntr\"'`\\])")
_BREAKS = frozenset({"\\n", "\\r", "\\t"})
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(?:\t|\u2192|: |\| ?)")


def fold(text: str) -> str:
    """Typographic quotes, dashes and spaces as their ASCII twins; the length stays."""
    return text.translate(_SIGNS)


def collapse(line: str) -> str:
    """Runs of white space as one space, none at the edges."""
    return " ".join(line.split())


def folded_line(line: str) -> str:
    """``collapse`` and ``fold`` together: two lines with equal results have equal content."""
    return collapse(fold(line))


def unescape(text: str) -> str:
    """Common escapes undone, once."""
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text)


def escapes_in(text: str) -> frozenset[str]:
    """The kinds of escape that ``unescape`` would undo."""
    return frozenset(match[1] for match in _ESCAPE.finditer(text))


def breaks_literal(text: str) -> bool:
    """Whether undoing the escapes of ``text`` would put a line break or tab inside what looks like a string literal."""
    quote = ""
    for sign in re.findall(r"\\[ntr\"'`\\]|[\"'`\n]", text):
        if sign in _BREAKS and quote:
            return True
        if sign == "\n" or sign in _BREAKS:
            quote = ""
        elif sign != "\\\\":
            quote = "" if quote == sign[-1] else quote or sign[-1]
    return False


def without_numbers(text: str, *, consecutive: bool) -> str | None:
    """``text`` without the line numbers of a file listing; None when not every non-blank line has one.

    With ``consecutive`` the numbers must count up by one, line for line: real data rarely does.
    """
    lines = text.split("\n")
    kept: list[str] = []
    expected: int | None = None
    for line in lines:
        match = _NUMBERED.match(line)
        if match is None:
            if line.strip():
                return None
            kept.append(line)
            expected = None if expected is None else expected + 1
            continue
        number = int(match[1])
        if consecutive and expected is not None and number != expected:
            return None
        expected = number + 1
        kept.append(line[match.end() :])
    return "\n".join(kept) if expected is not None else None


def has_numbers(text: str) -> bool:
    """Whether any line starts like a line of a file listing."""
    return any(_NUMBERED.match(line) for line in text.split("\n"))


def printable(text: str) -> str:
    """``text`` with bytes of an unknown encoding (lone surrogates) as U+FFFD, so that it can be shown and stored."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
