"""What is published of the settings is what the code takes: schema, table, meanings (CFG-01, ARC-08)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from opendev.configs.environment import Environment
from opendev.configs.load import Files, resolve
from opendev.configs.published import meanings, settings_schema, settings_table
from opendev.configs.schema import SPELLINGS, groups, leaf_keys
from opendev.configs.settings_file import parse_settings

DOCS = Path(__file__).resolve().parents[3] / "docs"
EMPTY = parse_settings(Path("none"), b"")
CHECK = Draft202012Validator(settings_schema())


def problems(settings: dict[str, Any]) -> list[str]:
    file = parse_settings(Path("s.json"), json.dumps(settings).encode())
    found = resolve(Files(file, EMPTY), Environment({"OPENDEV_HOME": "/none"}))
    return [problem.what for problem in found.problems]


def faults(settings: dict[str, Any]) -> list[str]:
    return [error.message for error in CHECK.iter_errors(settings)]  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.req("CFG-01", "ARC-08")
def test_every_setting_has_a_meaning_and_stands_in_the_documents() -> None:
    assert [key for key in (*leaf_keys(), *groups()) if not meanings().get(key)] == []
    page = (DOCS / "configuration.md").read_text()
    assert page.endswith(settings_table()), "run scripts/settings-pages"
    assert [key for key in (*leaf_keys(), *SPELLINGS) if f"`{key}`" not in page] == []


def test_the_schema_is_that_of_the_code() -> None:
    assert json.loads((DOCS / "settings.schema.json").read_text()) == settings_schema(), (
        "run scripts/settings-pages"
    )
    Draft202012Validator.check_schema(settings_schema())


GOOD: tuple[dict[str, Any], ...] = (
    {},
    {"$schema": "https://example.org/x.json", "model": "a/b", "temperature": 1},
    {"thinking_model": "a/b", "web_search_provider": "bing", "thinking_provider": "x"},
    {"agents": {"max_depth": 2}, "context": {"thresholds": [0.1, 0.2, 0.3, 0.4, 0.5]}},
    {"prices": {"a/b": {"input": 1, "output": 2}}, "mcp_servers": {"x": {"command": "y"}}},
    {"hooks": {"PreToolUse": [{"matcher": "edit", "hooks": [{"command": "x", "timeout": 3}]}]}},
    {"max_context_tokens": None, "blocked_commands": ["x"], "approval": "manual"},
)
BAD: tuple[dict[str, Any], ...] = (
    {"modle": "a/b"},
    {"agents": {"max_dept": 2}},
    {"agents": 5},
    {"agents": {"max_depth": 9}},
    {"agents": {"max_depth": True}},
    {"temperature": "warm"},
    {"approval": "yolo"},
    {"blocked_commands": "x"},
    {"context": {"thresholds": [0.1]}},
    {"prices": {"a/b": {"input": -1, "output": 2}}},
    {"mcp_servers": []},
    {"hooks": {"PreToolUse": [{"hooks": [{"command": ""}]}]}},
)


@pytest.mark.parametrize("settings", GOOD)
def test_an_editor_accepts_what_counts(settings: dict[str, Any]) -> None:
    assert (faults(settings), problems(settings)) == ([], [])


@pytest.mark.parametrize("settings", BAD)
def test_an_editor_marks_what_is_refused(settings: dict[str, Any]) -> None:
    assert faults(settings)
    assert problems(settings)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 200)
    | st.floats(0, 2)
    | st.text(max_size=3)
    | st.lists(st.text(max_size=3), max_size=2)
)


@given(st.dictionaries(st.sampled_from(leaf_keys()), VALUES, min_size=1, max_size=3))
def test_what_the_schema_accepts_is_loaded(flat: dict[str, Any]) -> None:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *above, leaf = key.split(".")
        node = tree
        for group in above:
            node = node.setdefault(group, {})
        node[leaf] = value
    if not faults(tree):
        assert problems(tree) == []
