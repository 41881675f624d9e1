"""Agent types as data: Catalogue A, custom agents, and what a child may hold (SUB-01, SUB-15, AGT-09)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.agents.specs import (
    SAFE_TOOLS,
    builtin_specs,
    custom_spec,
    effective,
    effective_budget,
    iteration_cap,
    missing_tools,
)
from opendev.core.agent import AgentSpec, Budget
from opendev.core.errors import OpenDevError
from opendev.tools.catalog import BUILTIN

REVIEW = {"read_file", "search", "list_files", "find_symbol", "find_referencing_symbols", "run_command"}
READ_ONLY_18 = {
    "read_file",
    "list_files",
    "search",
    "list_processes",
    "get_process_output",
    "fetch_url",
    "web_search",
    "capture_web_screenshot",
    "open_browser",
    "find_symbol",
    "find_referencing_symbols",
    "capture_screenshot",
    "analyze_image",
    "read_pdf",
    "ask_user",
    "search_tools",
    "get_subagent_output",
    "invoke_skill",
}
CATALOGUE_A: dict[str, Iterable[str]] = {
    "Code-Explorer": REVIEW - {"run_command"},
    "Planner": READ_ONLY_18 | {"write_file", "edit_file", "spawn_subagent", "task_complete"},
    "PR-Reviewer": REVIEW,
    "Security-Reviewer": REVIEW,
    "Web-Clone": [
        "capture_web_screenshot",
        "analyze_image",
        "write_file",
        "read_file",
        "run_command",
        "list_files",
    ],
    "Web-Generator": ["write_file", "edit_file", "run_command", "list_files", "read_file"],
    "Project-Init": ["read_file", "search", "list_files", "run_command", "write_file"],
    "Ask-User": (),
    "Coder": [
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search",
        "run_command",
        "find_symbol",
        "rename_symbol",
        "task_complete",
    ],
}


@pytest.mark.req("SUB-01")
def test_the_types_have_exactly_the_tools_of_catalogue_a() -> None:
    specs = builtin_specs()
    assert {name: set(spec.tools or ()) for name, spec in specs.items() if spec.tools is not None} == {
        name: set(tools) for name, tools in CATALOGUE_A.items()
    }
    assert set(specs) - set(CATALOGUE_A) == {"Main"}
    assert len(specs["Planner"].tools or ()) == 22
    writers = {name for name, spec in specs.items() if spec.writes}
    assert writers == {"Main", "Coder", "Web-Clone", "Web-Generator", "Project-Init"}
    assert [name for name, spec in specs.items() if not spec.calls_model] == ["Ask-User"]


def test_tools_that_do_not_exist_are_named() -> None:
    names = [tool.name for tool in BUILTIN]
    assert missing_tools(builtin_specs()["Coder"], names) == ()
    assert missing_tools(AgentSpec(name="x", description="", tools=("teleport",)), names) == ("teleport",)
    assert missing_tools(builtin_specs()["Main"], names) == ()


@pytest.mark.req("SUB-05")
def test_iteration_caps_by_type() -> None:  # C-02
    specs = builtin_specs()
    caps = {name: iteration_cap(spec, 100, 15) for name, spec in specs.items()}
    assert {name for name, cap in caps.items() if cap == 15} == {
        "Code-Explorer",
        "PR-Reviewer",
        "Security-Reviewer",
        "Ask-User",
    }
    assert iteration_cap(specs["Coder"].model_copy(update={"max_iterations": 7}), 100, 15) == 7


@pytest.mark.req("AGT-10")
@pytest.mark.req("SUB-15")
def test_a_custom_agent_is_compiled_by_the_same_rules() -> None:
    spec = custom_spec({"name": "Doc", "description": "writes docs", "system_prompt": "You write docs."})
    assert spec.tools == SAFE_TOOLS
    assert not spec.builtin
    assert custom_spec(
        {
            "name": "T",
            "description": "",
            "system_prompt": "x",
            "tools": ["read_file", "write_todos"],
            "model": "a/b",
        }
    ).tools == ("read_file",)
    with pytest.raises(OpenDevError, match="built in"):
        custom_spec({"name": "Coder", "description": "", "system_prompt": "x"})


tools = st.none() | st.lists(st.sampled_from("abcdef"), unique=True).map(tuple)
caps = st.none() | st.integers(1, 50)
specs = st.builds(
    AgentSpec,
    name=st.just("n"),
    description=st.just(""),
    tools=tools,
    writes=st.booleans(),
    max_iterations=caps,
)
budgets = st.builds(
    Budget,
    max_cost_usd=st.none() | st.floats(0.1, 9),
    max_tokens=caps,
    max_iterations=caps,
    timeout_s=st.none() | st.floats(1, 9),
)


@given(parent=specs, child=specs)
def test_a_child_never_holds_what_its_parent_lacks(parent: AgentSpec, child: AgentSpec) -> None:
    result = effective(parent, child)
    if parent.tools is not None:
        assert result.tools is not None
        assert set(result.tools) <= set(parent.tools)
    if child.tools is not None:
        assert set(result.tools or ()) <= set(child.tools)
    assert result.writes <= (parent.writes and child.writes)
    if parent.max_iterations is not None:
        assert result.max_iterations is not None
        assert result.max_iterations <= parent.max_iterations
    assert effective(parent, result) == result


@given(parent=budgets, child=budgets)
def test_a_childs_budget_is_within_its_parents(parent: Budget, child: Budget) -> None:
    result = effective_budget(parent, child)
    for name in Budget.model_fields:
        for limit in (getattr(parent, name), getattr(child, name)):
            assert limit is None or getattr(result, name) <= limit
