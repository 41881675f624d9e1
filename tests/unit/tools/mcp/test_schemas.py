"""Schemas of MCP tools: mended, or refused, never sent broken (X10)."""

import json
from typing import Any

import pytest
from opendev.core.errors import OpenDevError
from opendev.tools.mcp.schemas import MAX_CHARS, normalise


@pytest.mark.parametrize("raw", [{"type": "string"}, None, [], "x", {"type": ["string", "null"]}])
def test_what_is_no_schema_of_an_object_is_refused(raw: Any) -> None:
    with pytest.raises(OpenDevError):
        normalise(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"anyOf": [{"type": "object"}]},
        {"$ref": "#"},
        {"type": "object", "properties": None, "required": [3, "gone"]},
        {"type": ["object", "null"]},
    ],
)
def test_a_root_is_an_object(raw: Any) -> None:
    found = normalise(raw)
    assert found["type"] == "object"
    assert found["properties"] == {}
    assert found["required"] == []
    assert "$ref" not in json.dumps(found)


def test_local_references_are_filled_in() -> None:
    raw = {"type": "object", "properties": {"f": {"$ref": "#/$defs/F"}}, "$defs": {"F": {"enum": ["a"]}}}
    assert normalise(raw)["properties"] == {"f": {"enum": ["a"]}}


def test_a_reference_to_itself_or_to_elsewhere_accepts_anything() -> None:
    raw = {"type": "object", "properties": {"self": {"$ref": "#"}, "far": {"$ref": "http://evil.test/s"}}}
    assert normalise(raw)["properties"]["far"] == {}
    assert "$ref" not in json.dumps(normalise(raw))


def test_branching_recursion_ends_and_stays_small() -> None:
    node: Any = {"type": "object", "properties": {f"p{n}": {"$ref": f"#/$defs/N{n}"} for n in range(8)}}
    raw = {**node, "$defs": {f"N{n}": node for n in range(8)}}
    assert len(json.dumps(normalise(raw))) < MAX_CHARS


def test_a_type_that_contradicts_its_values_is_mended() -> None:
    raw = {"type": "object", "properties": {"x": {"enum": ["A"], "type": "null"}}}
    assert normalise(raw)["properties"]["x"] == {"enum": ["A"], "type": "string"}


def test_a_property_may_be_called_like_a_keyword() -> None:
    raw = {
        "type": "object",
        "properties": {"properties": {"type": "string"}, "enum": {"type": "string"}, "type": {}},
    }
    assert set(normalise(raw)["properties"]) == {"properties", "enum", "type"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"type": "wrong"}, {}),
        ({"type": ["string", 5]}, {}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": []}, {}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array", "items": {}}),
        ({"type": "object", "additionalProperties": "x"}, {"type": "object"}),
        ({"type": "object", "required": "a", "properties": [1]}, {"type": "object"}),
        ({"type": "string", "pattern": "(?<x>"}, {"type": "string"}),
        ({"anyOf": []}, {}),
        ({"anyOf": ["x"], "description": 5}, {}),
        ({"const": 1, "default": [1]}, {"const": 1, "default": [1]}),
    ],
)
def test_a_keyword_that_providers_refuse_is_left_out(given: Any, sent: Any) -> None:
    assert normalise({"type": "object", "properties": {"a": given}})["properties"] == {"a": sent}


def test_an_argument_whose_name_no_provider_takes_is_left_out_or_costs_the_tool() -> None:
    raw: Any = {"type": "object", "properties": {"$a b": {}, "r\u00e9": {}, "ok": {}}}
    assert set(normalise(raw)["properties"]) == {"ok"}
    with pytest.raises(OpenDevError, match="no provider"):
        normalise({**raw, "required": ["$a b"]})


def test_alternatives_of_the_root_become_its_properties() -> None:
    one: Any = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    other: Any = {"type": "object", "properties": {"b": {}}, "required": ["b"]}
    assert set(normalise({"oneOf": [one, other]})["properties"]) == {"a", "b"}
    assert normalise({"oneOf": [one, other]})["required"] == []
    assert normalise({"allOf": [one, other]})["required"] == ["a", "b"]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(OpenDevError):
        normalise({"type": "object", "properties": {"a": {"default": float("nan")}}})


def test_a_huge_schema_is_refused() -> None:
    raw = {"type": "object", "properties": {"x": {"description": "y" * MAX_CHARS}}}
    with pytest.raises(OpenDevError, match="characters"):
        normalise(raw)
