"""Text from outside as a person is shown it: nothing in it can hide, move the cursor or turn the writing direction (M10, SAF-07)."""

import re

# Control characters (line break and tab stay), zero width, bidirectional, invisible fillers, line separators, tags.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# What can carry orders that no reader sees: tag characters, and turned writing direction.
_SMUGGLED = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_TAGS = re.compile(r"<(?=\s*/?\s*(?:outside|system-reminder)\b)", re.IGNORECASE)


def visible(text: str) -> str:
    """``text`` with control, bidirectional and zero-width characters written out, so that nothing can hide in it."""
    return _written_out(_HIDDEN, text)


def inert(text: str) -> str:
    """``text`` from outside as a model gets it: it can neither open nor close one of our marks, nor carry unseen characters."""
    return _TAGS.sub("&lt;", _written_out(_SMUGGLED, text))


def _written_out(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
