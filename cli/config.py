"""`opendev config show|explain|set|path|check`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..configs.explain import explain
from ..configs.load import load_config
from ..configs.set_value import changed_settings
from ..store.atomic import write_atomic
from .project import Project, open_project

app = typer.Typer(
    help="Show, explain and change settings. Example: opendev config explain model", no_args_is_help=True
)


@app.command()
def show(context: typer.Context) -> None:
    """Print all settings as JSON. Example: opendev config show"""
    project = open_project(context.obj)
    typer.echo(json.dumps(project.config.model_dump(mode="json"), indent=2))
    _warn(project)


@app.command(name="explain")
def explain_key(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="a dotted key, for example agents.max_depth")],
) -> None:
    """Say which layer set a key, and what the others say. Example: opendev config explain model"""
    typer.echo(json.dumps(explain(open_project(context.obj).loaded, key), indent=2, default=str))


@app.command(name="set")
def set_key(
    context: typer.Context,
    key: str,
    value: Annotated[str, typer.Argument(help="JSON, or plain text")],
    in_project: Annotated[
        bool, typer.Option("--project", help="write the project's file, not the user's")
    ] = False,
) -> None:
    """Change one setting, when the result is valid. Example: opendev config set model openai/gpt-5"""
    project = open_project(context.obj)
    path = project.path / ".opendev" / "settings.json" if in_project else project.layout.settings()
    content, parsed = changed_settings(path, key, value)
    load_config(project=project.path, environment=project.environment, cli={key: parsed})
    write_atomic(path, content, 0o644 if in_project else 0o600)
    typer.echo(f"{key} is set in {path}.")
    _warn(project)


@app.command()
def path(context: typer.Context) -> None:
    """Print the settings files, lowest layer first. Example: opendev config path"""
    project = open_project(context.obj)
    for file in (project.layout.settings(), project.path / ".opendev" / "settings.json"):
        typer.echo(f"{file}{'' if Path(file).exists() else '  (does not exist)'}")


@app.command()
def check(context: typer.Context) -> None:
    """Check every settings file; exit 2 and the place of the fault when one is wrong. Example: opendev config check"""
    project = open_project(context.obj)
    _warn(project)
    typer.echo("The settings are valid.")


def _warn(project: Project) -> None:
    for warning in project.loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
