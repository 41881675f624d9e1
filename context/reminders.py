"""Short reminders in the user's role; their texts stand in templates/reminders.md (REM-01, REM-04, REM-05)."""

import re
from functools import cache
from pathlib import Path

from ..core.chat import MessageClass, UserMessage

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
_SEPARATOR = re.compile(r"^--- ([a-z0-9_]+) ---[ \t]*$", re.MULTILINE)
_VALUE_CHARS = 4_000  # a value is a detail, not a document


class _Known(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


@cache
def _sections(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return {}
    parts = _SEPARATOR.split(text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def names(path: Path = TEMPLATES / "reminders.md") -> tuple[str, ...]:
    """The names of all reminders, in file order."""
    return tuple(_sections(path))


def get_reminder(name: str, **values: object) -> str:
    """The text of a reminder, placeholders filled. Never raises: an unknown name gives a plain sentence of the values."""
    filled = _Known({key: _value(value) for key, value in values.items()})
    template = _sections(TEMPLATES / "reminders.md").get(name, "")
    if template:
        try:
            return template.format_map(filled)
        except (ValueError, IndexError, AttributeError, LookupError):
            return template
    detail = "; ".join(f"{key}: {value}" for key, value in filled.items())
    return f"Note ({name.replace('_', ' ')}). {detail}".strip()


def reminder(name: str, msg_class: MessageClass = MessageClass.NUDGE, **values: object) -> UserMessage:
    """The reminder as the message that is sent: role user, inside ``<system-reminder>`` tags (C-03)."""
    return UserMessage(
        content=f"<system-reminder>\n{get_reminder(name, **values)}\n</system-reminder>", msg_class=msg_class
    )


def _value(value: object) -> str:
    """``value`` as text, bounded, unable to close the tag it will stand in."""
    text = str(value).replace("</system-reminder", "<\\/system-reminder")
    return text if len(text) <= _VALUE_CHARS else f"[…]{text[-_VALUE_CHARS:]}"
