"""`opendev undo [--list|--to ID]`."""

import sys
from typing import Annotated

import typer

from ..agents.undo import Prepared, Undo
from ..core.errors import ErrorKind, OpenDevError
from ..core.undo import Step
from ..policy.visible import visible
from ..store.sessions import SessionStore
from ..store.undo_steps import UndoSteps
from .project import Project, open_project
from .stdio import say
from .wiring import undo_settings

app = typer.Typer(add_completion=False)
SESSIONS = 200  # looked at, the newest


@app.command()
def undo(
    context: typer.Context,
    listed: Annotated[bool, typer.Option("--list", help="show the steps instead, newest first")] = False,
    to: Annotated[
        str,
        typer.Option(
            metavar="ID", help="reverse this step and all later ones of its session; an undone one comes back"
        ),
    ] = "",
) -> None:
    """Reverse what the agent's last step changed; your own later edits stay. Example: opendev undo"""
    # After the diff a terminal is asked. Elsewhere it is done at once: a question would hang, and --to ID brings it back.
    project = open_project(context.obj)
    if listed:
        found = [
            line
            for session in _sessions(project)
            for line in lines(UndoSteps(project.layout.run_path(session)).all())
        ]
        say(
            "\n".join(found) + "\n"
            if found
            else "No steps yet: nothing that an agent changed here can be undone.\n"
        )
        return
    session = _named(project, to) if to else _last(project)
    store = SessionStore(project.layout, project.path)
    with store.resume(session):
        desk = open_undo(project, session)
        prepared = desk.prepare(to=to)
        _show(desk, prepared)
        prepared.plan.check()
        if sys.stdin.isatty() and not typer.confirm(f"{visible(prepared.describe())}. Do it?"):
            say("Nothing was changed.\n")
            return
        say(f"{visible(desk.carry_out(prepared))}\n")
        if prepared.kind == "undo":
            say(f"To bring it back: opendev undo --to {prepared.steps[0].id}\n")


def open_undo(project: Project, session: str) -> Undo:
    """The steps of a session of this project. Raises ``OpenDevError`` where there can be none (the home folder)."""
    env = project.environment.child_env()
    return Undo(project.path, project.layout, session, env, undo_settings(project.config), project.clock)


def lines(steps: tuple[Step, ...]) -> list[str]:
    """One line a step, newest first."""
    return [
        f"{step.id:14}{step.at[:16].replace('T', ' '):18}{_state(step):8}{visible(step.prompt)}"
        for step in reversed(steps)
    ]


def _state(step: Step) -> str:
    return "undone" if step.undone else "cut off" if step.cut else ""


def _show(desk: Undo, prepared: Prepared) -> None:
    if prepared.late:
        say(
            f"An earlier undo was finished first; changed since and left alone: {visible(', '.join(prepared.late))}\n"
        )
    say(visible(desk.diff(prepared)))


def _sessions(project: Project) -> list[str]:
    """The sessions of this project that have steps, newest first."""
    entries = SessionStore(project.layout, project.path).entries()[:SESSIONS]
    return [
        entry.sessionId
        for entry in entries
        if UndoSteps(project.layout.run_path(entry.sessionId)).folder.is_dir()
    ]


def _last(project: Project) -> str:
    """The session of the newest step that stands."""
    newest = [
        (step.at, session)
        for session in _sessions(project)
        for step in UndoSteps(project.layout.run_path(session)).all()
        if not step.undone
    ]
    if not newest:
        raise OpenDevError(
            ErrorKind.USAGE,
            "There is no step to undo in this project.",
            "`opendev undo --list` shows undone ones; undo covers what an agent changed with undo.enabled.",
        )
    return max(newest)[1]


def _named(project: Project, to: str) -> str:
    session = to.rpartition(".")[0]
    if session not in _sessions(project):
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no step {to} in this project.", "`opendev undo --list` shows them."
        )
    return session
