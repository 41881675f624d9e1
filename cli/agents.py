"""`opendev agents list|show`."""

import json
from typing import Annotated

import typer

from ..agents.specs import builtin_specs, missing_tools
from ..core.agent import AgentSpec
from ..core.errors import ErrorKind, OpenDevError
from ..tools.catalog import BUILTIN

app = typer.Typer(help="Agent types. Example: opendev agents list", no_args_is_help=True)
_BUILT = tuple(tool.name for tool in BUILTIN)


@app.command(name="list")
def list_agents() -> None:
    """List every agent type. Example: opendev agents list"""
    for spec in builtin_specs().values():
        typer.echo(f"{spec.name:18} {'writes' if spec.writes else 'reads ':7} {spec.description}")


@app.command()
def show(name: Annotated[str, typer.Argument(help="an agent type, for example Coder")]) -> None:
    """Print one agent type as JSON, with the tools of its list that are not built yet. Example: opendev agents show Planner"""
    typer.echo(
        json.dumps(
            {**_find(name).model_dump(mode="json"), "missing_tools": missing_tools(_find(name), _BUILT)},
            indent=2,
        )
    )


def _find(name: str) -> AgentSpec:
    specs = builtin_specs()
    if name not in specs:
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no agent type `{name}`.", f"Known: {', '.join(specs)}."
        )
    return specs[name]
