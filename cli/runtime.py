"""`opendev runtime status|start|stop`: a private Ray that is kept warm between runs (ACT-11)."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from ..actors import warm
from ..core.errors import ErrorKind, OpenDevError
from ..store.atomic import Lock
from ..tools.shell.reap import Proc, send
from .project import Project, open_project

app = typer.Typer(
    help="A private Ray that is kept warm between runs. Example: opendev runtime start", no_args_is_help=True
)
_START_S, _STOP_S, _POLL_S = 90.0, 20.0, 0.1


@app.command()
def status(context: typer.Context) -> None:
    """Say whether Ray is kept warm, and for whom. Example: opendev runtime status"""
    home = open_project(context.obj).layout.home
    found = warm.find(home)
    if found is None:
        typer.echo("Ray is not kept warm: each run that needs it starts its own.")
        return
    typer.echo(f"Ray is kept warm at {found.address} by process {found.pid}.")
    typer.echo(
        "A run uses it now."
        if warm.in_use(home)
        else f"It ends after {found.idle_s / 60:g} min without a run."
    )
    if found.version != __version__:
        typer.echo(f"It is of version {found.version}, so runs do not use it: opendev runtime stop", err=True)


@app.command()
def start(
    context: typer.Context,
    idle: Annotated[
        float, typer.Option(min=0.01, max=1440, help="minutes without a run until it ends by itself")
    ] = 30.0,
) -> None:
    """Start a private Ray on loopback; later runs use it, and save its start. Example: opendev runtime start --idle 60"""
    project = open_project(context.obj)
    home = project.layout.home
    with Lock(home / "runtime.start.lock", timeout_s=_START_S):
        found = warm.find(home) or _started(project, idle * 60)
    typer.echo(f"Ray is kept warm at {found.address} by process {found.pid}.")


@app.command()
def stop(context: typer.Context) -> None:
    """End it, with everything it started and nothing else. Example: opendev runtime stop"""
    project = open_project(context.obj)
    found = warm.find(project.layout.home)
    if found is None:
        typer.echo("Ray is not kept warm.")
        return
    keeper = Proc(pid=found.pid, start=found.started, parent=0, group=0, session=0)
    send(keeper, signal.SIGTERM)
    if not asyncio.run(_waited(lambda: not found.alive, _STOP_S)):
        send(keeper, signal.SIGKILL)  # the janitor ends what it started
    typer.echo("Ray is no longer kept warm.")


def _started(project: Project, idle_s: float) -> warm.Warm:
    """Start its keeper: no keys in its environment, for every worker would have them. Raises ``OpenDevError`` (infra)."""
    home = project.layout.home
    log = home / "runtime.log"
    warm.record_path(home).unlink(missing_ok=True)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        keeper = subprocess.Popen(
            [
                sys.executable,
                "-m",
                warm.KEEPER,
                str(home),
                str(idle_s),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=project.environment.child_env(),
            cwd="/",
            start_new_session=True,
        )
    asyncio.run(_waited(lambda: warm.find(home) is not None or keeper.poll() is not None, _START_S))
    found = warm.find(home)
    if found is None:
        keeper.terminate()
        raise OpenDevError(
            ErrorKind.INFRA, f"Ray did not start: {_last_line(log)}", f"All it said is in {log}."
        )
    return found


async def _waited(done: Callable[[], bool], at_most_s: float) -> bool:
    """Whether it came true in time."""
    try:
        async with asyncio.timeout(at_most_s):
            while not done():  # noqa: ASYNC110 - another process is waited for
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return False
    return True


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "nothing was said; it may be slow")
