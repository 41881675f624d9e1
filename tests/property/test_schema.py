"""Arguments of any shape: a valid value of the schema's type, or a readable refusal, and never anything else (SAF-05)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.errors import OpenDevError
from opendev.core.tool import Tool
from opendev.tools.catalog import BUILTIN, RECIPE
from opendev.tools.registry import ToolRegistry
from opendev.tools.schema import card, dump_args, parse_args

TOOLS = st.sampled_from((*BUILTIN, *RECIPE))
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["1", "true", "[]", "{}", "null", "\ud800"]),
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _parsed(tool: Tool[Any], raw: dict[str, Any]) -> Any:
    try:
        return parse_args(tool, raw)
    except OpenDevError as error:
        return error.info.model_dump_json()


@pytest.mark.slow
@pytest.mark.req("SAF-05")
@settings(max_examples=300, deadline=None)
@given(data=st.data(), tool=TOOLS)
def test_hostile_arguments(data: st.DataObject, tool: Tool[Any]) -> None:
    keys = st.one_of(st.sampled_from([*tool.args.model_fields, *tool.aliases, "x"]), st.text(max_size=6))
    raw = data.draw(st.dictionaries(keys, VALUE, max_size=5))
    args = _parsed(tool, raw)
    if isinstance(args, str):
        assert tool.name in args
        return
    assert isinstance(args, tool.args)
    dumped = json.loads(json.dumps(dump_args(args)))
    assert tool.args.model_validate(dumped) == args  # what a person approves is what runs
    assert tool.name in card(tool, args)


@given(
    number=st.integers(-(10**12), 10**12), flag=st.booleans(), words=st.lists(st.text(max_size=5), max_size=4)
)
def test_values_sent_as_text_are_the_same_values(number: int, flag: bool, words: list[str]) -> None:
    spawn = next(tool for tool in BUILTIN if tool.name == "spawn_subagent")
    base = {"agent": "a", "prompt": "p"}
    assert parse_args(spawn, base | {"background": str(flag)}) == parse_args(
        spawn, base | {"background": flag}
    )
    todos = next(tool for tool in BUILTIN if tool.name == "write_todos")
    assert parse_args(todos, {"todos": json.dumps(words)}) == parse_args(todos, {"todos": words})
    kept = parse_args(spawn, {"agent": "a", "prompt": str(number) or "0"})
    assert dump_args(kept)["prompt"] == str(number)


@given(st.text(max_size=40))
def test_any_tool_name_is_a_tool_or_a_sentence(name: str) -> None:
    registry = ToolRegistry(BUILTIN)
    found = registry.resolve(name)
    assert found in BUILTIN if isinstance(found, Tool) else found.sentence()
