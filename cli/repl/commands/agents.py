"""Agent types: list, show, create; and /init, which has Code-Explorer look at the project (REPL-07, CFG-11)."""

import re
from pathlib import Path
from typing import ClassVar

from ....agents.custom import agent_types
from ....core.agent import AgentSpec
from ....core.errors import ErrorKind, OpenDevError
from ....ui.repl.ports import Command, CommandResult
from ...wiring import own_agents
from ..base import Handler, choose, need, split, told
from ..files import new_text_file

_TEMPLATE = Path(__file__).parents[3] / "templates" / "init.md"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class AgentsHandler(Handler):
    """Types of agents that the main agent can start."""

    commands: ClassVar = (
        Command(
            name="agents",
            usage="[list|show NAME|create NAME DESCRIPTION]",
            summary="agent types; create one of your own",
        ),
        Command(name="init", usage="", summary="look at the project and write OPENDEV.md"),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        name, rest = split(args)
        if name == "init":
            text = _TEMPLATE.read_text("utf-8")
            return CommandResult(
                success=True, prompt=re.sub(r"\A\s*<!--.*?-->\s*", "", text, flags=re.DOTALL).strip()
            )
        return await choose(rest, {"list": self._list, "show": self._show, "create": self._create}, "list")

    def _list(self, _rest: str) -> CommandResult:
        custom = own_agents(self.repl.config.project)
        rows = [
            f"{spec.name:18} {'writes' if spec.writes else 'reads':7} {spec.description}"
            for spec in agent_types(custom.specs).values()
        ]
        return told("\n".join((*rows, *custom.refused, *custom.notes)))

    def _show(self, rest: str) -> CommandResult:
        spec = self._types().get(need(rest, "which agent: /agents show NAME"))
        if spec is None:
            raise OpenDevError(
                ErrorKind.USAGE, f"There is no agent type `{rest}`.", f"Known: {', '.join(self._types())}."
            )
        tools = "all" if spec.tools is None else ", ".join(spec.tools)
        return told(f"{spec.name}: {spec.description}\ntools: {tools}\n\n{spec.prompt}")

    def _create(self, rest: str) -> CommandResult:
        name, described = split(rest)
        need(described, "what it is for: /agents create NAME DESCRIPTION")
        if not _NAME.fullmatch(name):
            raise OpenDevError(ErrorKind.USAGE, f"`{name}` is not a word of letters, digits, - and _.")
        if name in self._types():
            raise OpenDevError(
                ErrorKind.USAGE, f"There is an agent type {name} already.", "Choose another name."
            )
        path = self.repl.config.project.layout.home / "agents" / f"{name}.md"
        body = (
            f"You are {name}. {described}\n\n"
            "Work only on what you are asked. State what you saw, with the place as `path:line`; mark what you could not check.\n"
        )
        new_text_file(path, {"name": name, "description": described}, body)
        self.repl.config.reload()
        return told(
            f"{name} can be started from the next turn on; it reads and changes nothing. "
            f"Its prompt, its tools and its model: {path}",
            file=str(path),
        )

    def _types(self) -> dict[str, AgentSpec]:
        return agent_types(own_agents(self.repl.config.project).specs)
