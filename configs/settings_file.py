"""One settings file: read within bounds, parsed strictly, every key with its line, anything that looks like a secret left out (CFG-04)."""

import bisect
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

from ..core.model import JsonObject
from .problem import Problem

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
SCHEMA_KEY = "$schema"  # names the JSON schema for editors; nothing else reads it

_KEY_LIKE = re.compile(
    r"(api|access|private|secret)_?key|secret|token$|passw(or)?d|passphrase|credential|^key$|[_-]key$",
    re.IGNORECASE,
)
_VALUE_LIKE = re.compile(
    r"((Bearer|Basic|token)\s+)?(sk-|pk-|rk-|gsk_|xai-|hf_|gh[opsur]_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza|ya29\.|eyJ)[\w.+/=-]{8,}"
    r"|(Bearer|Basic)\s+(?!\$\{)\S{8,}|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
_REFERENCE = re.compile(r"(\w+ )?\$\{[A-Za-z_]\w*\}")  # a name of the environment is no secret
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


@dataclass(frozen=True)
class SettingsFile:
    """What a file holds: its object without secrets, the line of every dotted key, and what is wrong with it.

    ``secrets`` are the dotted names of what was left out.
    """

    path: Path
    settings: JsonObject = field(default_factory=dict[str, Any])
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    secrets: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def line(self, key: str) -> int:
        """The line of a dotted key, or of the nearest one above it that has one; 1 at least."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return self.lines.get(key, 1)


def read_settings(path: Path) -> SettingsFile:
    """The file at ``path``; without one it is empty. Never raises: what is wrong is among its problems."""
    try:
        data = _bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return SettingsFile(path)
    except OSError as error:
        return _bad(
            path, 0, f"it cannot be read: {error.strerror or error}", "Make it readable, or remove it."
        )
    return parse_settings(path, data)


def parse_settings(path: Path, data: bytes) -> SettingsFile:
    """The same for bytes that stand at ``path``, or will."""
    if len(data) > MAX_BYTES:
        return _bad(path, 0, f"it is larger than {MAX_BYTES:,} bytes", "Settings are short: shorten it.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return _bad(path, line, f"no UTF-8 text (byte {error.start})", "Save it as UTF-8.")
    try:
        value: Any = json.loads(text, parse_constant=_refuse) if text.strip() else {}
    except json.JSONDecodeError as error:
        return _bad(
            path, error.lineno, f"not valid JSON: {error.msg}{_advice(text, error.pos)}", "Mend the line."
        )
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else f"not valid JSON: {error}"
        return _bad(path, 1, why, "Settings are a few levels deep.")
    if not isinstance(value, dict):
        return _bad(path, 1, "a settings file holds one JSON object", "Put { } around the settings.")
    return _checked(path, text, cast("JsonObject", value))


def _checked(path: Path, text: str, value: JsonObject) -> SettingsFile:
    lines, twice, depth = _places(text)
    if depth > MAX_DEPTH:
        return _bad(path, 1, "it is nested too deeply", "Settings are a few levels deep.")
    problems = [
        Problem(str(path), line, f"`{key}` stands twice", "Leave one: which of them counts would be luck.")
        for key, line in twice
    ]
    kept, secrets = without_secrets(value)
    return SettingsFile(path, kept, lines, secrets, tuple(problems))


def without_secrets(settings: JsonObject, prefix: str = "") -> tuple[JsonObject, tuple[str, ...]]:
    """The settings without what a name or a value shows to be a key or a password, at any depth, and the dotted names of what
    was removed (CFG-04). ``${NAME}`` stands for a variable of the environment and stays."""
    kept: JsonObject = {}
    removed: list[str] = []
    for name, item in settings.items():
        if is_secret(name, item):
            removed.append(prefix + name)
        elif isinstance(item, dict):
            kept[name], below = without_secrets(cast("JsonObject", item), f"{prefix}{name}.")
            removed += below
        else:
            kept[name] = item
    return kept, tuple(removed)


def is_secret(name: str, value: Any) -> bool:
    """Whether a name or its value shows it to be a key or a password. A dotted name counts by its last part."""
    if isinstance(value, str) and (_VALUE_LIKE.fullmatch(value.strip())):
        return True
    if isinstance(value, list) and any(is_secret("", item) for item in cast("list[Any]", value)):
        return True
    return bool(_KEY_LIKE.search(name)) and not (isinstance(value, str) and _REFERENCE.fullmatch(value))


def _bytes(path: Path) -> bytes:
    """At most one byte more than allowed; a device or a pipe is no file, also behind a link of a hostile project."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is no regular file")
        return file.read(MAX_BYTES + 1)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _advice(text: str, at: int) -> str:
    before = text[:at].rstrip()
    if before.endswith(",") and text[at:].lstrip()[:1] in ("}", "]"):
        return " (there is a comma too many before it)"
    if text[at:].startswith(("//", "/*", "#")):
        return " (JSON has no comments)"
    return " (JSON wants double quotes)" if text[at : at + 1] == "'" else ""


def _bad(path: Path, line: int, what: str, hint: str) -> SettingsFile:
    return SettingsFile(path, problems=(Problem(str(path), line, what, hint),))


@dataclass
class _Frame:
    """An object or a list that is open at a place in the text."""

    prefix: str
    index: int  # of the next item; -1 in an object
    seen: set[str]


def _places(text: str) -> tuple[dict[str, int], list[tuple[str, int]], int]:
    """Of valid JSON: the line of every dotted key (items of lists by number), the keys that stand twice, the depth."""
    ends = [match.start() for match in re.finditer("\n", text)]
    lines: dict[str, int] = {}
    twice: list[tuple[str, int]] = []
    frames: list[_Frame] = []
    key, word, deepest = "", re.match("", text), 0
    for token in _TOKEN.finditer(text):
        kind = token[0][0]
        if kind == '"':
            word = token
        elif kind == ":" and word is not None:
            name = json.loads(word[0])
            key = frames[-1].prefix + name
            line = bisect.bisect(ends, word.start()) + 1
            if name in frames[-1].seen:
                twice.append((key, line))
            frames[-1].seen.add(name)
            lines.setdefault(key, line)
        elif kind in "{[":
            if frames and frames[-1].index >= 0:
                key = f"{frames[-1].prefix}{frames[-1].index}"
                lines[key] = bisect.bisect(ends, token.start()) + 1
            frames.append(_Frame(f"{key}." if frames else "", 0 if kind == "[" else -1, set()))
            deepest = max(deepest, len(frames))
        elif kind in "}]":
            frames.pop()
        elif frames[-1].index >= 0:
            frames[-1].index += 1
    return lines, twice, deepest
