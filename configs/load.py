"""Four layers and the command line become one AppConfig (CFG-02). The only reader of the process's environment."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ..core.approval import ApprovalLevel
from ..core.errors import ErrorKind, OpenDevError
from ..core.hooks import Hooks
from ..core.model import JsonObject
from .environment import Environment
from .schema import AppConfig, leaf_keys

_KEY_LIKE = re.compile(r"api_?key|secret|token$|password|credential", re.IGNORECASE)
_WORD = re.compile(r"(?!sk-|pk-)[\w .:/-]{0,24}")
_LAYERS = ("default", "environment", "user", "project", "command line")
_HOOKS = "hooks."
_GUARDED = (  # what a project's file may not widen; prices hold the user's cap in dollars
    "approval",
    "auto_approve",
    "runtime.address",
    "blocked_commands",
    "prices",
    "cost.assumed_input_usd",
    "cost.assumed_output_usd",
    "catalog.url",
    "web.allow_private",
    "web.search_provider",
    "sandbox.mode",
    "sandbox.network",
    "sandbox.write",
    "sandbox.hide",
)
_LEVELS = [ApprovalLevel.MANUAL, ApprovalLevel.SEMI_AUTO, ApprovalLevel.AUTO]


@dataclass(frozen=True)
class Origin:
    """Where a value came from: a layer's name, its file or variable, and the line (0 = none)."""

    layer: str
    place: str
    line: int
    value: Any


@dataclass(frozen=True)
class Loaded:
    """The configuration, every value's origins (lowest layer first; the last one won) and what was put aside.

    ``projects_hooks`` come with the repository: they stand beside the configuration, and act only after consent (T12)."""

    config: AppConfig
    origins: Mapping[str, tuple[Origin, ...]]
    warnings: tuple[str, ...]
    projects_hooks: Hooks = field(default_factory=Hooks)


def read_environment() -> Environment:
    """The environment of this process."""
    return Environment(os.environ)


def load_config(*, project: Path, environment: Environment, cli: Mapping[str, Any] | None = None) -> Loaded:
    """Resolve defaults < environment < user < project < command line (C-04).

    ``cli`` holds dotted keys; None values are left out. Raises ``OpenDevError`` (config) that names file, line and key.
    """
    warnings: list[str] = []
    users, projects = environment.home / "settings.json", project / ".opendev" / "settings.json"
    theirs = _from_file("project", projects, warnings)
    hooks = _without_hooks(theirs)
    layers = [
        _defaults(),
        _from_environment(environment),
        _from_file("user", users, warnings),
        theirs,
        {
            key: Origin("command line", "", 0, value)
            for key, value in (cli or {}).items()
            if value is not None
        },
    ]
    origins: dict[str, list[Origin]] = {}
    for layer in layers:
        for key, origin in layer.items():
            origins.setdefault(key, []).append(origin)
    _narrow(origins, warnings)
    _add_up(origins["deny_read"])
    _name_over_word(origins)
    config = _validate({key: found[-1] for key, found in origins.items()})
    if users.exists() and projects.exists() and users.samefile(projects):
        hooks = Hooks()  # the project is the home folder: they are the user's own
    return Loaded(config, {key: tuple(found) for key, found in origins.items()}, tuple(warnings), hooks)


def _defaults() -> dict[str, Origin]:
    path = Path(__file__).with_name("defaults.toml")
    return {
        key: Origin("default", "defaults.toml", 0, value)
        for key, value in _flatten(tomllib.loads(path.read_text("utf-8"))).items()
    }


def _from_environment(environment: Environment) -> dict[str, Origin]:
    found: dict[str, Origin] = {}
    for key in leaf_keys():
        name = variable_of(key)
        if text := environment.get(name):
            found[key] = Origin("environment", name, 0, _parse(text))
    return found


def variable_of(key: str) -> str:
    """The environment variable of a dotted key: ``agents.max_depth`` is ``OPENDEV_AGENTS__MAX_DEPTH``."""
    return "OPENDEV_" + key.replace(".", "__").upper()


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_settings(path: Path) -> JsonObject:
    """The object in a settings file; empty when there is none. Raises ``OpenDevError`` (config)."""
    return _parsed(path, _text_of(path))


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise OpenDevError(
            ErrorKind.CONFIG, f"{path} cannot be read: {error}.", "Make it readable UTF-8 text, or remove it."
        ) from error


def _parsed(path: Path, text: str) -> JsonObject:
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise OpenDevError(
            ErrorKind.CONFIG, f"{path}, line {error.lineno}: not valid JSON: {error.msg}.", "Mend the line."
        ) from error
    except RecursionError as error:
        raise OpenDevError(
            ErrorKind.CONFIG, f"{path} is nested too deeply.", "Settings are two levels deep."
        ) from error
    if not isinstance(value, dict):
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"{path}, line 1: a settings file holds one JSON object.",
            "Put { } around the settings.",
        )
    return cast("JsonObject", value)


def _from_file(layer: str, path: Path, warnings: list[str]) -> dict[str, Origin]:
    found: dict[str, Origin] = {}
    known = set(leaf_keys())
    text = _text_of(path)
    settings, secrets = without_keys(_parsed(path, text))
    warnings += [
        f"{path}, line {line_of(text, key)}: `{key}` looks like a key and was left out; keys come from the environment only."
        for key in secrets
    ]
    for key, value in _flatten(settings).items():
        line = line_of(text, key)
        if key not in known and key.startswith(_HOOKS):
            warnings.append(f"{path}, line {line}: there is no event `{key}`; its hooks were left out.")
            continue
        if key not in known:
            raise OpenDevError(
                ErrorKind.CONFIG,
                f"{path}, line {line}: unknown setting `{key}`.",
                "`opendev config show` lists the settings.",
            )
        found[key] = Origin(layer, str(path), line, value)
    return found


def _without_hooks(layer: dict[str, Origin]) -> Hooks:
    """Take a project's hooks out of its layer. Raises ``OpenDevError`` (config) when they are malformed."""
    mine = {key: layer.pop(key) for key in [*layer] if key.startswith(_HOOKS)}
    try:
        return Hooks.model_validate({key.removeprefix(_HOOKS): origin.value for key, origin in mine.items()})
    except ValidationError as error:
        raise OpenDevError(ErrorKind.CONFIG, *_complaint(error, mine, _HOOKS)) from error


def without_keys(settings: JsonObject, prefix: str = "") -> tuple[JsonObject, tuple[str, ...]]:
    """The settings without anything that looks like a key, at any depth, and the dotted names of what was removed (CFG-04)."""
    kept: JsonObject = {}
    removed: list[str] = []
    for name, item in settings.items():
        if _KEY_LIKE.search(name):
            removed.append(prefix + name)
        elif isinstance(item, dict):
            kept[name], below = without_keys(cast("JsonObject", item), f"{prefix}{name}.")
            removed += below
        else:
            kept[name] = item
    return kept, tuple(removed)


def _flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    leaves = set(leaf_keys())
    for name, item in value.items():
        key = prefix + name
        if isinstance(item, dict) and key not in leaves:
            flat.update(_flatten(cast("JsonObject", item), key + "."))
        else:
            flat[key] = item
    return flat


def line_of(text: str, key: str) -> int:
    """The line of a dotted key in JSON text: its parts are looked for one after the other."""
    at = 0
    for part in key.split("."):
        match = re.compile(rf'"{re.escape(part)}"\s*:').search(text, at)
        if match is None:
            break
        at = match.start()
    return text.count("\n", 0, at) + 1


def _narrow(origins: dict[str, list[Origin]], warnings: list[str]) -> None:
    """A project's file may narrow rights and never widen them: it comes with the repository, not from the user."""
    for key in _GUARDED:
        found = origins.get(key, [])
        index = next((i for i, origin in enumerate(found) if origin.layer == "project"), None)
        if index is None:
            continue
        mine, below = found[index], found[index - 1].value if index else None
        if key == "blocked_commands":
            if isinstance(mine.value, list) and isinstance(below, list):  # else validation says what is wrong
                joined = [*cast("list[Any]", below), *cast("list[Any]", mine.value)]  # CFG-10: only adds
                found[index] = Origin(mine.layer, mine.place, mine.line, joined)
        elif not _narrower(key, mine.value, below):
            warnings.append(
                f"{mine.place}, line {mine.line}: `{key}` would widen what agents may do and was left out; set it in your own settings."
            )
            del found[index]
            if not found:
                del origins[key]


def _add_up(found: list[Origin]) -> None:
    """Each layer's list on top of those below it; a project's may not take one back."""
    total: list[Any] = []
    for index, origin in enumerate(found):
        if not isinstance(origin.value, list):
            return  # validation says what is wrong
        mine = cast("list[Any]", origin.value)
        total += [
            item for item in mine if origin.layer != "project" or not str(item).lstrip().startswith("!")
        ]
        found[index] = Origin(origin.layer, origin.place, origin.line, [*total])


def _name_over_word(origins: dict[str, list[Origin]]) -> None:
    """A layer that names a level speaks after a lower layer's ``auto_approve``, which is only another word for auto (C-35)."""
    level, word = origins["approval"][-1], origins["auto_approve"][-1]
    if word.value is not False and _LAYERS.index(level.layer) > _LAYERS.index(word.layer):
        origins["auto_approve"].append(Origin(level.layer, level.place, level.line, value=False))


def _narrower(key: str, mine: Any, below: Any) -> bool:
    if key == "approval":
        known = [level.value for level in _LEVELS]
        return mine not in known or (below in known and known.index(mine) <= known.index(below))
    if key == "sandbox.network":
        return mine == "deny"
    return key in ("auto_approve", "web.allow_private") and mine is False


def _shown(value: Any) -> str:
    """A wrong value as it may stand in an error: numbers and short words; anything longer could be a key (CFG-04)."""
    if isinstance(value, bool | int | float) or (isinstance(value, str) and _WORD.fullmatch(value)):
        return f" is {value!r}"
    return ""


def _validate(chosen: Mapping[str, Origin]) -> AppConfig:
    tree: JsonObject = {}
    for key, origin in chosen.items():
        *groups, leaf = key.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
        node[leaf] = origin.value
    try:
        return AppConfig.model_validate(tree)
    except ValidationError as error:
        raise OpenDevError(ErrorKind.CONFIG, *_complaint(error, chosen)) from error


def _complaint(error: ValidationError, chosen: Mapping[str, Origin], below: str = "") -> tuple[str, str]:
    first = error.errors()[0]
    path = below + ".".join(str(part) for part in first["loc"])
    key = next((known for known in chosen if path == known or path.startswith(known + ".")), path)
    origin = chosen.get(key)
    if origin is None:
        return f"The setting `{path}` is missing: {first['msg']}.", "Reinstall OpenDev."
    line = f", line {origin.line}" if origin.line else ""
    place = f"{origin.place or origin.layer}{line}"
    return (
        f"{place}: `{path}`{_shown(first['input'])}: {first['msg']}.",
        f"Mend it there; `opendev config explain {key}` shows every layer.",
    )
