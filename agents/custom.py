"""The user's own agent types, from Markdown files with front matter; a project's own only after consent (CFG-11, SUB-15, AGT-09)."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from ..core.agent import AgentSpec
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..core.tool import Effect
from ..tools.catalog import BUILTIN
from .specs import SAFE_TOOLS, TODO_TOOLS, SubAgentSpec, builtin_specs, custom_spec

MAX_BYTES = 256_000  # of one file
MAX_FILES = 200  # of one folder
CONSENT = "trust.json"  # in the state root: {"files": {absolute path: SHA-256 of the content}}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_CAPS = ("max_iterations", "steps", "max_steps", "maxSteps")  # spellings of one cap
_KNOWN = {
    "name",
    "description",
    "mode",
    "model",
    "disable",
    "disabled",
    "hidden",
    "tools",
    "permission",
    *_CAPS,
}
_LOOKS = {"color"}  # says nothing about what the agent does
_ALL = tuple(tool.name for tool in BUILTIN if tool.name not in TODO_TOOLS)
_EDITORS = frozenset(
    {"file", "Symbols"}
)  # categories: a tool of theirs that writes needs a worktree (ACT-07)
_WRITERS = frozenset(t.name for t in BUILTIN if t.category in _EDITORS and Effect.WRITE in t.effects)


@dataclass(frozen=True, slots=True)
class CustomAgents:
    """What the folders hold: types that may be used, the file of each, and a sentence for every file that is not used or
    holds a key that does nothing."""

    specs: tuple[AgentSpec, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load_custom(home: Path, project: Path) -> CustomAgents:
    """The agents of ``home/agents`` and of ``project/.opendev/agents``, any depth, ``*.md``.

    A project's file comes with the repository: it is used only when its content is named in the user's consent file, and never
    in place of a type of the user's. A file that cannot be used costs nobody else's agent. Blocking.
    """
    consent = _consent(home / CONSENT)
    found: dict[str, tuple[AgentSpec, Path]] = {}
    refused: list[str] = []
    notes: list[str] = []
    own = [(path, False) for path in _files(home / "agents")]
    theirs = [(path, True) for path in _files(project / ".opendev" / "agents")]
    for path, foreign in (*own, *theirs):
        try:
            data = _content(path)
            if foreign and consent.get(str(path)) != hashlib.sha256(data).hexdigest():
                raise OpenDevError(
                    ErrorKind.DENIED,
                    f"The agent file {path} comes with the project and you have not agreed to it.",
                    f"Read it, and move it to {home / 'agents'} if you want to use it.",
                )
            spec, ignored = read_agent(path, data)
        except OpenDevError as error:
            refused.append(error.info.sentence())
            continue
        if spec is None:
            continue
        if spec.name in found:
            refused.append(f"The agent file {path} is not used: {found[spec.name][1]} has the same name.")
            continue
        found[spec.name] = (spec, path)
        if ignored:
            notes.append(f"The agent file {path} sets {', '.join(ignored)}, which OpenDev does not use.")
    specs = tuple(spec for spec, _ in found.values())
    files = {name: path for name, (_, path) in found.items()}
    return CustomAgents(specs, files, tuple(refused), tuple(notes))


def agent_types(custom: Iterable[AgentSpec]) -> dict[str, AgentSpec]:
    """All types by name, the built-in ones first."""
    return {**builtin_specs(), **{spec.name: spec for spec in custom}}


def read_agent(path: Path, data: bytes) -> tuple[AgentSpec | None, tuple[str, ...]]:
    """The type in a file (None: it is disabled) and the keys that do nothing. Raises ``OpenDevError`` (config)."""
    text = data.decode("utf-8-sig", "replace")
    front = _FRONT.match(text)
    given = _front_matter(path, front.group(1) if front else "")
    body = text[front.end() :].strip() if front else text.strip()
    if given.get("disable") is True or given.get("disabled") is True:
        return None, ()
    name, described = str(given.get("name") or path.stem), str(given.get("description") or "").strip()
    if not _NAME.fullmatch(name):
        raise _wrong(path, f"the name {name!r} is not a word of letters, digits, - and _")
    if not body:
        raise _wrong(path, "it has no prompt below its front matter")
    if not described:
        raise _wrong(path, "it has no description, by which the main agent would choose it")
    tools = tuple(tool for tool in _tools(path, given.get("tools")) if tool not in _denied(path, given))
    spec = SubAgentSpec(
        name=name,
        description=" ".join(described.split()),
        system_prompt=body,
        tools=list(tools),
        model=str(given.get("model") or ""),
        writes=bool(_WRITERS & set(tools)),
    )
    if (cap := _cap(path, given)) is not None:
        spec["max_iterations"] = cap
    mode = str(given.get("mode") or "all")
    if mode not in ("primary", "subagent", "all"):
        raise _wrong(path, f"mode {mode!r} is none of primary, subagent, all")
    offered = mode != "primary" and given.get("hidden") is not True
    ignored = tuple(sorted(str(key) for key in given if key not in _KNOWN | _LOOKS))
    return custom_spec(spec).model_copy(update={"offered": offered}), ignored


def _front_matter(path: Path, text: str) -> JsonObject:
    try:
        value: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _wrong(path, f"its front matter is no YAML ({' '.join(str(error).split())[:200]})") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(path, "its front matter is no list of keys")
    return cast("JsonObject", value)


def _tools(path: Path, value: Any) -> tuple[str, ...]:
    """``*`` is every tool but the todo list; a list, or names with commas; ``{exclude: [...]}`` is every other one."""
    if value is None:
        return SAFE_TOOLS
    if value == "*":
        return _ALL
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    if isinstance(value, dict) and set(cast("JsonObject", value)) == {"exclude"}:
        left_out = _names(path, cast("JsonObject", value)["exclude"])
        return tuple(name for name in _ALL if name not in left_out)
    return _names(path, value)


def _names(path: Path, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in cast("list[Any]", value)):
        raise _wrong(path, 'its tools are neither "*", nor a list of names, nor {exclude: [names]}')
    return tuple(cast("list[str]", value))


def _denied(path: Path, given: JsonObject) -> frozenset[str]:
    """The tools that ``permission`` denies. What else it may say is refused: a rule that nobody keeps would be a trap."""
    rules: Any = given.get("permission") or {}
    if not isinstance(rules, dict):
        raise _wrong(path, "its permission is no list of keys")
    other = [name for name, rule in cast("JsonObject", rules).items() if rule not in ("allow", "deny")]
    if other:
        raise _wrong(path, f"permission of {other[0]}: only allow and deny are kept")
    return frozenset(name for name, rule in cast("JsonObject", rules).items() if rule == "deny")


def _cap(path: Path, given: JsonObject) -> int | None:
    value = next((given[key] for key in _CAPS if key in given), None)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1000:
        raise _wrong(path, f"its cap of iterations {value!r} is no number from 1 to 1000")
    return value


def _files(folder: Path) -> list[Path]:
    """Sorted, so that the order is the same on every machine."""
    return sorted(path for path in folder.rglob("*.md") if path.is_file())[:MAX_FILES]


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _wrong(path, f"it cannot be read ({error.strerror or error})") from error
    if len(data) > MAX_BYTES:
        raise _wrong(path, f"it is larger than {MAX_BYTES:,} bytes")
    return data


def _consent(path: Path) -> dict[str, str]:
    """The contents the user agreed to; a file that cannot be read agrees to nothing."""
    try:
        value: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    files = cast("JsonObject", value).get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict):
        return {}
    return {name: digest for name, digest in cast("JsonObject", files).items() if isinstance(digest, str)}


def _wrong(path: Path, why: str) -> OpenDevError:
    return OpenDevError(ErrorKind.CONFIG, f"The agent file {path} cannot be used: {why}.")
