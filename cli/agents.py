"""`opendev agents list|show`."""

import json
from typing import Annotated

import typer

from ..agents.custom import CustomAgents, agent_types
from ..agents.specs import missing_tools
from ..core.agent import AgentSpec
from ..core.errors import ErrorKind, OpenDevError
from ..tools.catalog import BUILTIN
from .project import open_project
from .wiring import own_agents

app = typer.Typer(help="Agent types. Example: opendev agents list", no_args_is_help=True)
_BUILT = tuple(tool.name for tool in BUILTIN)


@app.command(name="list")
def list_agents(context: typer.Context) -> None:
    """List every agent type, your own ones too; what cannot be used, and why, on standard error. Example: opendev agents list"""
    custom = own_agents(open_project(context.obj))
    for spec in agent_types(custom.specs).values():
        typer.echo(f"{spec.name:18} {'writes' if spec.writes else 'reads ':7} {spec.description}")
    for text in (*custom.refused, *custom.notes):
        typer.echo(text, err=True)


@app.command()
def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="an agent type, for example Coder")],
) -> None:
    """Print one agent type as JSON, with the tools of its list that are not built yet. Example: opendev agents show Planner"""
    custom = own_agents(open_project(context.obj))
    spec = _find(custom, name)
    more = {"missing_tools": missing_tools(spec, _BUILT), "file": str(custom.files.get(name, ""))}
    typer.echo(json.dumps({**spec.model_dump(mode="json"), **more}, indent=2))


def _find(custom: CustomAgents, name: str) -> AgentSpec:
    specs = agent_types(custom.specs)
    if name not in specs:
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no agent type `{name}`.", f"Known: {', '.join(specs)}."
        )
    return specs[name]
