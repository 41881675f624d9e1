"""Argument schemas of MCP tools, made safe to send: local references resolved, roots wrapped, hopeless ones refused (X10)."""

import json
import re
from collections.abc import Callable
from typing import Any, cast

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject

MAX_CHARS = 60_000  # of one schema as JSON
_DEPTH = 16
_NODES = 4_000
_NOISE = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "$anchor", "x-mcp-header"})
_NOTHING: JsonObject = {}
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")  # of a property, as the strictest provider wants it


def normalise(raw: Any) -> JsonObject:
    """A schema of type object, without references, that every provider takes.

    A reference into the schema itself is replaced by what it names; one that is met inside itself, or deeper than 16 levels,
    accepts anything. A root of ``anyOf``/``oneOf``/``allOf`` becomes one open object with all their properties. Keywords with
    values that providers refuse are left out.

    Raises:
        OpenDevError: tool - the schema is none, is not one of an object, or is too large: the tool is quarantined.
    """
    if not isinstance(raw, dict):
        raise _bad("it is no JSON object")
    root = cast("JsonObject", raw)
    kind: Any = root.get("type", "object")
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if "object" not in kinds:
        raise _bad(f"its root is of type {str(kinds)[:40]}, and arguments are an object")
    try:
        clean = _Resolver(root).resolve(root, ())
        text = json.dumps(clean, sort_keys=True, allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise _bad(f"it cannot be read ({type(error).__name__})") from error
    if len(text) > MAX_CHARS:
        raise _bad(f"it has {len(text):,} characters, more than {MAX_CHARS:,}")
    schema = cast("JsonObject", json.loads(text))
    return _root(schema)


def _root(schema: JsonObject) -> JsonObject:
    """The schema as an open object; properties of its alternatives become properties, those of all its parts required too."""
    shown, needed = _parts(schema)
    for key in ("allOf", "anyOf", "oneOf"):
        for part in cast("list[JsonObject]", schema.get(key, [])):
            more, also = _parts(part)
            shown = {**more, **shown}
            needed += also if key == "allOf" else []
    if unsayable := [name for name in needed if not _NAME.fullmatch(name)]:
        raise _bad(f"it requires an argument that no provider takes: {unsayable[0][:40]!r}")
    kept = {
        key: value
        for key, value in schema.items()
        if key not in ("anyOf", "oneOf", "allOf", "not", "enum", "title")
    }
    required = [name for name in dict.fromkeys(needed) if name in shown]
    return {"additionalProperties": True, **kept, "type": "object", "properties": shown, "required": required}


def _parts(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    properties = cast("JsonObject", schema.get("properties", {}))
    return {k: v for k, v in properties.items() if isinstance(v, dict)}, list(schema.get("required", []))


class _Resolver:
    """Replaces references; counts nodes, so that a schema that names itself twice cannot grow without end."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _NODES

    def resolve(self, node: Any, inside: tuple[str, ...], depth: int = 0, *, names: bool = False) -> Any:
        """``inside`` are the references that led here; ``names`` = the keys are property names."""
        self._left -= 1
        if isinstance(node, list):
            return [self.resolve(item, inside, depth + 1) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        if self._left < 0 or depth > _DEPTH:
            return {}
        found = cast("JsonObject", node)
        reference = found.get("$ref")
        if not names and isinstance(reference, str):
            if reference in inside:
                return {}
            target = self._target(reference)
            rest = {key: value for key, value in found.items() if key != "$ref"}
            return self.resolve({**target, **rest}, (*inside, reference), depth + 1)
        clean = {
            key: self.resolve(value, inside, depth + 1, names=key == "properties" and not names)
            for key, value in found.items()
            if (_NAME.fullmatch(key) if names else key not in _NOISE)
        }
        return clean if names else _mended(clean)

    def _target(self, reference: str) -> JsonObject:
        """What ``#/a/b`` names; an empty schema for anything else: nothing is fetched."""
        if not reference.startswith("#"):
            return _NOTHING
        node: Any = self._root
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = cast("JsonObject", node).get(key) if isinstance(node, dict) else None
        return cast("JsonObject", node) if isinstance(node, dict) else _NOTHING


def _mended(node: JsonObject) -> JsonObject:
    """One schema without the keywords that providers would refuse the whole request for; the rest of it still helps."""
    kept = {key: value for key, value in node.items() if key not in _SHAPES or _SHAPES[key](value)}
    values: list[Any] = kept.get("enum", [])
    if values and "type" in kept and all(isinstance(value, str) for value in values):
        kept["type"] = "string"  # they refuse ``enum`` on ``null``
    kind: Any = kept.get("type")
    if kind == "array" or "array" in _listed(kind):
        kept.setdefault("items", {})
    return kept


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _is_type(value: Any) -> bool:
    kinds = _listed(value) or [value]
    return all(isinstance(one, str) and one in _TYPES for one in kinds)


def _is_pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except (re.error, RecursionError, OverflowError):
        return False


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _are_schemas(value: Any) -> bool:
    return _listed(value) != [] and all(isinstance(one, dict) for one in _listed(value))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in _listed(value))


# What a keyword's value must look like; a keyword with another value is left out.
_SHAPES: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: _listed(value) != [],
    "properties": lambda value: isinstance(value, dict),
    "required": _are_texts,
    "pattern": _is_pattern,
    **dict.fromkeys(("items", "additionalProperties", "not", "contains", "propertyNames"), _is_schema),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _are_schemas),
    **dict.fromkeys(("description", "title", "format"), lambda value: isinstance(value, str)),
}


def _bad(why: str) -> OpenDevError:
    return OpenDevError(ErrorKind.TOOL, f"its schema is unusable: {why}")
