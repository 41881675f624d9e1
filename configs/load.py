"""Four layers and the command line become one AppConfig (CFG-02). The only reader of the process's environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..core.approval import ApprovalLevel
from ..core.hooks import Hooks
from ..core.model import JsonObject
from .environment import Environment
from .layers import HOOKS, Layer, Origin, default_values, environment_values, file_layer
from .problem import Problem, refusal
from .schema import AppConfig, fields
from .settings_file import SettingsFile, read_settings

_WORD = re.compile(r"(?!sk-|pk-)[\w .:/-]{0,24}")
_LAYERS = ("default", "environment", "user", "project", "command line")
_GUARDED = (  # what a project's file may not widen; prices hold the user's cap in dollars
    "approval",
    "auto_approve",
    "runtime.address",
    "blocked_commands",
    "prices",
    "mcp_servers",
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
_PLAIN = {  # what the validator calls by Python's names
    "tuple_type": "it must be a list",
    "dict_type": "it must be an object, { }",
    "model_type": "it must be an object, { }",
    "extra_forbidden": "there is no such field",
    "missing": "it is missing",
}


@dataclass(frozen=True)
class Files:
    """The two settings files as they are, or as they would be."""

    user: SettingsFile
    project: SettingsFile


@dataclass(frozen=True)
class Loaded:
    """The configuration, every value's origins (lowest layer first; the last one won) and what was put aside.

    ``projects_hooks`` come with the repository: they stand beside the configuration, and act only after consent (T12)."""

    config: AppConfig
    origins: Mapping[str, tuple[Origin, ...]]
    warnings: tuple[str, ...]
    projects_hooks: Hooks = field(default_factory=Hooks)


@dataclass(frozen=True)
class Resolved:
    """The same before anybody insists that it is valid: without a configuration when it is not, and with all that is wrong."""

    config: AppConfig | None
    origins: Mapping[str, tuple[Origin, ...]]
    warnings: tuple[str, ...]
    projects_hooks: Hooks
    problems: tuple[Problem, ...]


def read_environment() -> Environment:
    """The environment of this process."""
    return Environment(os.environ)


def settings_paths(project: Path, environment: Environment) -> tuple[Path, Path]:
    """The user's file and the project's."""
    return environment.home / "settings.json", project / ".opendev" / "settings.json"


def read_files(project: Path, environment: Environment) -> Files:
    """Both files, once (CFG-05)."""
    user, own = settings_paths(project, environment)
    return Files(read_settings(user), read_settings(own))


def load_config(*, project: Path, environment: Environment, cli: Mapping[str, Any] | None = None) -> Loaded:
    """Resolve defaults < environment < user < project < command line (C-04).

    ``cli`` holds dotted keys; None values are left out. Raises ``OpenDevError`` (config) that names file, line and key.
    """
    found = resolve(read_files(project, environment), environment, cli)
    if found.config is None or found.problems:
        raise refusal(found.problems)
    return Loaded(found.config, found.origins, found.warnings, found.projects_hooks)


def resolve(files: Files, environment: Environment, cli: Mapping[str, Any] | None = None) -> Resolved:
    """The layers on top of each other. Never raises."""
    user, project = file_layer("user", files.user), file_layer("project", files.project)
    hooks, faults = _without_hooks(project)
    layers = [default_values(), environment_values(environment), user.values, project.values]
    layers.append({k: Origin("command line", "", 0, v) for k, v in (cli or {}).items() if v is not None})
    origins: dict[str, list[Origin]] = {}
    for layer in layers:
        for key, origin in layer.items():
            origins.setdefault(key, []).append(origin)
    warnings = [*user.warnings, *project.warnings]
    _narrow(origins, warnings)
    _add_up(origins["deny_read"])
    _name_over_word(origins)
    config, wrong = validate({key: found[-1] for key, found in origins.items()}, (user, project))
    if _same(files):
        hooks = Hooks()  # the project is the home folder: they are the user's own
    told = {key: tuple(found) for key, found in origins.items()}
    problems = (*user.problems, *project.problems, *faults, *wrong)
    return Resolved(config, told, tuple(warnings), hooks, problems)


def _same(files: Files) -> bool:
    user, project = files.user.path, files.project.path
    return user.exists() and project.exists() and user.samefile(project)


def _without_hooks(layer: Layer) -> tuple[Hooks, tuple[Problem, ...]]:
    """A project's hooks, taken out of its layer, and what is wrong with them."""
    mine = {key: layer.values.pop(key) for key in [*layer.values] if key.startswith(HOOKS)}
    try:
        return Hooks.model_validate(
            {key.removeprefix(HOOKS): origin.value for key, origin in mine.items()}
        ), ()
    except ValidationError as error:
        return Hooks(), tuple(_problem(fault, mine, (layer,), HOOKS) for fault in error.errors())


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


def validate(
    chosen: Mapping[str, Origin], layers: tuple[Layer, ...] = ()
) -> tuple[AppConfig | None, tuple[Problem, ...]]:
    """The configuration of the chosen values, or everything that is wrong with them; ``layers`` know the lines."""
    tree: JsonObject = {}
    for key, origin in chosen.items():
        *above, leaf = key.split(".")
        node = tree
        for group in above:
            node = node.setdefault(group, {})
        node[leaf] = origin.value
    wrong = [
        _told(key, origin, layers, "a number is wanted")
        for key, origin in chosen.items()
        if _is_bool(key, origin)
    ]
    try:
        config = AppConfig.model_validate(tree)
    except ValidationError as error:
        return None, (*wrong, *(_problem(fault, chosen, layers) for fault in error.errors()))
    return (None if wrong else config), tuple(wrong)


def _is_bool(key: str, origin: Origin) -> bool:
    """Of a number: true and false pass for 1 and 0 with the validator."""
    kind: Any = fields()[key].annotation
    return isinstance(origin.value, bool) and kind in (int, float, int | None)


def _problem(
    fault: ErrorDetails, chosen: Mapping[str, Origin], layers: tuple[Layer, ...], below: str = ""
) -> Problem:
    path = below + ".".join(str(part) for part in fault["loc"])
    key = next((known for known in chosen if path == known or path.startswith(known + ".")), path)
    why = _PLAIN.get(fault["type"], fault["msg"].removeprefix("Value error, "))
    origin = chosen.get(key)
    if origin is None:
        return Problem("The defaults", 0, f"the setting `{path}`: {why}", "Reinstall OpenDev.")
    return _told(path, origin, layers, why, _shown(fault["input"]), key)


def _told(
    path: str, origin: Origin, layers: tuple[Layer, ...], why: str, shown: str = "", key: str = ""
) -> Problem:
    line = next(
        (
            layer.file.line(path)
            for layer in layers
            if str(layer.file.path) == origin.place and path in layer.file.lines
        ),
        origin.line,
    )
    hint = f"Mend it there; `opendev config explain {key or path}` shows every layer."
    return Problem(origin.place or origin.layer, line, f"`{path}`{shown}: {why}", hint)
