"""`opendev models list|refresh|show`."""

import json
from typing import Annotated

import typer

from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError
from ..llm.provider_cache import FETCH_S
from ..llm.recipes import MODEL as RECIPES
from ..llm.roles import model_for
from .catalogue import MODELS_DEV, NO_REMOTE, local_file, open_cache, open_catalog, renew
from .project import Project, open_project

app = typer.Typer(help="Models and roles. Example: opendev models list", no_args_is_help=True)


@app.command(name="list")
def list_models(context: typer.Context) -> None:
    """Say which model each role uses. Example: OPENDEV_MODEL=openai/gpt-5 opendev models list"""
    project = open_project(context.obj)
    cache = open_cache(project)
    renewing = renew(cache) if project.config.models() and cache.may_fetch and not cache.fresh else None
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
    typer.echo(f"{'catalogue':10} {_state(project)}")
    if renewing is not None:
        renewing.join(FETCH_S)  # what is known was printed; the next command finds it renewed


@app.command()
def refresh(context: typer.Context) -> None:
    """Fetch the catalogue of models now. Example: opendev models refresh"""
    project = open_project(context.obj)
    cache = open_cache(project)
    if not cache.url:
        raise OpenDevError(
            ErrorKind.CONFIG,
            "The catalogue of models is not fetched here.",
            f"Unset {NO_REMOTE} and {MODELS_DEV}, and set `catalog.url`.",
        )
    project.layout.check_writable()
    synced = cache.refresh()
    typer.echo(f"{synced.models} models of {synced.providers} providers are in {project.layout.cache()}.")


@app.command()
def show(context: typer.Context, model: Annotated[str, typer.Argument(help="provider/NAME")]) -> None:
    """Print what is known of a model: window, prices, abilities. Example: opendev models show openai/gpt-5"""
    project = open_project(context.obj)
    cache = open_cache(project)
    if cache.may_fetch and not cache.fresh:
        renewing = renew(cache)
        typer.echo(_known(project, model))
        renewing.join(FETCH_S)
    else:
        typer.echo(_known(project, model))


def _known(project: Project, model: str) -> str:
    return json.dumps(open_catalog(project).info(model).model_dump(mode="json"), indent=2)


def _state(project: Project) -> str:
    """Where the knowledge about models comes from."""
    if path := local_file(project):
        return f"the file {path}"
    cache = open_cache(project)
    age = "never fetched" if cache.age_s is None else f"fetched {cache.age_s / 3600:.0f} h ago"
    return f"{cache.url or 'not fetched here'}, {age}"
