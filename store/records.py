"""One line of a transcript, ours or an earlier implementation's: strict to write, lenient to read (SES-01, D03, D09; upstream §6.9)."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import ValidationError, model_validator

from ..core.chat import MESSAGES, AssistantMessage, Message, SystemMessage, ToolMessage
from ..core.ids import new_id
from ..core.model import Frozen, JsonObject, dump_line

_CHARS_PER_TOKEN = 4  # the usual rule of thumb
_PENDING_CHARS = 1_000_000  # of a record that somebody wrote over several lines
_TRIES = 100  # places in one line where a record may begin
_DECODER = json.JSONDecoder(strict=False)  # raw control characters in texts are read
_ROLES = ("system", "user", "assistant", "tool")


class TranscriptLine(Frozen):
    """One message, when it was said, and about how many tokens it takes. On disk it is one flat object with ``role`` and ``content``."""

    at: str
    message: Message

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        row: JsonObject = cast("JsonObject", value) if isinstance(value, dict) else {}
        if "role" not in row:
            return cast("object", value)
        messages = _messages(row)
        if len(messages) != 1:
            raise ValueError("it is not one message")
        return {"at": _time(row), "message": messages[0]}

    @property
    def tokens(self) -> int:
        """An estimate: a quarter of the characters of content and arguments."""
        message = self.message
        size = len(
            message.stable + message.dynamic if isinstance(message, SystemMessage) else message.content
        )
        if isinstance(message, AssistantMessage):
            size += sum(len(call.name) + len(json.dumps(call.arguments)) for call in message.tool_calls)
        return -(-size // _CHARS_PER_TOKEN)

    def to_json(self) -> str:
        """One line; line breaks, U+2028 and every other character beyond ASCII are escaped."""
        row = cast("JsonObject", json.loads(dump_line(self.message)))
        if isinstance(self.message, SystemMessage):
            row["content"] = row.pop("stable")
        kept = {key: value for key, value in row.items() if value not in ("", [], {}) or key == "content"}
        head = {"schema": 1, "timestamp": self.at, "tokens": self.tokens, "role": kept.pop("role")}
        return json.dumps({**head, **kept}, separators=(",", ":"))


def read_lines(lines: Iterable[bytes]) -> Iterator[TranscriptLine]:
    """The messages of a file, oldest first. What is no message (a torn line, another type of record) is passed over."""
    for row in rows_of(lines):
        yield from messages_of(row)


def rows_of(lines: Iterable[bytes]) -> Iterator[JsonObject]:
    """The JSON objects of a file: glued ones are separated, one over several lines is joined, NUL bytes and noise are left out."""
    pending = ""
    for raw in lines:
        line = raw.replace(b"\0", b"").decode("utf-8", "replace").strip("\ufeff\r\n")
        if not line.strip():
            pending = pending and f"{pending}\n"
            continue
        found, whole = objects_in(line)
        if pending and not found:
            joined = f"{pending}\n{line}"
            found, whole = objects_in(joined)
            pending = "" if found else joined[:_PENDING_CHARS]
        else:
            pending = "" if whole or found else line
        yield from found


def objects_in(line: str) -> tuple[list[JsonObject], bool]:
    """The records in one line, and whether the line is nothing else."""
    found: list[JsonObject] = []
    place, whole = 0, True
    for _ in range(_TRIES):
        place = line.find("{", place)
        if place < 0:
            break
        try:
            value, place = _DECODER.raw_decode(line, place)
        except (ValueError, RecursionError):
            whole, place = False, place + 1
            continue
        if whole or _is_record(value):  # what stands inside a torn record is no record of its own
            found.append(cast("JsonObject", value))
    return found, whole and bool(found)


def messages_of(row: JsonObject) -> tuple[TranscriptLine, ...]:
    """The messages in a record of any version: an answer of earlier implementations holds its results too. Empty: it is none."""
    return tuple(TranscriptLine(at=_time(row), message=message) for message in _messages(row))


def _messages(row: JsonObject) -> tuple[Message, ...]:
    inner = row.get("message")
    source = cast("JsonObject", inner) if isinstance(inner, dict) and "role" not in row else row
    role = source.get("role")
    try:
        return _convert(source, str(role)) if role in _ROLES else ()
    except (ValidationError, ValueError, TypeError):
        return ()


def _time(row: JsonObject) -> str:
    return next((row[key] for key in ("timestamp", "at") if isinstance(row.get(key), str)), "")


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or "message" in value or "type" in value)


def _convert(source: JsonObject, role: str) -> tuple[Message, ...]:
    known = {
        key: value for key, value in source.items() if key in _FIELDS[role] and _plain(key, value) is not None
    }
    if role == "system":
        stable = source.get("stable", source.get("content"))
        return (SystemMessage(stable=_text(stable), dynamic=_text(source.get("dynamic"))),)
    known["content"] = _text(source.get("content"))
    if role == "assistant":
        return _answer(source, known)
    if role == "tool":
        known["call_id"] = _text(source.get("call_id") or source.get("tool_call_id")) or f"call_{new_id()}"
        known["name"] = _text(source.get("name")) or "unknown"
    return MESSAGES.validate_python(({**known, "role": role},))


_FIELDS = {
    "system": frozenset[str](),
    "user": frozenset({"msg_class", "images"}),
    "assistant": frozenset({"thinking"}),
    "tool": frozenset({"is_error", "summary"}),
}


def _plain(key: str, value: Any) -> Any:
    """``value`` when it has the type that this version writes under ``key``."""
    kinds: dict[str, type] = {"images": list, "thinking": list, "is_error": bool}
    return value if isinstance(value, kinds.get(key, str)) else None


def _answer(source: JsonObject, known: JsonObject) -> tuple[Message, ...]:
    """An answer; calls of OpenAI's and of upstream's form are read, and the results upstream keeps inside a call come behind it."""
    calls: list[JsonObject] = []
    results: list[Message] = []
    for raw in _rows(source.get("tool_calls")):
        function = raw.get("function")
        part = {**raw, **cast("JsonObject", function)} if isinstance(function, dict) else raw
        call_id = _text(part.get("id")) or f"call_{new_id()}"
        name = _text(part.get("name")) or "unknown"
        given = part.get("arguments", part.get("parameters"))
        calls.append(
            {
                "id": call_id,
                "name": name,
                "arguments": _arguments(given),
                "problem": _text(part.get("problem")),
            }
        )
        if part.get("result") is not None or part.get("error"):
            error = _text(part.get("error"))
            results.append(
                ToolMessage(
                    call_id=call_id,
                    name=name,
                    content=error or _text(part.get("result")),
                    is_error=bool(error),
                    summary=_text(part.get("result_summary")),
                )
            )
    answer = AssistantMessage.model_validate({**known, "tool_calls": calls})
    return (answer, *results)


def _arguments(given: Any) -> JsonObject:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    return cast("JsonObject", given) if isinstance(given, dict) else {}


def _rows(value: Any) -> list[JsonObject]:
    rows = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", row) for row in rows if isinstance(row, dict)]


def _text(value: Any) -> str:
    """Text as it is, the texts of content blocks joined, any other value as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text") for part in _rows(value)]
        texts = [part for part in parts if isinstance(part, str)]
        if texts:
            return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False, default=str)
