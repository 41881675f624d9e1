"""Line numbers of tables and keys in ticket files, so that every problem names its line (SWM-05)."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

KeyPath = tuple[str | int, ...]
_TABLE = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\" ]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=(.*)$")


class Locator:
    """Lines (from 1) by key path; an unknown path gives the line of its nearest known parent."""

    def __init__(self, lines: Mapping[KeyPath, int]) -> None:
        self._lines = dict(lines)

    def line(self, path: KeyPath) -> int:
        """The line of ``path``, else of the longest prefix of it that is known, else 1."""
        for length in range(len(path), 0, -1):
            found = self._lines.get(path[:length])
            if found is not None:
                return found
        return 1


def toml_lines(text: str) -> Locator:
    """Lines of a TOML text. Multi-line strings are passed over; keys inside inline tables take their parent's line."""
    lines: dict[KeyPath, int] = {}
    counts: dict[str, int] = {}
    prefix: KeyPath = ()
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if fence:
            fence = "" if fence in line else fence
            continue
        if table := _TABLE.match(line):
            prefix = _table_path(table, counts)
            lines.setdefault(prefix, number)
        elif key := _KEY.match(line):
            parts = tuple(part.strip().strip("\"'") for part in key.group(1).split("."))
            for length in range(1, len(parts) + 1):
                lines.setdefault((*prefix, *parts[:length]), number)
            fence = _opened(key.group(2))
    return Locator(lines)


def _table_path(match: re.Match[str], counts: dict[str, int]) -> KeyPath:
    name = match.group(2).replace(" ", "").replace('"', "")
    if match.group(1) == "[[":
        counts[name] = counts.get(name, -1) + 1
        return (name, counts[name])
    parts = name.split(".")
    if parts[0] in counts:
        return (parts[0], counts[parts[0]], *parts[1:])
    return tuple(parts)


def _opened(rest: str) -> str:
    for fence in ('"""', "'''"):
        if rest.count(fence) % 2 == 1:
            return fence
    return ""


def node_lines(root: yaml.Node | None) -> Locator:
    """Lines of a composed YAML (or JSON) document."""
    lines: dict[KeyPath, int] = {}
    todo: list[tuple[KeyPath, yaml.Node | None]] = [((), root)]
    while todo:
        path, node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*path, str(key.value))
                lines.setdefault(inner, key.start_mark.line + 1)
                todo.append((inner, value))
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                inner = (*path, index)
                lines.setdefault(inner, value.start_mark.line + 1)
                todo.append((inner, value))
    return Locator(lines)


def json_lines(text: str) -> Locator:
    """Lines of a JSON text: JSON is read as YAML for its marks; a text YAML cannot read (tabs) has no lines."""
    try:
        return node_lines(yaml.SafeLoader(text.replace("\t", " ")).get_single_node())
    except yaml.YAMLError:
        return Locator({})


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For ``json.loads``: a key given twice is an error instead of the last one winning."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise json.JSONDecodeError(f"the key {key!r} is given twice", "", 0)
        found[key] = value
    return found
