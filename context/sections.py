"""The sections of the system prompt as data: file, condition, priority, cacheable (PRM-01, PRM-03)."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What conditions may look at. Nothing here differs between siblings of one agent type in one project."""

    tools: frozenset[str]
    in_git_repo: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One file of templates/system/main. ``shared`` sections go into the prompts of sub-agents too."""

    name: str
    priority: int
    condition: Callable[[PromptContext], bool] | None = None
    cacheable: bool = True
    shared: bool = False


def _has(*names: str) -> Callable[[PromptContext], bool]:
    return lambda context: context.tools.issuperset(names)


MAIN_SECTIONS: tuple[Section, ...] = (
    Section("security-policy", 15, shared=True),
    Section("tone-and-style", 20),
    Section("no-time-estimates", 25),
    Section("interaction-pattern", 40),
    Section("tool-selection", 45, _has("read_file", "search", "list_files", "find_symbol")),
    Section("code-quality", 55, _has("edit_file")),
    Section("action-safety", 60, _has("run_command"), shared=True),
    Section("read-before-edit", 62, _has("read_file", "edit_file"), shared=True),
    Section("error-recovery", 65, shared=True),
    Section("subagent-guide", 70, _has("spawn_subagent")),
    Section("git-workflow", 75, lambda context: context.in_git_repo and "run_command" in context.tools),
    Section("task-tracking", 80, _has("write_todos", "complete_todo")),
    Section("output-awareness", 85, _has("read_file"), shared=True),
    Section("code-references", 90, shared=True),
    Section("reminders-note", 95, cacheable=False, shared=True),
)

PROMPT_VARIABLES: dict[str, str] = {
    "READ_TOOL.name": "read_file",
    "WRITE_TOOL.name": "write_file",
    "EDIT_TOOL.name": "edit_file",
    "LIST_TOOL.name": "list_files",
    "SEARCH_TOOL.name": "search",
    "RUN_TOOL.name": "run_command",
    "SYMBOL_TOOL.name": "find_symbol",
    "RENAME_TOOL.name": "rename_symbol",
    "SPAWN_TOOL.name": "spawn_subagent",
    "ASK_TOOL.name": "ask_user",
    "TODO_TOOL.name": "write_todos",
    "TODO_DONE_TOOL.name": "complete_todo",
    "COMPLETE_TOOL.name": "task_complete",
}
