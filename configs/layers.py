"""The layers of the configuration, each as the dotted keys it sets and where it does (CFG-02)."""

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ..core.model import JsonObject
from .environment import Environment
from .problem import Problem
from .schema import SPELLINGS, groups, leaf_keys
from .settings_file import SCHEMA_KEY, SettingsFile

HOOKS = "hooks."
_OTHER_VARIABLES = frozenset({"OPENDEV_HOME", "OPENDEV_MODELS_DEV_PATH", "OPENDEV_DISABLE_REMOTE_MODELS"})
_OURS = ("OPENDEV_RUN", "OPENDEV_AGENT", "OPENDEV_PROJECT_DIR", "OPENDEV_HOOK")  # we set them for children


@dataclass(frozen=True)
class Origin:
    """Where a value came from: a layer's name, its file or variable, and the line (0 = none)."""

    layer: str
    place: str
    line: int
    value: Any


@dataclass(frozen=True)
class Layer:
    """What one layer says: values by dotted key, what was put aside, and what is wrong."""

    values: dict[str, Origin]
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    file: SettingsFile = field(default_factory=lambda: SettingsFile(Path()))


def default_values() -> dict[str, Origin]:
    """Layer 1: defaults.toml."""
    path = Path(__file__).with_name("defaults.toml")
    return {
        key: Origin("default", "defaults.toml", 0, value)
        for key, value in _flatten(tomllib.loads(path.read_text("utf-8")))
    }


def environment_values(environment: Environment) -> dict[str, Origin]:
    """Layer 2: one variable a setting; a flat spelling of Catalogue F counts where the other is not set."""
    found: dict[str, Origin] = {}
    spelled = {key: spelling for spelling, key in SPELLINGS.items()}
    for key in leaf_keys():
        for name in (key, spelled.get(key, key)):
            variable = variable_of(name)
            if key not in found and (text := environment.get(variable)):
                found[key] = Origin("environment", variable, 0, parsed(text))
    return found


def variable_of(key: str) -> str:
    """The environment variable of a dotted key: ``agents.max_depth`` is ``OPENDEV_AGENTS__MAX_DEPTH``."""
    return "OPENDEV_" + key.replace(".", "__").upper()


def idle_variables(environment: Environment) -> tuple[str, ...]:
    """A sentence for each variable that is named like a setting and sets none."""
    known = {variable_of(key) for key in (*leaf_keys(), *SPELLINGS)} | _OTHER_VARIABLES
    idle = sorted(
        name
        for name, _ in environment.items()
        if name.startswith("OPENDEV_") and name not in known and not name.startswith(_OURS)
    )
    return tuple(
        f"The variable {name} sets nothing{_meant(difflib.get_close_matches(name, known, 1))}."
        for name in idle
    )


def parsed(text: str) -> Any:
    """JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def file_layer(name: str, file: SettingsFile) -> Layer:
    """Layer 3 or 4. Flat spellings become the keys they stand for."""
    known = set(leaf_keys())
    values: dict[str, Origin] = {}
    problems = list(file.problems)
    warnings = [
        f"{file.path}, line {file.line(key)}: `{key}` looks like a key and was left out; keys come from the environment only."
        for key in file.secrets
    ]
    for written, value in _flatten(file.settings):
        if written == SCHEMA_KEY:
            continue
        line, key = file.line(written), SPELLINGS.get(written, written)
        if key not in known and key.startswith(HOOKS):
            warnings.append(f"{file.path}, line {line}: there is no event `{key}`; its hooks were left out.")
        elif key not in known:
            problems.append(Problem(str(file.path), line, *_unknown(key)))
        elif key in values:
            problems.append(
                Problem(str(file.path), line, f"`{written}` says again what line {values[key].line} says")
            )
        else:
            values[key] = Origin(name, str(file.path), line, value)
    return Layer(values, tuple(warnings), tuple(problems), file)


def near(key: str) -> tuple[str, ...]:
    """The settings that may be meant by a name that is none, at most three, the likeliest first."""
    known = (*leaf_keys(), *SPELLINGS, *groups())
    last = key.rpartition(".")[2]
    same = [name for name in known if name.rpartition(".")[2] == last]
    alike = difflib.get_close_matches(key, known, 1, cutoff=0.7)
    ends = {name.rpartition(".")[2]: name for name in known}
    ending = [ends[end] for end in difflib.get_close_matches(last, ends, 1, cutoff=0.8)]
    return tuple(dict.fromkeys([*same, *alike, *ending]))[:3]


def _unknown(key: str) -> tuple[str, str]:
    inside = [name.removeprefix(f"{key}.") for name in leaf_keys() if name.startswith(f"{key}.")]
    if inside:
        return (
            f"`{key}` is a group of settings, not a value",
            f"Write {{ }} there; it holds {', '.join(inside)}.",
        )
    return f"unknown setting `{key}`{_meant(near(key))}", "`opendev config show` lists the settings."


def _meant(names: tuple[str, ...] | list[str]) -> str:
    return f"; did you mean {' or '.join(f'`{name}`' for name in names)}?"[:-1] if names else ""


def _flatten(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Dotted keys and values. A setting that is an object stays whole, and so does what is no setting."""
    flat: list[tuple[str, Any]] = []
    for name, item in value.items():
        key = prefix + name
        if isinstance(item, dict) and key in groups():
            flat += _flatten(cast("JsonObject", item), key + ".")
        else:
            flat.append((key, cast("Any", item)))
    return flat
