"""The one list of built-in tools (REG-03, Catalogue T): a new tool is a file, a template and a line here."""

from typing import Any

from ..core.tool import Tool
from . import (
    complete_todo,
    delete_file,
    edit_file,
    find_symbol,
    get_subagent_output,
    list_files,
    list_todos,
    move_file,
    present_plan,
    read_file,
    rename_symbol,
    replace_text,
    rewrite_code,
    run_command,
    search,
    spawn_subagent,
    task_complete,
    update_todo,
    write_file,
    write_todos,
)

BUILTIN: tuple[Tool[Any], ...] = (
    read_file.TOOL,
    write_file.TOOL,
    edit_file.TOOL,
    list_files.TOOL,
    search.TOOL,
    run_command.TOOL,
    find_symbol.TOOL,
    rename_symbol.TOOL,
    write_todos.TOOL,
    update_todo.TOOL,
    complete_todo.TOOL,
    list_todos.TOOL,
    present_plan.TOOL,
    spawn_subagent.TOOL,
    get_subagent_output.TOOL,
    task_complete.TOOL,
)
# Steps of a recipe (cli.md). They are no part of Catalogue T: only an agent whose task has a recipe is offered them.
RECIPE: tuple[Tool[Any], ...] = (
    replace_text.TOOL,
    rewrite_code.TOOL,
    delete_file.TOOL,
    move_file.TOOL,
)
