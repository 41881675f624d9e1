"""`opendev hooks list|trust|distrust`."""

import re

import typer

from ..actors.worker import AGENT_MARK
from ..core.errors import ErrorKind, OpenDevError
from ..core.hooks import HookEvent, Hooks
from ..policy.visible import visible
from ..store.consent import agree
from ..tools.catalog import BUILTIN, RECIPE
from ..tools.hook_trust import SETTINGS, digest_of, key_of
from .extensions import load_hooks
from .project import Project, open_project

app = typer.Typer(
    help="Hooks: list them, agree to a project's. Example: opendev hooks list", no_args_is_help=True
)


@app.command(name="list")
def list_hooks(context: typer.Context) -> None:
    """List the hooks in the order in which they run; nothing is started. Example: opendev hooks list"""
    project = open_project(context.obj)
    found, notes = load_hooks(project)
    trusted = "trusted" if found.digest else "not trusted"
    for event in HookEvent:
        _print(event, project.config.hooks, "user")
        _print(event, project.loaded.projects_hooks, f"project, {trusted}")
    for text in (*notes, *_idle(project.config.hooks), *_idle(project.loaded.projects_hooks)):
        typer.echo(text, err=True)


@app.command()
def trust(context: typer.Context) -> None:
    """Agree to the project's hooks, as they and the files they name are now. Example: opendev hooks trust"""
    project = open_project(context.obj)
    if project.environment.get(AGENT_MARK):
        raise OpenDevError(
            ErrorKind.DENIED, "An agent cannot agree to hooks.", "A person has to, in a terminal."
        )
    hooks = _theirs(project)
    digest = digest_of(hooks, str(project.path))
    if not digest:
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"The files that the hooks in {project.path / SETTINGS} run are too many, too large or unreadable.",
            "Nothing was agreed to.",
        )
    for event in HookEvent:
        _print(event, hooks, "project")
    agree(project.layout.home, key_of(str(project.path)), digest)
    typer.echo("You agreed to these hooks of the project, as they are now.")


@app.command()
def distrust(context: typer.Context) -> None:
    """Withdraw the consent to the project's hooks. Example: opendev hooks distrust"""
    project = open_project(context.obj)
    agree(project.layout.home, key_of(str(project.path)), None)
    typer.echo("The project's hooks do not run any more.")


def _idle(hooks: Hooks) -> list[str]:
    """A sentence for each matcher that no built-in tool answers to, as the names of other programs' tools: a guard that never
    runs is worse than none."""
    tools = (HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE)
    names = [tool.name for tool in (*BUILTIN, *RECIPE)]
    return [
        f"The matcher {visible(group.matcher)} of {event} is found in the name of no built-in tool (`opendev tools list`)."
        for event in tools
        for group in hooks.of(event)
        if "mcp" not in group.matcher and not any(re.search(group.matcher, name) for name in names)
    ]


def _theirs(project: Project) -> Hooks:
    hooks = project.loaded.projects_hooks
    if not hooks.commands:
        raise OpenDevError(ErrorKind.USAGE, f"There are no hooks in {project.path / SETTINGS}.")
    return hooks


def _print(event: HookEvent, hooks: Hooks, whose: str) -> None:
    for group in hooks.of(event):
        for hook in group.hooks:
            typer.echo(
                f"{event.value:20} {visible(group.matcher) or '*':16} {hook.timeout:4g} s  {whose:20} {visible(hook.command)}"
            )
