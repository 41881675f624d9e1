"""`opendev skills list|show|trust`."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.errors import ErrorKind, OpenDevError
from ..store.consent import agree
from ..tools.skills import FoundSkills, body_of, discover
from .project import Project, open_project

app = typer.Typer(help="Skills. Example: opendev skills list", no_args_is_help=True)
_NAME = Annotated[str, typer.Argument(help="a skill of `opendev skills list`")]


@app.command(name="list")
def list_skills(context: typer.Context) -> None:
    """List the skills that agents can load; what is not used, and why, on standard error. Example: opendev skills list"""
    found = _found(open_project(context.obj))
    for skill in sorted(found.skills, key=lambda skill: skill.name):
        typer.echo(f"{skill.name:20} {skill.tier:8} {skill.description}")
    for text in found.refused:
        typer.echo(text, err=True)


@app.command()
def show(context: typer.Context, name: _NAME) -> None:
    """Print a skill as an agent gets it; one that is not trusted as it stands in its file. Example: opendev skills show review"""
    found = _found(open_project(context.obj))
    skill = next((skill for skill in found.skills if skill.name == name), None)
    if skill is not None:
        typer.echo(body_of(skill, ""))
        return
    if name not in found.untrusted:
        raise _unknown(found, name)
    typer.echo(Path(found.untrusted[name][0]).read_bytes().decode("utf-8", "replace"))


@app.command()
def trust(context: typer.Context, name: _NAME) -> None:
    """Agree to a skill of the project, as it is now. Example: opendev skills trust review"""
    project = open_project(context.obj)
    found = _found(project)
    if name not in found.untrusted:
        raise _unknown(found, name)
    path, digest = found.untrusted[name]
    agree(project.layout.home, path, digest)
    typer.echo(f"You agreed to the skill {name}, as {path} is now.")


def _found(project: Project) -> FoundSkills:
    return discover(project.layout.home, project.path)


def _unknown(found: FoundSkills, name: str) -> OpenDevError:
    known = ", ".join(sorted({*(skill.name for skill in found.skills), *found.untrusted})) or "none"
    return OpenDevError(ErrorKind.USAGE, f"There is no such skill: {name}.", f"Known: {known}.")
