"""Everything that derives from a tool's ``Args``: JSON schema, argument coercion and validation, approval card (REG-07)."""

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject
from ..core.tool import A, Tool
from ..policy.shell import parts
from ..policy.visible import visible

_CARD_VALUE = 20_000  # characters of one argument on an approval card
_JSON_TYPES: tuple[tuple[type, frozenset[str]], ...] = (
    (bool, frozenset({"boolean"})),  # before int: a boolean is an int in Python
    (int, frozenset({"integer", "number"})),
    (float, frozenset({"integer", "number"})),
    (list, frozenset({"array"})),
    (dict, frozenset({"object"})),
    (str, frozenset()),
    (type(None), frozenset({"null"})),
)
_NOISE = ("title", "additionalProperties", "$defs")
_UNSENT = (
    "minLength",
    "maxLength",
    "exclusiveMinimum",
)  # checked when a call comes; a model gains nothing by them
_NOTHING: JsonObject = {}
_DEPTH = 20


def schema_of(tool: Tool[Any]) -> JsonObject:
    """The JSON schema of the tool's arguments, keys sorted, references inlined, without generated titles.

    Equal ``Args`` give equal bytes; some providers refuse ``$ref``.
    """
    raw = tool.args.model_json_schema()
    schema = cast("JsonObject", _clean(raw, cast("JsonObject", raw.get("$defs", {})), names=False))
    schema.pop("description", None)  # the docstring of Args is for developers
    schema.setdefault("properties", {})
    return cast("JsonObject", json.loads(json.dumps({**schema, "type": "object"}, sort_keys=True)))


def lean(schema: JsonObject) -> JsonObject:
    """``schema`` as it is sent: every name, type, choice and description, without bounds of text, empty defaults and ``null`` (PRM-13).

    What is left out is checked by ``parse_args`` all the same, and a refused call says what is expected.
    """
    return cast("JsonObject", _lean(schema, names=False))


def _lean(node: Any, *, names: bool) -> Any:
    if isinstance(node, list):
        return [_lean(item, names=False) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    found = cast("JsonObject", node)
    if not names:
        options = cast("list[JsonObject]", found.get("anyOf", []))
        kept = [option for option in options if option.get("type") != "null"]
        if len(kept) == 1:
            found = {**kept[0], **{key: value for key, value in found.items() if key != "anyOf"}}
    return {
        key: _lean(value, names=key == "properties" and not names)
        for key, value in found.items()
        if names or (key not in _UNSENT and (key != "default" or value))
    }


def parse_args(tool: Tool[A], raw: Mapping[str, Any]) -> A:
    """The arguments of one call: aliases resolved, values coerced by the schema, validated (M10, SAF-05).

    Coercion turns text into the number, boolean, list or object that the schema asks for, and leaves text alone where
    text is asked for. What the gate, a person and the tool see is this one value.

    Raises:
        OpenDevError: ``TOOL``, naming each wrong argument and what is expected.
    """
    schema = tool.args.model_json_schema()
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    definitions = cast("JsonObject", schema.get("$defs", {}))
    required = set(cast("list[str]", schema.get("required", [])))
    named = _rename(tool, raw, properties, loose=bool(schema.get("additionalProperties", True)))
    values: JsonObject = {}
    for name, value in named.items():
        wanted = properties.get(name, {})
        coerced = _coerce(value, wanted, definitions)
        if coerced is None and name not in required and not _accepts(wanted, "null"):
            continue  # models send null for "not given"
        values[name] = coerced
    _check_text(tool, values)
    try:
        return tool.args.model_validate(values)
    except ValidationError as error:
        raise _bad(tool, _explain(error)) from error
    except RecursionError as error:
        raise _bad(tool, "they are nested too deeply") from error


def dump_args(args: Frozen) -> JsonObject:
    """The arguments as plain JSON: what an approval is bound to."""
    return args.model_dump(mode="json", by_alias=True)


def card(tool: Tool[Any], args: Frozen) -> str:
    """What a person is shown: the tool and every argument in full (up to 20,000 characters each), but not what is unset.

    A command line of several simple commands is followed by one line for each of them (S42). What could hide or pretend in it
    is written out: control, bidirectional and invisible characters.
    """
    lines = [tool.name, *([f"what its server says of it: {tool.description}"] if tool.description else [])]
    given = args.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for name, value in dump_args(args).items():
        if value in (None, "", False) and name not in given:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > _CARD_VALUE:
            text = f"{text[:_CARD_VALUE]}\n… ({len(text) - _CARD_VALUE:,} more characters are not shown)"
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")
        if name == "command" and isinstance(value, str):
            pieces = parts(value)
            lines.extend(f"  {number}. {piece}" for number, piece in enumerate(pieces, 1) if len(pieces) > 1)
    return visible("\n".join(lines))


def card_shape(tool: Tool[Any]) -> str:
    """What ``card`` shows of any call: a line an argument, in brackets when one that is not set is left out."""
    fields = tool.args.model_fields.items()
    lines = [
        (field.serialization_alias or field.alias or name, field.is_required()) for name, field in fields
    ]
    return "\n".join([tool.name, *(f"{name}: …" if needed else f"[{name}: …]" for name, needed in lines)])


def _clean(node: Any, definitions: JsonObject, *, names: bool, depth: int = 0) -> Any:
    """The schema without noise; ``names`` = the keys are property names, which stay whatever they are called."""
    if isinstance(node, list):
        return [_clean(item, definitions, names=False, depth=depth) for item in cast("list[Any]", node)]
    if not isinstance(node, dict) or depth > _DEPTH:
        return node if not isinstance(node, dict) else {}
    found = cast("JsonObject", node)
    if not names and "$ref" in found:
        target = cast("JsonObject", definitions.get(str(found["$ref"]).rsplit("/", 1)[-1], {}))
        inlined = {key: value for key, value in target.items() if key != "description"}  # a docstring
        found = {**inlined, **{key: value for key, value in found.items() if key != "$ref"}}
    return {
        key: _clean(value, definitions, names=key == "properties" and not names, depth=depth + 1)
        for key, value in found.items()
        if names or key not in _NOISE
    }


def _rename(
    tool: Tool[Any], raw: Mapping[str, Any], properties: Mapping[str, Any], *, loose: bool
) -> JsonObject:
    """Aliases and other spellings (``filePath``, ``file-path``) become the schema's names; a conflict is an error.

    An unknown name too, unless the schema is ``loose``: it allows names that it does not list (an MCP server's may).
    """
    folded = {_fold(name): name for name in properties}
    result: JsonObject = {}
    for key, value in raw.items():
        name = key if key in properties else tool.aliases.get(key) or folded.get(_fold(key), key)
        if name in result and result[name] != value:
            raise _bad(tool, f"`{name}` is given twice with different values (once as `{key}`)")
        result[name] = value
    unknown = sorted(set(result) - set(properties))
    if unknown and not loose:
        known = ", ".join(f"`{name}`" for name in properties) or "none"
        raise _bad(
            tool, f"unknown argument {', '.join(f'`{n[:80]}`' for n in unknown[:10])}; known are: {known}"
        )
    return result


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _types(wanted: JsonObject, definitions: JsonObject) -> tuple[JsonObject, ...]:
    """The alternatives of a schema node, references resolved one level."""
    if "$ref" in wanted:
        target = str(wanted["$ref"]).rsplit("/", 1)[-1]
        return (cast("JsonObject", definitions.get(target, {})),)
    options = cast("list[JsonObject]", wanted.get("anyOf") or wanted.get("oneOf") or [wanted])
    return tuple(
        item
        if "$ref" not in item
        else cast("JsonObject", definitions.get(str(item["$ref"]).rsplit("/", 1)[-1], {}))
        for item in options
    )


def _accepts(wanted: JsonObject, kind: str) -> bool:
    return any(item.get("type") == kind for item in _types(wanted, {}))


def _coerce(value: Any, wanted: JsonObject, definitions: JsonObject, depth: int = 0) -> Any:
    options = _types(wanted, definitions)
    kinds = {str(item.get("type", "")) for item in options}
    if depth > _DEPTH or ("string" in kinds and isinstance(value, str)) or not kinds - {""}:
        return value
    if isinstance(value, str):
        value = _from_text(value, kinds)
    elif "string" in kinds and not isinstance(value, bool) and isinstance(value, int | float):
        return value if kinds & {"integer", "number"} else str(value)
    if isinstance(value, list):
        items = next(
            (cast("JsonObject", o.get("items", _NOTHING)) for o in options if o.get("type") == "array"),
            _NOTHING,
        )
        return [_coerce(item, items, definitions, depth + 1) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        inner = next((o for o in options if "properties" in o), _NOTHING)
        fields = cast("dict[str, JsonObject]", inner.get("properties", {}))
        found = cast("JsonObject", value)
        return {k: _coerce(v, fields.get(k, {}), definitions, depth + 1) for k, v in found.items()}
    return value


def _from_text(text: str, kinds: set[str]) -> Any:
    """The JSON value that ``text`` spells, when its type is one that is asked for; else the text, for validation to refuse."""
    try:
        value: Any = json.loads(
            text.strip().lower() if kinds & {"boolean", "null"} else text, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        return text
    wanted = next(names for kind, names in _JSON_TYPES if isinstance(value, kind))
    return value if kinds & wanted else text


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _check_text(tool: Tool[Any], values: JsonObject) -> None:
    """Lone surrogates cannot be written, hashed or sent; a boolean is no number although Python says so."""
    properties = cast("dict[str, JsonObject]", tool.args.model_json_schema().get("properties", {}))
    for name, value in values.items():
        if isinstance(value, bool) and properties.get(name, {}).get("type") in ("integer", "number"):
            raise _bad(tool, f"`{name}` must be a number, not {str(value).lower()}")
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError) as error:
        raise _bad(tool, f"they hold text that is not valid Unicode ({type(error).__name__})") from error


def _explain(error: ValidationError) -> str:
    wrong = [
        f"`{'.'.join(str(part) for part in item['loc']) or 'arguments'}`: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors(include_url=False, include_input=False)[:8]
    ]
    return "; ".join(wrong)


def _bad(tool: Tool[Any], why: str) -> OpenDevError:
    return OpenDevError(
        ErrorKind.TOOL,
        f"The arguments of {tool.name} are wrong: {why}.",
        "The tool did not run. Call it again with arguments that fit its schema.",
    )
