"""Schemas, coercion and validation of arguments, approval cards (REG-07, SAF-05, M10)."""

import json
from typing import Any

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.model import Frozen
from opendev.core.tool import Tool, ToolContext, ToolResult
from opendev.tools.catalog import BUILTIN, RECIPE
from opendev.tools.registry import CORE, ToolRegistry
from opendev.tools.schema import card, dump_args, lean, parse_args, schema_of
from opendev.tools.write_todos import TOOL as WRITE_TODOS
from pydantic import Field


class Inner(Frozen):
    n: int = 0
    name: str = ""


class Args(Frozen):
    limit: int = 10
    ratio: float = 1.0
    paths: tuple[str, ...] = ()
    opts: dict[str, Any] = Field(default_factory=dict[str, Any])
    text: str = ""
    all: bool = False
    maybe: int | None = None
    inner: Inner = Inner()
    title: str = ""


class Needs(Frozen):
    file_path: str
    count: int = 1


async def _run(_args: Any, _ctx: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text="")


TOOL: Tool[Args] = Tool(name="t", category="x", args=Args, run=_run)
NEEDS: Tool[Needs] = Tool(name="n", category="x", args=Needs, run=_run, aliases={"path": "file_path"})


@pytest.mark.req("REG-07")
def test_text_becomes_what_the_schema_asks_for() -> None:
    raw = {"limit": "200", "paths": '["a","b"]', "opts": '{"x":1}', "text": "[1,2]", "all": "false"}
    args = parse_args(TOOL, raw)
    assert dump_args(args) == {
        **dump_args(Args()), "limit": 200, "paths": ["a", "b"], "opts": {"x": 1}, "text": "[1,2]", "all": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({"ratio": "2.5"}, "ratio", 2.5),
        ({"limit": " 7 "}, "limit", 7),
        ({"limit": 7.0}, "limit", 7),
        ({"all": "True"}, "all", True),
        ({"maybe": "5"}, "maybe", 5),
        ({"maybe": "null"}, "maybe", None),
        ({"maybe": None}, "maybe", None),
        ({"limit": None}, "limit", 10),
        ({"text": 5}, "text", "5"),
        ({"text": "true"}, "text", "true"),
        ({"inner": '{"n": "3", "name": "[x]"}'}, "inner", Inner(n=3, name="[x]")),
        ({"paths": [1, 2]}, "paths", ("1", "2")),
        ({"title": "kept"}, "title", "kept"),
    ],
)
def test_coercion(raw: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(parse_args(TOOL, raw), field) == value


@pytest.mark.req("SAF-05")
@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"limit": "many"}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "NaN"}, "limit"),
        ({"limit": "9" * 6000}, "limit"),
        ({"limit": "[" * 50_000}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"text": {"a": 1}}, "text"),
        ({"text": True}, "text"),
        ({"text": None, "nope": 1}, "nope"),
        ({"text": "\ud800"}, "Unicode"),
        ({"opts": {"a": "\udfff"}}, "Unicode"),
        ({"paths": "a"}, "paths"),
        ({"": 1}, "unknown"),
    ],
)
def test_hostile_arguments_are_refused_with_a_reason(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(OpenDevError) as caught:
        parse_args(TOOL, raw)
    info = caught.value.info
    assert info.kind is ErrorKind.TOOL
    assert named in info.message
    assert "did not run" in info.hint
    assert len(info.message) < 2_000


@pytest.mark.req("REG-07")
@pytest.mark.parametrize("key", ["file_path", "path", "filePath", "file-path", "FilePath"])
def test_other_spellings_of_a_name(key: str) -> None:
    assert parse_args(NEEDS, {key: "a"}) == Needs(file_path="a")


def test_missing_and_double_arguments() -> None:
    with pytest.raises(OpenDevError, match="file_path"):
        parse_args(NEEDS, {})
    with pytest.raises(OpenDevError, match="twice"):
        parse_args(NEEDS, {"file_path": "a", "path": "b"})
    assert parse_args(NEEDS, {"file_path": "a", "path": "a"}) == Needs(file_path="a")
    with pytest.raises(OpenDevError, match="file_path"):
        parse_args(NEEDS, {"file_path": None})


@pytest.mark.req("REG-01")
@pytest.mark.parametrize("tool", [*BUILTIN, *RECIPE], ids=lambda tool: tool.name)
def test_every_tool_has_a_plain_schema(tool: Tool[Any]) -> None:
    schema = schema_of(tool)
    text = json.dumps(schema)
    assert schema["type"] == "object"
    assert set(schema["properties"]) == set(tool.args.model_fields)
    assert "$ref" not in text
    assert text == json.dumps(schema_of(tool))
    assert set(tool.aliases.values()) <= set(tool.args.model_fields)
    assert not set(tool.aliases) & set(tool.args.model_fields)


def test_a_property_may_be_called_title() -> None:
    assert schema_of(TOOL)["properties"]["title"] == {"default": "", "type": "string"}
    items = schema_of(WRITE_TODOS)["properties"]["todos"]["items"]["anyOf"]
    assert items[1]["properties"]["status"]["enum"] == ["todo", "doing", "done"]


def test_the_card_shows_everything_and_each_command() -> None:
    run = next(tool for tool in BUILTIN if tool.name == "run_command")
    args = parse_args(run, {"command": "rm -rf examples/build/*.cap 2>/dev/null\nrm -rf .\n"})
    shown = card(run, args)
    assert "run_command" in shown
    assert "  1. rm -rf examples/build/*.cap" in shown
    assert "  2. rm -rf ." in shown
    long = card(TOOL, Args(text="x" * 30_000))
    assert "10,000 more characters" in long
    assert len(long) < 21_000


@pytest.mark.parametrize("tool", [*BUILTIN, *RECIPE], ids=lambda tool: tool.name)
def test_what_is_sent_keeps_all_a_model_needs(tool: Tool[Any]) -> None:
    whole, sent = schema_of(tool), lean(schema_of(tool))
    assert sent.get("required") == whole.get("required")
    assert list(sent["properties"]) == list(whole["properties"])
    for name, field in whole["properties"].items():
        shown = sent["properties"][name]
        assert shown.get("description") == field.get("description")
        assert "enum" not in field or shown["enum"] == field["enum"]
        assert "type" not in field or shown["type"] == field["type"]
    text = json.dumps(sent)
    assert [word for word in ("null", "maxLength", "minLength") if word in text] == []


def test_a_property_may_be_called_default_and_a_default_that_says_something_stays() -> None:
    schema = {
        "type": "object",
        "properties": {
            "default": {"type": "string", "default": ""},
            "maxLength": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
            "lines": {"type": "integer", "default": 100},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        },
    }
    assert lean(schema)["properties"] == {
        "default": {"type": "string"},
        "maxLength": {"type": "integer", "minimum": 1},
        "lines": {"type": "integer", "default": 100},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    }


def test_the_catalogue_stays_small() -> None:
    """Every request carries it: 35 tools in less than 25 kB, the core of 16 in less than 15 (N-05)."""
    sizes = {
        t.name: len(json.dumps(t.model_dump(), separators=(",", ":")))
        for t in ToolRegistry(BUILTIN).schemas()
    }
    assert sum(sizes.values()) < 24_500
    assert sum(size for name, size in sizes.items() if name in CORE) < 14_500
