"""Short reminders in the user's role; their texts stand in templates/reminders.md (REM-01, REM-04, REM-05, REM-10)."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ..core.chat import MessageClass, UserMessage
from ..core.errors import ErrorInfo
from ..policy.visible import inert
from .detectors import classify

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
# Catalogue R: 26 reminders in six categories (C-07). The file holds a few more texts of the harness that no row counts.
CATALOGUE: dict[str, tuple[str, ...]] = {
    "phase control": ("thinking_prompt", "thinking_prompt_with_todos", "thinking_trace", "act_directly"),
    "task life cycle": (
        *("subagent_synthesis", "subagent_complete", "plan_requested"),
        *("plan_approved", "plan_file_reference"),
    ),
    "todo enforcement": ("incomplete_todos", "all_todos_complete"),
    "error recovery": (
        *("tool_failed_generic", "permission", "file_not_found", "syntax"),
        *("rate_limit", "timeout", "edit_mismatch", "docker_failed"),
    ),
    "behaviour correction": (
        *("consecutive_reads", "tool_denied", "completion_summary"),
        *("safety_limit_summary", "doom_loop_warning"),
    ),
    "json retry": ("reflector_json_retry", "curator_json_retry"),
}
_SEPARATOR = re.compile(r"^--- ([a-z0-9_]+) ---[ \t]*$", re.MULTILINE)
_PATTERN = re.compile(r"\Apattern:[ \t]*(\S.*?)[ \t]*(?:\n|\Z)")
_VALUE_CHARS = 4_000  # a value is a detail, not a document
_MAX_FILES, _MAX_FILE_CHARS, _MAX_TEXT_CHARS, _MAX_CLASSES = 20, 64_000, 4_000, 50


class _Known(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


def _split(text: str) -> dict[str, str]:
    parts = _SEPARATOR.split(text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def _sections(path: Path) -> dict[str, str]:
    try:
        return _split(path.read_text(encoding="utf-8"))
    except OSError:
        return {}


class Reminders:
    """The texts of one run: the built-in ones, and over them those of the user (ERR-05).

    A text of the user whose first line is ``pattern: REGEX`` is a failure class of its own: a new class needs a template only.
    """

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        self._own: dict[str, str] = {}
        self._classes: list[tuple[str, re.Pattern[str]]] = []
        for name, text in (own or {}).items():
            found = _PATTERN.match(text)
            self._own[name] = text[found.end() :].strip() if found else text
            if found and len(self._classes) < _MAX_CLASSES:
                try:
                    self._classes.append((name, re.compile(found[1], re.I)))
                except re.error:
                    continue  # the text still counts under its name

    def text(self, name: str, **values: object) -> str:
        """The text, placeholders filled. Never raises: an unknown name gives a plain sentence of the values."""
        filled = _Known({key: _value(value) for key, value in values.items()})
        builtin = _sections(TEMPLATES / "reminders.md").get(name, "")
        for template in (self._own.get(name, ""), builtin):
            if template:
                try:
                    return template.format_map(filled)
                except (ValueError, LookupError, AttributeError):
                    continue  # a stray brace of the user's: ours is said instead
        detail = "; ".join(f"{key}: {value}" for key, value in filled.items())
        return builtin or f"Note ({name.replace('_', ' ')}). {detail}".strip()

    def message(
        self, name: str, msg_class: MessageClass = MessageClass.NUDGE, **values: object
    ) -> UserMessage:
        """The reminder as the message that is sent: role user, inside ``<system-reminder>`` tags (C-03)."""
        return UserMessage(
            content=f"<system-reminder>\n{self.text(name, **values)}\n</system-reminder>", msg_class=msg_class
        )

    def classify(self, error: ErrorInfo) -> str:
        """The class of a failure: the user's own first, then the built-in six, Docker, generic (ERR-01)."""
        return classify(error, self._classes)


_BUILTIN = Reminders()


def names(path: Path = TEMPLATES / "reminders.md") -> tuple[str, ...]:
    """The names of all reminders, in file order."""
    return tuple(_sections(path))


def get_reminder(name: str, **values: object) -> str:
    """The built-in text of a reminder, placeholders filled. Never raises."""
    return _BUILTIN.text(name, **values)


def reminder(name: str, msg_class: MessageClass = MessageClass.NUDGE, **values: object) -> UserMessage:
    """The built-in reminder as a message."""
    return _BUILTIN.message(name, msg_class, **values)


def load_own(folders: Iterable[Path]) -> dict[str, str]:
    """The user's texts in the ``*.md`` files of ``folders``, later ones over earlier; bounded, never raises. Blocking."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.md"))[:_MAX_FILES]:
            try:
                with path.open(encoding="utf-8", errors="replace") as file:
                    texts = _split(file.read(_MAX_FILE_CHARS))
            except OSError:
                continue
            found.update({name: text[:_MAX_TEXT_CHARS] for name, text in texts.items() if text})
    return found


def _value(value: object) -> str:
    """``value`` as text, bounded, unable to close the tag it will stand in."""
    text = inert(str(value))
    return text if len(text) <= _VALUE_CHARS else f"[…]{text[-_VALUE_CHARS:]}"
