"""Lines that stand for code they leave out ("// ... existing code ..."): written into a file they would delete it."""

import re

from ...core.errors import ErrorKind, OpenDevError

_PROSE = (".md", ".markdown", ".rst", ".adoc", ".txt")  # may speak of such lines
_LEAD = r"\s*(?://+|\#+|/\*+|\*|<!--|\{/\*|--+|;+|%+|\(\*?)?\s*"
_DOTS = r"(?:\.{3,}|\u2026)"
_LEFT_OUT = (
    r"(?:(?:the\s+)?(?:rest|remainder)\s+of\b.*|(?:the\s+)?(?:existing|unchanged|remaining|previous|original|same|other)\b"
    r"[\w\s,'-]*\b(?:code|methods?|functions?|lines?|content|contents|implementation|logic|class|file|imports?|body|before|above)\b.*"
    r"|(?:code|methods?|functions?|lines?|content|everything(?:\s+else)?|implementation)\s+"
    r"(?:unchanged|omitted|(?:stays?|remains?)\s+(?:the\s+same|unchanged)|(?:same\s+)?as\s+before|goes\s+here)\b.*)"
)
_MARK = re.compile(
    rf"{_LEAD}(?:{_DOTS}\s*\(?\s*{_LEFT_OUT}|{_LEFT_OUT}{_DOTS}.*|\(\s*{_LEFT_OUT}\).*)", re.IGNORECASE
)
_COMMENT = re.compile(r"\s*(?://|\#|/\*|\*|<!--|\{/\*|--|;|%|\()|\s*(?:\.{3}|\u2026)")


def refuse_elided(old: str, new: str, name: str) -> None:
    """Raise ``OpenDevError`` (tool) when ``new`` has a line that only stands for others, and ``old`` has not."""
    if name.lower().endswith(_PROSE):
        return
    known = {line.strip() for line in old.split("\n")}
    for line in new.split("\n"):
        if len(line) <= 300 and line.strip() not in known and _COMMENT.match(line) and _MARK.match(line):
            raise OpenDevError(
                ErrorKind.TOOL,
                f"The new text for {name} leaves code out: the line `{line.strip()[:100]}` would be written as it is,"
                " in place of that code. Nothing was written.",
                "Write the new text in full, or edit only the lines that change.",
            )
