"""Tools and what runs in the background: tools, tasks (SHL-12..14)."""

from typing import ClassVar

from ....core.errors import ErrorKind, OpenDevError
from ....tools.catalog import BUILTIN
from ....tools.registry import ToolRegistry
from ....ui.repl.ports import Command, CommandResult
from ..base import Handler, choose, need, split, told
from ..tasks import end_task, last_lines

_LINES = 40


class ToolsHandler(Handler):
    """What agents can do, and what they left running."""

    commands: ClassVar = (
        Command(
            name="tasks", usage="[list|output ID|kill ID]", summary="commands that run in the background"
        ),
        Command(name="tools", usage="[list|show NAME]", summary="the tools that agents have"),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        name, rest = split(args)
        if name == "tools":
            return await choose(rest, {"list": self._tools, "show": self._show}, "list")
        return await choose(rest, {"list": self._tasks, "output": self._output, "kill": self._kill}, "list")

    def _tools(self, _rest: str) -> CommandResult:
        rows = [
            f"{tool.name:24} {tool.category:12} {', '.join(sorted(effect.value for effect in tool.effects))}"
            for tool in BUILTIN
        ]
        return told("\n".join([*rows, "Tools of MCP servers: /mcp tools NAME"]))

    def _show(self, rest: str) -> CommandResult:
        registry = ToolRegistry(BUILTIN)
        tool = registry.get(need(rest, "which tool: /tools show NAME"))
        if tool is None:
            near = ", ".join(registry.near(rest))
            raise OpenDevError(
                ErrorKind.USAGE, f"There is no tool `{rest}`.", f"Near: {near}." if near else ""
            )
        schema = ToolRegistry([tool]).schemas()[0]
        return told(f"{schema.name}\n{schema.description}")

    def _tasks(self, _rest: str) -> CommandResult:
        tasks = self.repl.room.figures.tasks.values()
        rows = [f"{task.id:9} {task.state:10} {task.pid:>8}  {task.command}" for task in tasks]
        return told("\n".join(rows) or "Nothing runs in the background.")

    def _output(self, rest: str) -> CommandResult:
        self.repl.room.task_of(need(rest, "which task: /tasks output ID"))
        return told(last_lines(self.repl.room.root, rest, _LINES) or "It has written nothing yet.")

    async def _kill(self, rest: str) -> CommandResult:
        task = self.repl.room.task_of(need(rest, "which task: /tasks kill ID"))
        if task not in self.repl.room.figures.running:
            return told(f"{rest} has ended already: {task.state}.")
        await end_task(task, self.repl.room.held.id)
        return told(f"Ended {rest}.")
