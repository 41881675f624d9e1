"""What is published of the settings: their meanings, a JSON schema for editors, and the table of docs/configuration.md."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..core.model import JsonObject
from .layers import default_values, variable_of
from .schema import SPELLINGS, AppConfig, groups, leaf_keys
from .settings_file import SCHEMA_KEY

_GROUP = re.compile(r"\[(\w+)\]\s*(?:#\s*(.+))?")
_SETTING = re.compile(r"(?:# )?(\w+) = (.*?)(?:\s+# (.+))?")
_LONGEST = 60  # characters of a default in the table


@cache
def meanings() -> Mapping[str, str]:
    """What every setting and every group means: the comments of defaults.toml."""
    found: dict[str, str] = {}
    group = ""
    for line in Path(__file__).with_name("defaults.toml").read_text("utf-8").splitlines():
        if head := _GROUP.fullmatch(line):
            group = f"{head[1]}."
            found[head[1]] = head[2] or ""
        elif setting := _SETTING.fullmatch(line):
            found[group + setting[1]] = setting[3] or ""
    return found


def settings_schema() -> JsonObject:
    """The JSON schema of a settings file, derived from ``AppConfig``: every setting may be left out, none may be made up."""
    schema = _untitled(AppConfig.model_json_schema())
    parts: JsonObject = schema["$defs"]
    defaults = {key: origin.value for key, origin in default_values().items()}
    schema.pop("required")
    for name, entry in schema["properties"].items():
        entry["description"] = meanings()[name]
        if name not in groups():
            entry |= {"default": defaults[name]} if name in defaults else {}
            continue
        part = parts[entry["$ref"].rpartition("/")[2]]
        part.pop("required", None)
        for below, setting in part["properties"].items():
            key = f"{name}.{below}"
            setting |= {"description": meanings()[key], "default": defaults[key]}
    for spelling, key in SPELLINGS.items():
        schema["properties"][spelling] = {"type": "string", "description": f"Another spelling of {key}."}
    schema["properties"][SCHEMA_KEY] = {"type": "string", "description": "This schema, for editors."}
    described = "Settings of OpenDev, ~/.opendev/settings.json or .opendev/settings.json of a project."
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "OpenDev settings",
        **schema,
        "description": described,
    }


def settings_table() -> str:
    """Every setting with its default and meaning, as Markdown."""
    defaults = {key: json.dumps(origin.value) for key, origin in default_values().items()}
    rows = ["| Setting | Default | Meaning |", "|---|---|---|"]
    for key in leaf_keys():
        default = defaults.get(key, "")
        shown = f"`{default}`" if 0 < len(default) <= _LONGEST else "a list" if default else "none"
        meaning = meanings()[key].replace("|", "\\|")
        rows.append(f"| `{key}` | {shown} | {meaning} |")
    flat = ", ".join(f"`{spelling}` (`{key}`)" for spelling, key in SPELLINGS.items())
    return (
        "\n".join(
            [
                *rows,
                "",
                f"Flat spellings of some: {flat}. Variables: `{variable_of('web.search_provider')}` and so on.",
            ]
        )
        + "\n"
    )


def _untitled(value: Any) -> Any:
    """Without the titles that a generator makes of names; a setting may be called title."""
    if isinstance(value, dict):
        return {
            key: _untitled(item)
            for key, item in value.items()  # pyright: ignore[reportUnknownVariableType]
            if not (key == "title" and isinstance(item, str))
        }
    return [_untitled(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
