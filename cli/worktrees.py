"""`opendev worktrees list|doctor|prune`."""

import asyncio
from typing import Annotated

import typer

from ..worktrees.doctor import Checkup, Doctor, Tidy
from .project import open_project
from .wiring import open_keeper

app = typer.Typer(help="Working copies of agents. Example: opendev worktrees list", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command(name="list")
def list_worktrees(context: typer.Context, as_json: AsJson = False) -> None:
    """List every working copy, who holds it, and saved work. Example: opendev worktrees list"""
    _show(asyncio.run(_doctor(context).check()), as_json=as_json)


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Repair after a crash: save the work of dead holders, then remove their copies. Example: opendev worktrees doctor"""
    _tell(asyncio.run(_doctor(context).repair()), as_json=as_json)


@app.command()
def prune(
    context: typer.Context,
    into: Annotated[str, typer.Option(help="also delete branches whose work is on this branch")] = "",
    as_json: AsJson = False,
) -> None:
    """Delete only what is proven safe. Example: opendev worktrees prune --into swarm/api-client"""
    _tell(asyncio.run(_doctor(context).prune(into)), as_json=as_json)


def _doctor(context: typer.Context) -> Doctor:
    project = open_project(context.obj)
    return Doctor(open_keeper(project, project.path))


def _show(found: Checkup, *, as_json: bool) -> None:
    if as_json:
        typer.echo(found.model_dump_json(by_alias=True))
        return
    for line in found.leases:
        lease = line.record.lease
        state = "held" if line.alive else "holder is dead"
        typer.echo(
            f"{lease.id}  {lease.kind:5}  {state:14}  {lease.task:20}  {lease.path}{'' if line.exists else '  (gone)'}"
        )
    for title, items in (("folder of no lease", found.orphans), ("unreadable record", found.broken_records)):
        for item in items:
            typer.echo(f"{title}: {item}")
    for title, items in (
        ("stale lock", found.stale_locks),
        ("branch", found.branches),
        ("saved work", found.rescued),
    ):
        for item in items:
            typer.echo(f"{title}: {item}")
    if not any(
        (found.leases, found.orphans, found.broken_records, found.stale_locks, found.branches, found.rescued)
    ):
        typer.echo("No working copies, no branches of agents, nothing saved.")


def _tell(tidy: Tidy, *, as_json: bool) -> None:
    if as_json:
        typer.echo(tidy.model_dump_json())
        return
    for line in tidy.done:
        typer.echo(line)
    for line in tidy.kept:
        typer.echo(f"kept: {line}")
    if not (tidy.done or tidy.kept):
        typer.echo("Nothing to do.")
