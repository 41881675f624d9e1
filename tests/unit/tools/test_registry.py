"""The registry: what is on offer, and what a model may call it (REG-01, REG-03, SUB-02, M05, M12)."""

import re
from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from opendev.core.model import Frozen
from opendev.core.prompts import TOOL_NAMES, PromptRenderer, PromptVariables
from opendev.core.tool import Tool, ToolContext, ToolResult
from opendev.tools import registry as registry_module
from opendev.tools.catalog import BUILTIN, RECIPE
from opendev.tools.registry import ToolRegistry, load_tool_description


class _Args(Frozen):
    pass


async def _run(_args: Any, _ctx: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text="")


READ_ONLY = {
    "read_file", "list_files", "search", "list_processes", "get_process_output", "fetch_url", "web_search", "capture_web_screenshot",
    "open_browser", "find_symbol", "find_referencing_symbols", "capture_screenshot", "analyze_image", "read_pdf", "list_todos",
    "ask_user", "search_tools", "get_subagent_output", "invoke_skill",
}  # fmt: skip
OTHERS = {
    "write_file", "edit_file", "run_command", "kill_process", "rename_symbol", "replace_symbol_body", "insert_before_symbol",
    "insert_after_symbol", "notebook_edit", "write_todos", "update_todo", "complete_todo", "batch_tool", "spawn_subagent",
    "present_plan", "task_complete",
}  # fmt: skip


@pytest.mark.req("REG-03")
def test_the_catalogue() -> None:
    names = {tool.name for tool in BUILTIN}
    assert len(BUILTIN) == len(names)
    assert len(READ_ONLY) == 19
    assert len(READ_ONLY | OTHERS) == 35
    assert names <= READ_ONLY | OTHERS
    assert {t.name for t in RECIPE} == {"replace_text", "rewrite_code", "delete_file", "move_file"}
    assert {tool.name for tool in BUILTIN if tool.read_only} == names & READ_ONLY


def test_schemas_are_sorted_stable_and_know_the_agents() -> None:
    registry = ToolRegistry((*BUILTIN, *RECIPE))
    first = registry.schemas({"AGENTS": "- Code-Explorer: reads"})
    again = ToolRegistry((*RECIPE, *reversed(BUILTIN))).schemas({"AGENTS": "- Code-Explorer: reads"})
    assert [s.model_dump_json() for s in first] == [s.model_dump_json() for s in again]
    assert [s.name for s in first] == sorted(s.name for s in first) == list(registry.names)
    spawn = next(s for s in first if s.name == "spawn_subagent")
    assert "- Code-Explorer: reads" in spawn.description
    assert "${" not in "".join(s.description for s in registry.schemas())
    assert "$NAME" in next(s.description for s in first if s.name == "search")  # no variable of ours


@pytest.mark.req("SUB-02")
def test_a_tool_outside_of_the_list_is_absent_and_refused() -> None:
    registry = ToolRegistry(BUILTIN, ("read_file", "search", "not_built_yet"))
    assert registry.names == ("read_file", "search")
    assert registry.get("write_file") is None
    refusal = registry.resolve("write_file")
    assert isinstance(refusal, ErrorInfo)
    assert refusal.kind is ErrorKind.DENIED
    assert "read_file, search" in refusal.hint
    assert ToolRegistry(BUILTIN, ()).names == ()


def test_of_two_tools_with_one_name_the_first_stays() -> None:
    impostor: Tool[Any] = Tool(name="read_file", category="mcp", args=_Args, run=_run)
    registry = ToolRegistry((*BUILTIN, impostor))
    assert registry.get("read_file") is BUILTIN[0]
    assert len(registry.schemas()) == len({s.name for s in registry.schemas()}) == len(BUILTIN)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("read_file", "read_file"),
        ("ReadFile", "read_file"),
        ("functions.read_file", "read_file"),
        ("read_file ", "read_file"),
        ("default_api:search", "search"),
        ("Read", "read_file"),
        ("text_search", "search"),
        ("run-command", "run_command"),
    ],
)
def test_names_that_can_only_mean_one_tool(said: str, meant: str) -> None:
    found = ToolRegistry(BUILTIN).resolve(said)
    assert isinstance(found, Tool)
    assert found.name == meant


@pytest.mark.parametrize(
    "said",
    ["str_replace_editor", "write", "", " ", "mcp__gone__x", "mcp__x__read_file", "re", "\n", "x" * 100_000],
)
def test_other_names_are_errors_with_a_way_on(said: str) -> None:
    found = ToolRegistry(BUILTIN).resolve(said)
    assert isinstance(found, ErrorInfo)
    assert found.kind is ErrorKind.NOT_FOUND
    assert found.hint
    assert len(found.sentence()) < 1_000


def test_near_names() -> None:
    registry = ToolRegistry(BUILTIN)
    assert registry.near("edit_fil")[0] == "edit_file"
    assert set(registry.near("write")) >= {"write_file", "write_todos"}
    assert "search" in registry.near("ast_search")


@pytest.mark.req("PRM-13", "PRM-07")
def test_descriptions_are_templates_that_send_to_each_other() -> None:
    folder = Path(registry_module.__file__).parents[1] / "templates" / "tools"
    for tool in (*BUILTIN, *RECIPE):
        text = load_tool_description(tool.name)
        written = (folder / f"{tool.name}.md").read_text().splitlines()[0]
        assert text.splitlines()[0] == PromptRenderer().render(written)
        assert not re.search(r"\$\{[A-Z_]+\.name\}", text), tool.name
    # Tools exclude each other: where another one fits better, the description says which.
    for name, other in (
        ("write_file", "edit_file"),
        ("search", "find_symbol"),
        ("find_symbol", "search"),
        ("complete_todo", "update_todo"),
        ("rename_symbol", "find_symbol"),
        ("spawn_subagent", "get_subagent_output"),
    ):
        assert other in load_tool_description(name), name
    assert "Prefer the tools for reading, searching and editing" in load_tool_description("run_command")
    assert "A: b" in load_tool_description("spawn_subagent", {"AGENTS": "A: b"})
    renamed = PromptVariables(tools={**TOOL_NAMES, "EDIT_TOOL": "patch_file"})
    assert "patch_file" in load_tool_description("write_file", prompts=renamed)
    with pytest.raises(OpenDevError, match="no description"):
        load_tool_description("no_such_tool")
