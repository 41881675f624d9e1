"""`opendev config show|explain|set|path|check|trust`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..configs.check import check_settings
from ..configs.explain import explain, known_key
from ..configs.load import Files, Resolved, read_files, resolve, settings_paths
from ..configs.problem import refusal
from ..configs.published import settings_schema
from ..configs.set_value import changed_settings, content_of
from ..configs.settings_file import SettingsFile
from ..core.errors import ErrorKind, OpenDevError
from ..core.exits import Exit
from ..policy.visible import visible
from ..store.atomic import Lock, write_atomic
from ..store.consent import agree, foreign_files, read_foreign, standing
from .config_check import check_all, told
from .project import Place, open_place, open_project

app = typer.Typer(
    help="Show, explain and change settings. Example: opendev config explain model", no_args_is_help=True
)


@app.command()
def show(
    context: typer.Context,
    schema: Annotated[
        bool, typer.Option("--schema", help="print the JSON schema of a settings file, for editors")
    ] = False,
) -> None:
    """Print all settings as JSON. Example: opendev config show"""
    if schema:
        typer.echo(json.dumps(settings_schema(), indent=1))
        return
    project = open_project(context.obj)
    typer.echo(json.dumps(project.config.model_dump(mode="json"), indent=2))
    _warn(project.loaded.warnings)


@app.command(name="explain")
def explain_key(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="a dotted key, for example agents.max_depth")],
) -> None:
    """Say which layer set a key, and what the others say. Example: opendev config explain model"""
    place = open_place(context.obj)
    found = resolve(read_files(place.path, place.environment), place.environment)
    typer.echo(json.dumps(explain(found.origins, key), indent=2, default=str))
    _warn(map(told, found.problems))


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
    done, *warnings = change_setting(open_place(context.obj), key, value, in_project=in_project)
    typer.echo(done)
    _warn(warnings)


def change_setting(place: Place, key: str, value: str, *, in_project: bool = False) -> tuple[str, ...]:
    """Write one setting into the user's or the project's file: a sentence that says so, then warnings. Blocking.

    Raises:
        OpenDevError: usage, or config when the result is not valid; then nothing is written.
    """
    path = _writable_file(place, in_project=in_project)
    with Lock(place.layout.home / "settings.lock"):  # two that set different keys at once lose none (D05)
        files = read_files(place.path, place.environment)
        before = files.project if in_project else files.user
        file = changed_settings(before, key, value)
        now = Files(files.user, file) if in_project else Files(file, files.project)
        found = _accepted(files, now, place)
        hidden = _hidden(found, key, file)
        write_atomic(path, content_of(file.settings), 0o644 if in_project else 0o600)
    taken = (f"{file.path}: `{name}` looks like a key and was taken out." for name in before.secrets)
    return f"{key} is set in {file.path}.", *taken, *hidden, *found.warnings, *map(told, found.problems)


def _writable_file(place: Place, *, in_project: bool) -> Path:
    """The file to write: the user's own behind a link, a project's never outside of it. Raises ``OpenDevError`` (usage)."""
    user, own = settings_paths(place.path, place.environment)
    if not in_project:
        return user.resolve()
    if not own.resolve().is_relative_to(place.path.resolve()):
        raise OpenDevError(
            ErrorKind.USAGE,
            f"{own} leads out of the project.",
            "It comes with the project: look at it first.",
        )
    return own


def _accepted(before: Files, now: Files, place: Place) -> Resolved:
    """The new configuration, with faults that were there already. Raises ``OpenDevError`` (config) for a new one."""
    known = {(problem.place, problem.what) for problem in check_settings(before, place.environment).problems}
    found = check_settings(now, place.environment)
    if new := [problem for problem in found.problems if (problem.place, problem.what) not in known]:
        raise refusal(new)
    return found


def _hidden(found: Resolved, key: str, file: SettingsFile) -> tuple[str, ...]:
    """A sentence when a higher layer counts. Raises ``OpenDevError`` (usage) for a project's value that would be left out."""
    key = known_key(key)
    if key.startswith("hooks."):  # a project's hooks are kept apart from the settings
        return ()
    origins = found.origins.get(key, ())
    if str(file.path) not in [origin.place for origin in origins]:
        raise OpenDevError(
            ErrorKind.USAGE,
            f"`{key}` of a project's file would widen what agents may do, so it does not count there.",
            f"Set it in your own settings: opendev config set {key} VALUE.",
        )
    last = origins[-1]
    return (
        ()
        if last.place == str(file.path)
        else (f"{last.place or last.layer} sets {key} too, and counts more.",)
    )


@app.command()
def path(context: typer.Context) -> None:
    """Print the settings files, lowest layer first. Example: opendev config path"""
    place = open_place(context.obj)
    for file in settings_paths(place.path.resolve(), place.environment):
        typer.echo(f"{file}{'' if file.exists() else '  (does not exist)'}")


@app.command()
def check(context: typer.Context) -> None:
    """Check settings, permissions.json, hooks, MCP servers, agents and skills; exit 2 and every fault. Example: opendev config check"""
    place = open_place(context.obj)
    found = check_all(place, read_files(place.path, place.environment))
    _warn(found.notes)
    for text in found.faults:
        typer.echo(visible(text), err=True)
    if found.faults:
        raise typer.Exit(int(Exit.USAGE))
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


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        typer.echo(f"Warning: {visible(text)}", err=True)
