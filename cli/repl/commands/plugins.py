"""Plugins: folders of agents, skills and commands under the state root (CFG-07)."""

from pathlib import Path
from typing import ClassVar

from ....store.plugins import Plugin, install, plugins, remove
from ....ui.repl.ports import Command, CommandResult
from ..base import Handler, choose, need, split, told


class PluginsHandler(Handler):
    """What is installed counts as the user's own; nothing is fetched from anywhere."""

    commands: ClassVar = (
        Command(
            name="plugins",
            usage="[list|install FOLDER|remove NAME]",
            summary="folders of agents, skills and commands",
        ),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        ways = {"list": self._list, "install": self._install, "remove": self._remove}
        return await choose(split(args)[1], ways, "list")

    def _list(self, _rest: str) -> CommandResult:
        found = plugins(self.repl.config.project.layout.home)
        rows = [f"{plugin.name:20} {_holds(plugin)}" for plugin in found]
        return told("\n".join(rows) or "No plugins. To install a folder: /plugins install FOLDER")

    def _install(self, rest: str) -> CommandResult:
        project = self.repl.config.project
        source = project.path / Path(need(rest, "which folder: /plugins install FOLDER")).expanduser()
        plugin = install(project.layout.home, source)
        self.repl.config.reload()
        return told(
            f"{plugin.name} is installed, from the next turn on: {_holds(plugin)}. {plugin.folder} is a copy."
        )

    def _remove(self, rest: str) -> CommandResult:
        remove(self.repl.config.project.layout.home, need(rest, "which plugin: /plugins remove NAME"))
        self.repl.config.reload()
        return told(f"{rest} is removed.")


def _holds(plugin: Plugin) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in plugin.holds.items())
