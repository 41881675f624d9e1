"""Plan mode: which tools stay open while a plan is made (REG-06, C-08)."""

from typing import Any

from ..core.approval import Mode
from ..core.tool import Tool
from .verdict import Verdict, allow, deny

# Tools that touch nothing but the agent's own record, and the one that asks by itself: never asked about, open in plan mode.
INTERNAL = frozenset(
    {"write_todos", "update_todo", "complete_todo", "list_todos", "task_complete", "present_plan"}
)
_PLANNING = INTERNAL | {"spawn_subagent"}


def judge_mode(mode: Mode, tool: Tool[Any]) -> Verdict:
    """In plan mode, refuse every tool that is neither read-only nor part of planning."""
    if mode is Mode.NORMAL or tool.read_only or tool.name in _PLANNING:
        return allow("mode")
    return deny(
        "mode", f"{tool.name} changes things, and plan mode is on. Read, plan and present the plan first."
    )
