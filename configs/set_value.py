"""Changes one key of a settings file; the result must be valid before anything is written."""

import copy
import json
from typing import Any, cast

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from .explain import known_key
from .layers import parsed
from .problem import Problem, refusal
from .schema import SPELLINGS
from .settings_file import SettingsFile, is_secret, parse_settings, without_secrets


def changed_settings(file: SettingsFile, key: str, text: str) -> SettingsFile:
    """The file with ``key`` set to ``text`` (JSON, else a string); writes nothing. The caller sees whether the result is valid.

    Raises ``OpenDevError``: usage for an unknown key and for a secret, config when the file cannot be read as it is.
    """
    value = parsed(text)
    if is_secret(key.rpartition(".")[2], value) or (
        isinstance(value, dict) and without_secrets(cast("JsonObject", value))[1]
    ):
        raise OpenDevError(
            ErrorKind.USAGE,
            "A key or password is kept in no settings file.",
            "Set it as a variable of the environment, for example OPENAI_API_KEY; ${NAME} names one in `mcp_servers`.",
        )
    key = known_key(key)
    return parse_settings(file.path, content_of(_with(file, key, value)))


def content_of(settings: JsonObject) -> bytes:
    """A settings file's bytes."""
    return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()


def _with(file: SettingsFile, key: str, value: Any) -> JsonObject:
    if file.problems:
        raise refusal(file.problems)  # nothing that cannot be understood is written over
    settings: JsonObject = copy.deepcopy(file.settings)
    for written in (key, *(spelling for spelling, meant in SPELLINGS.items() if meant == key)):
        settings.pop(written, None)
    *above, leaf = key.split(".")
    node = settings
    for group in above:
        below: Any = node.setdefault(group, {})
        if not isinstance(below, dict):
            what = f"`{group}` is a group of settings, not a value"
            raise refusal((Problem(str(file.path), file.line(group), what, "Mend the line."),))
        node = cast("JsonObject", below)
    node[leaf] = value
    return settings
