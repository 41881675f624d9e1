"""Changes one key of a settings file; the result must be valid before anything is written."""

import json
from pathlib import Path
from typing import Any

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from .load import read_settings, without_keys
from .schema import leaf_keys


def changed_settings(path: Path, key: str, text: str) -> tuple[bytes, Any]:
    """The new content of a settings file with ``key`` set to ``text`` (JSON, else a string), and the value. Writes nothing.

    Raises ``OpenDevError`` (usage) for an unknown key. The caller validates the whole configuration, then writes.
    """
    if key not in leaf_keys():
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no setting `{key}`.", "`opendev config show` lists the settings."
        )
    settings, _ = without_keys(read_settings(path))  # a key is never saved back (CFG-04)
    *groups, leaf = key.split(".")
    node: JsonObject = settings
    for group in groups:
        node = node.setdefault(group, {})
    node[leaf] = _value(text)
    return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode(), node[leaf]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
