"""Argument schemas of MCP tools, made safe to send: local references resolved, roots wrapped, hopeless ones refused (X10)."""

import json
from typing import Any, cast

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject

MAX_CHARS = 60_000  # of one schema as JSON
_DEPTH = 16
_NODES = 4_000
_NOISE = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "$anchor", "x-mcp-header"})
_NOTHING: JsonObject = {}


def normalise(raw: Any) -> JsonObject:
    """A schema of type object, without references, that every provider takes.

    A reference into the schema itself is replaced by what it names; one that is met inside itself, or deeper than 16 levels,
    accepts anything. A root that is only ``anyOf``/``oneOf``/``allOf`` of objects becomes an open object.

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
        text = json.dumps(clean, sort_keys=True)
    except (RecursionError, TypeError, ValueError) as error:
        raise _bad(f"it cannot be read ({type(error).__name__})") from error
    if len(text) > MAX_CHARS:
        raise _bad(f"it has {len(text):,} characters, more than {MAX_CHARS:,}")
    schema = cast("JsonObject", json.loads(text))
    return _root(schema)


def _root(schema: JsonObject) -> JsonObject:
    properties: Any = schema.get("properties")
    required: Any = schema.get("required")
    kept = {
        key: value
        for key, value in schema.items()
        if key not in ("anyOf", "oneOf", "allOf", "not", "enum", "title")
    }
    shown = cast("JsonObject", properties) if isinstance(properties, dict) else {}
    names = (
        [name for name in cast("list[Any]", required) if name in shown] if isinstance(required, list) else []
    )
    kept |= {
        "type": "object",
        "properties": {k: v for k, v in shown.items() if isinstance(v, dict)},
        "required": names,
    }
    kept.setdefault("additionalProperties", True)
    return kept


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
        return {
            key: self.resolve(value, inside, depth + 1, names=key == "properties" and not names)
            for key, value in found.items()
            if names or key not in _NOISE
        } | ({} if names else _typed(found))

    def _target(self, reference: str) -> JsonObject:
        """What ``#/a/b`` names; an empty schema for anything else: nothing is fetched."""
        if not reference.startswith("#"):
            return _NOTHING
        node: Any = self._root
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = cast("JsonObject", node).get(key) if isinstance(node, dict) else None
        return cast("JsonObject", node) if isinstance(node, dict) else _NOTHING


def _typed(node: JsonObject) -> JsonObject:
    """A type that contradicts the values beside it is dropped: providers refuse ``enum`` on ``null``."""
    values: Any = node.get("enum")
    if not isinstance(values, list) or "type" not in node:
        return {}
    texts = all(isinstance(value, str) for value in cast("list[Any]", values))
    return {"type": "string"} if texts else {}


def _bad(why: str) -> OpenDevError:
    return OpenDevError(ErrorKind.TOOL, f"its schema is unusable: {why}")
