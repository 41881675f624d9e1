"""Sub-commands that are imported when they are called: `opendev -p` and `--help` pay for nothing else (bench/startup.py)."""

from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

ROOMS = {
    "agents": "Agent types. Example: opendev agents list",
    "config": "Show, explain and change settings. Example: opendev config explain model",
    "hooks": "Hooks: list them, agree to a project's. Example: opendev hooks list",
    "mcp": "MCP servers. Example: opendev mcp list",
    "models": "Models and roles. Example: opendev models list",
    "policy": "Safety rules. Example: opendev policy check -- git push --force",
    "runtime": "A private Ray that is kept warm between runs. Example: opendev runtime start",
    "sessions": "Conversations that were kept. Example: opendev sessions list",
    "skills": "Skills. Example: opendev skills list",
    "swarm": "Batches of tickets. Example: opendev swarm tickets.toml",
    "tools": "Tools: list, show, run by hand. Example: opendev tools list",
    "undo": "Reverse what the agent's last step changed; your own later edits stay. Example: opendev undo",
    "worktrees": "Working copies of agents. Example: opendev worktrees list",
}


class LazyGroup(TyperGroup):
    """The root group. ``ROOMS`` names the modules of this room that hold an ``app``, with the help it gives itself."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, sorted."""
        return sorted({*super().list_commands(ctx), *ROOMS})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command; of a room only its name and help while the help page is written."""
        if cmd_name not in ROOMS:
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, help=ROOMS[cmd_name]) if self._listing else room(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help page, without importing what it lists."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def room(name: str) -> Any:
    """The command group of a room, imported now."""
    app: typer.Typer = import_module(f".{name}", __package__).app
    command = typer.main.get_command(app)
    command.name = name
    return command
