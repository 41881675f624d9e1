"""Plan mode: which tools stay open while a plan is made (REG-06, C-08)."""

from typing import Any

from ..core.approval import Mode
from ..core.tool import Tool
from .verdict import Verdict, allow, deny

# Tools that touch nothing but the agent's own record, those that ask by themselves, and the batch, whose inner calls are judged
# one by one: never asked about.
INTERNAL = frozenset(
    {
        "write_todos",
        "update_todo",
        "complete_todo",
        "list_todos",
        "task_complete",
        "present_plan",
        "ask_user",
        "batch_tool",
    }
)
OWN_PROCESSES = frozenset({"kill_process"})  # ends only what the agent itself was allowed to start
_PLANNING = (INTERNAL | {"spawn_subagent"}) - {"batch_tool"}


def judge_mode(mode: Mode, tool: Tool[Any]) -> Verdict:
    """In plan mode, refuse every tool that is neither read-only nor part of planning."""
    if mode is Mode.NORMAL or tool.read_only or tool.name in _PLANNING:
        return allow("mode")
    return deny(
        "mode", f"{tool.name} changes things, and plan mode is on. Read, plan and present the plan first."
    )
