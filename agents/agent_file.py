"""One agent type as a Markdown file: front matter and prompt, read into a spec (CFG-11, SUB-15). Imported only where there is one."""

import re
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from ..core.agent import AgentSpec, DockerConfig
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..core.tool import Effect
from ..tools.catalog import BUILTIN
from .specs import SAFE_TOOLS, TODO_TOOLS, SubAgentSpec, custom_spec

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
    "docker",
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
        raise wrong(path, f"the name {name!r} is not a word of letters, digits, - and _")
    if not body:
        raise wrong(path, "it has no prompt below its front matter")
    if not described:
        raise wrong(path, "it has no description, by which the main agent would choose it")
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
    if (docker := given.get("docker")) is not None:
        spec["docker"] = _docker(path, docker)
    mode = str(given.get("mode") or "all")
    if mode not in ("primary", "subagent", "all"):
        raise wrong(path, f"mode {mode!r} is none of primary, subagent, all")
    offered = mode != "primary" and given.get("hidden") is not True
    ignored = tuple(sorted(str(key) for key in given if key not in _KNOWN | _LOOKS))
    return custom_spec(spec).model_copy(update={"offered": offered}), ignored


def _front_matter(path: Path, text: str) -> JsonObject:
    try:
        value: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise wrong(path, f"its front matter is no YAML ({' '.join(str(error).split())[:200]})") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(path, "its front matter is no list of keys")
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
        raise wrong(path, 'its tools are neither "*", nor a list of names, nor {exclude: [names]}')
    return tuple(cast("list[str]", value))


def _denied(path: Path, given: JsonObject) -> frozenset[str]:
    """The tools that ``permission`` denies. What else it may say is refused: a rule that nobody keeps would be a trap."""
    rules: Any = given.get("permission") or {}
    if not isinstance(rules, dict):
        raise wrong(path, "its permission is no list of keys")
    other = [name for name, rule in cast("JsonObject", rules).items() if rule not in ("allow", "deny")]
    if other:
        raise wrong(path, f"permission of {other[0]}: only allow and deny are kept")
    return frozenset(name for name, rule in cast("JsonObject", rules).items() if rule == "deny")


def _docker(path: Path, value: Any) -> dict[str, str]:
    """``docker: IMAGE``, or its fields."""
    fields: Any = {"image": value} if isinstance(value, str) else value
    try:
        return DockerConfig.model_validate(fields).model_dump()
    except ValidationError as error:
        what = error.errors()[0]
        raise wrong(path, f"docker.{'.'.join(map(str, what['loc']))}: {what['msg']}") from error


def _cap(path: Path, given: JsonObject) -> int | None:
    value = next((given[key] for key in _CAPS if key in given), None)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1000:
        raise wrong(path, f"its cap of iterations {value!r} is no number from 1 to 1000")
    return value


def wrong(path: Path, why: str) -> OpenDevError:
    """The error of a file that cannot be used."""
    return OpenDevError(ErrorKind.CONFIG, f"The agent file {path} cannot be used: {why}.")
