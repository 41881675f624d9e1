"""Placeholders of prompts and tool descriptions: one registry, one renderer (PRM-07). Pure text, no files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*", re.S)
_VARIABLE = re.compile(r"\$\{([A-Z_]+\.[a-z]+)\}")

TOOL_NAMES: Mapping[str, str] = {
    "READ_TOOL": "read_file",
    "WRITE_TOOL": "write_file",
    "EDIT_TOOL": "edit_file",
    "LIST_TOOL": "list_files",
    "SEARCH_TOOL": "search",
    "RUN_TOOL": "run_command",
    "SYMBOL_TOOL": "find_symbol",
    "RENAME_TOOL": "rename_symbol",
    "SPAWN_TOOL": "spawn_subagent",
    "SPAWN_OUTPUT_TOOL": "get_subagent_output",
    "TODO_TOOL": "write_todos",
    "TODO_UPDATE_TOOL": "update_todo",
    "TODO_DONE_TOOL": "complete_todo",
    "TODO_LIST_TOOL": "list_todos",
    "REFERENCES_TOOL": "find_referencing_symbols",
    "BODY_TOOL": "replace_symbol_body",
    "BEFORE_TOOL": "insert_before_symbol",
    "AFTER_TOOL": "insert_after_symbol",
    "PROCESSES_TOOL": "list_processes",
    "PROCESS_OUTPUT_TOOL": "get_process_output",
    "KILL_TOOL": "kill_process",
    "FETCH_TOOL": "fetch_url",
    "WEB_SEARCH_TOOL": "web_search",
    "WEB_SHOT_TOOL": "capture_web_screenshot",
    "BROWSER_TOOL": "open_browser",
    "SHOT_TOOL": "capture_screenshot",
    "IMAGE_TOOL": "analyze_image",
    "PDF_TOOL": "read_pdf",
    "NOTEBOOK_TOOL": "notebook_edit",
    "ASK_TOOL": "ask_user",
    "PLAN_TOOL": "present_plan",
    "BATCH_TOOL": "batch_tool",
    "DISCOVERY_TOOL": "search_tools",
    "SKILL_TOOL": "invoke_skill",
    "COMPLETE_TOOL": "task_complete",
}


@dataclass(frozen=True, slots=True)
class PromptVariables:
    """What ``${NAME.field}`` stands for: the tools' names, and ``values`` such as ``SCRATCH.path`` of one run."""

    tools: Mapping[str, str] = field(default_factory=lambda: TOOL_NAMES)
    values: Mapping[str, str] = field(default_factory=dict[str, str])

    def resolve(self, placeholder: str) -> str | None:
        """The text for ``NAME.field``; None when nobody registered it."""
        name, _, kind = placeholder.partition(".")
        return self.tools.get(name) if kind == "name" else self.values.get(placeholder)


@dataclass(frozen=True, slots=True)
class PromptRenderer:
    """Turns the text of a template into what a model reads."""

    variables: PromptVariables = PromptVariables()

    def render(self, text: str) -> str:
        """``text`` without its leading HTML comment, placeholders resolved; unknown ones, and ``$HOME`` or ``$A``, stay as they are."""
        return _VARIABLE.sub(self._value, _COMMENT.sub("", text)).strip()

    def _value(self, found: re.Match[str]) -> str:
        value = self.variables.resolve(found[1])
        return found[0] if value is None else value
