"""`opendev models list|show`."""

import json
from typing import Annotated

import typer

from ..core.chat import Role
from ..core.errors import OpenDevError
from ..llm.recipes import MODEL as RECIPES
from ..llm.roles import model_for
from .project import open_project
from .wiring import open_catalog

app = typer.Typer(help="Models and roles. Example: opendev models list", no_args_is_help=True)


@app.command(name="list")
def list_models(context: typer.Context) -> None:
    """Say which model each role uses. Example: OPENDEV_MODEL=openai/gpt-5 opendev models list"""
    project = open_project(context.obj)
    catalog = open_catalog(project)
    for role in Role:
        try:
            found = model_for(role, project.config.models(), catalog.has_vision)
        except OpenDevError as error:
            found = f"- ({error.info.message})"
        typer.echo(f"{role.value:10} {found}")
    typer.echo(
        f"{'recipes':10} {RECIPES} (built in: runs the recipes of tickets, without a key and without cost)"
    )


@app.command()
def show(context: typer.Context, model: Annotated[str, typer.Argument(help="provider/NAME")]) -> None:
    """Print what is known of a model: window, prices, abilities. Example: opendev models show openai/gpt-5"""
    typer.echo(
        json.dumps(open_catalog(open_project(context.obj)).info(model).model_dump(mode="json"), indent=2)
    )
