"""`opendev config show|explain|set|path|check|trust`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..configs.explain import explain
from ..configs.load import load_config
from ..configs.set_value import changed_settings
from ..core.errors import ErrorKind, OpenDevError
from ..policy.visible import visible
from ..store.atomic import Lock, write_atomic
from ..store.consent import agree, foreign_files, read_foreign, standing
from ..store.permissions import load_permissions
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
    with Lock(project.layout.home / "settings.lock"):  # two that set different keys at once lose none (D05)
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
    """Check every settings file and permissions.json; exit 2 and the place of a fault. Example: opendev config check"""
    project = open_project(context.obj)
    _warn(project)
    for text in load_permissions(project.layout.home, project.path).notes:
        typer.echo(text, err=True)
    typer.echo("The settings are valid.")


@app.command()
def trust(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="a file of the list; without it, the list is printed")
    ] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="take the consent back")] = False,
) -> None:
    """Agree to a file that comes with the project, as it is now. Example: opendev config trust .opendev/permissions.json"""
    project = open_project(context.obj)
    home = project.layout.home
    if file is None:
        for path in foreign_files(project.path):
            typer.echo(f"{standing(home, path):12} {visible(str(path.relative_to(project.path)))}")
        typer.echo("Hooks and MCP servers: opendev hooks list, opendev mcp list.", err=True)
        return
    path = project.path / file
    if path not in foreign_files(project.path):
        raise OpenDevError(
            ErrorKind.USAGE, f"{file} is no file that needs consent.", "`opendev config trust` lists them."
        )
    if withdraw:
        agree(home, str(path), None)
        typer.echo(f"You withdrew the consent to {path}.")
        return
    content, digest = read_foreign(path)
    typer.echo(visible(content.decode("utf-8", "replace")))
    agree(home, str(path), digest)
    typer.echo(f"You agreed to {path}, as it is now.", err=True)


def _warn(project: Project) -> None:
    for warning in project.loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
