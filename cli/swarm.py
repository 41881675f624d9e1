"""`opendev swarm FILE` and `opendev swarm run|plan|resume|status|report|cancel|demo`."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Generator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..agents.custom import agent_types
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event
from ..core.ids import new_id
from ..core.ticket import Dirty, RunReport, SwarmPlan
from ..swarm.control import cancel_run, read_report, status_of
from ..swarm.demo import make_demo
from ..swarm.history import GitHistory
from ..swarm.plan import make_plan, render_plan
from ..swarm.report import render
from ..swarm.tickets import Overrides, load_plan
from ..ui.headless import JsonLines
from ..ui.terminal import SwarmView
from .batch import BatchOptions, resolve_base, resume_batch, run_batch
from .planning import PlanningOptions, check_options, write_plan
from .project import Project, open_project
from .stdio import deliver, own_stdio
from .wiring import open_keeper, own_agents


class DefaultRun(TyperGroup):
    """`opendev swarm FILE` is `opendev swarm run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `run` in front when the first word is no sub-command."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=DefaultRun, help="Batches of tickets. Example: opendev swarm tickets.toml", no_args_is_help=True
)


class Output(StrEnum):
    """How a run prints."""

    TEXT = "text"
    JSON = "json"
    STREAM = "stream-json"


class Format(StrEnum):
    """Forms of a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    JUNIT = "junit"


class SwarmRuntime(StrEnum):
    """Where the agents of a batch run."""

    RAY = "ray"
    LOCAL = "local"


Ended = tuple[RunReport, OSError | None]  # the report, and why its stream could not be written whole
OutputOption = Annotated[Output, typer.Option(help="how to print the result")]
RuntimeOption = Annotated[
    SwarmRuntime, typer.Option(help="ray: one process an agent; local: all in this process")
]


@app.command()
def run(  # noqa: PLR0913 - the command line is fixed
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="a ticket file: TOML, YAML, JSON or JSONL")],
    repo: Annotated[Path | None, typer.Option(help="the repository; default: the project")] = None,
    base: Annotated[str | None, typer.Option(help="the ref to start from")] = None,
    into: Annotated[str | None, typer.Option(help="the integration branch")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="tickets at work at once")] = None,
    model: Annotated[str | None, typer.Option(help="provider/NAME for tickets without a recipe")] = None,
    verify: Annotated[str | None, typer.Option(help="runs on every composed state")] = None,
    dirty: Annotated[Dirty | None, typer.Option(help="what to do with uncommitted changes")] = None,
    max_cost_usd: Annotated[
        float | None, typer.Option("--max-cost-usd", "--max-cost", help="cap of the whole run")
    ] = None,
    address: Annotated[str | None, typer.Option(help="an existing Ray cluster")] = None,
    output: OutputOption = Output.TEXT,
    runtime: RuntimeOption = SwarmRuntime.RAY,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show waves, overlaps and worst-case cost; run nothing")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="keep every worktree")] = False,
) -> None:
    """Run a batch. Example: opendev swarm run tickets.toml --concurrency 4 --output json"""
    project = open_project(repo or context.obj, {"runtime.address": address})
    overrides = Overrides(
        base=base,
        into=into,
        concurrency=concurrency,
        model=model,
        verify=verify,
        dirty=dirty.value if dirty else None,
        max_cost_usd=max_cost_usd,
    )
    plan = load_plan(file, agents=agent_types(own_agents(project).specs), overrides=overrides)
    project.layout.check_writable()
    keeper = open_keeper(project, project.path, plan.swarm.base)

    async def work() -> Ended | None:
        commit = await resolve_base(keeper, plan, file)
        if dry_run:
            files = await GitHistory(keeper.repo.admin).files(commit)
            view = make_plan(plan, base=commit, files=files)
            typer.echo(view.to_json() if output is not Output.TEXT else render_plan(view))
            return None
        options = BatchOptions(run_id=new_id(10), runtime=runtime.value, keep=keep)
        with _drawn(project, options.run_id, plan, output) as draw:
            return _streamed(draw, await run_batch(project, keeper, plan, commit, options, draw))

    _finish(asyncio.run(work()), output)


@app.command()
def plan(
    context: typer.Context,
    goal: Annotated[str, typer.Argument(help="what shall be true in the end, in a sentence or two")],
    out: Annotated[Path, typer.Option("-o", "--out", help="the ticket file to write; must not exist")],
    repo: Annotated[Path | None, typer.Option(help="the repository; default: the project")] = None,
    model: Annotated[str | None, typer.Option(help="provider/NAME, above every setting")] = None,
    max_cost_usd: Annotated[
        float | None, typer.Option("--max-cost-usd", "--max-cost", min=0, help="cap in US dollars")
    ] = None,
) -> None:
    """Let the Planner split a goal into a ticket file; never runs it. Example: opendev swarm plan "Port the CLI" -o port.toml"""
    project = open_project(repo or context.obj, {"model": model})
    options = PlanningOptions(goal=goal, out=out.absolute(), max_cost_usd=max_cost_usd)
    check_options(project, options)
    project.layout.check_writable()
    view = asyncio.run(write_plan(project, open_keeper(project, project.path), options))
    typer.echo(f"{render_plan(view)}\nLook at {out}, then run it: opendev swarm run {out}", err=True)


@app.command()
def resume(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="the id of a run")],
    output: OutputOption = Output.TEXT,
    runtime: RuntimeOption = SwarmRuntime.RAY,
    keep: Annotated[bool, typer.Option("--keep", help="keep every worktree")] = False,
) -> None:
    """Finish exactly what a run left unfinished. Example: opendev swarm resume k3v9x2ab1c"""
    project = open_project(context.obj)
    _known(project, run_id)

    async def work() -> Ended:
        options = BatchOptions(run_id=run_id, runtime=runtime.value, keep=keep)
        with _drawn(project, run_id, None, output) as draw:
            return _streamed(draw, (await resume_batch(project, run_id, options, draw))[1])

    _finish(asyncio.run(work()), output)


@app.command()
def status(context: typer.Context, run_id: Annotated[str, typer.Argument(metavar="RUN")]) -> None:
    """Say where a run stands, as JSON. Example: opendev swarm status k3v9x2ab1c"""
    typer.echo(status_of(_known(open_project(context.obj), run_id)).to_json())


@app.command()
def report(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    form: Annotated[Format, typer.Option("--format", help="text, json, html or junit")] = Format.TEXT,
) -> None:
    """Print the report of a run. Example: opendev swarm report k3v9x2ab1c --format html > report.html"""
    typer.echo(render(read_report(_known(open_project(context.obj), run_id)), form.value))


@app.command()
def cancel(context: typer.Context, run_id: Annotated[str, typer.Argument(metavar="RUN")]) -> None:
    """Stop a running batch; its work is kept. Example: opendev swarm cancel k3v9x2ab1c"""
    pid = cancel_run(_known(open_project(context.obj), run_id))
    typer.echo(f"Asked process {pid} to stop; `opendev swarm status {run_id}` says when it has.")


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="where to make it; default: a new temporary folder")
    ] = None,
    output: OutputOption = Output.TEXT,
    runtime: RuntimeOption = SwarmRuntime.RAY,
) -> None:
    """Make a small repository and a ticket file, run it offline, print the report. Example: opendev swarm demo"""
    place = folder or Path(tempfile.mkdtemp(prefix="opendev-demo-"))
    made = make_demo(place)
    project = open_project(made.repo, {"model": ""})
    project.layout.check_writable()
    plan = load_plan(made.tickets, agents=agent_types(own_agents(project).specs))
    keeper = open_keeper(project, made.repo, plan.swarm.base)
    typer.echo(f"The demo repository is {made.repo}, its tickets are {made.tickets}.", err=True)

    async def work() -> Ended:
        commit = await resolve_base(keeper, plan, made.tickets)
        options = BatchOptions(run_id=new_id(10), runtime=runtime.value)
        with _drawn(project, options.run_id, plan, output) as draw:
            return _streamed(draw, await run_batch(project, keeper, plan, commit, options, draw))

    _finish(asyncio.run(work()), output)


def _known(project: Project, run_id: str) -> Path:
    folder = project.layout.runs() / run_id
    if "/" in run_id or not folder.is_dir():
        raise OpenDevError(
            ErrorKind.USAGE,
            f"There is no run {run_id} under {folder.parent}.",
            "The id stands in the report.",
        )
    return folder


@contextlib.contextmanager
def _drawn(
    project: Project, run_id: str, plan: SwarmPlan | None, output: Output
) -> Generator[Callable[[Event], None]]:
    """What draws a run. While it does, nothing else reaches the user's stdout and stderr."""
    log = project.layout.run(run_id) / "runtime.log"
    with own_stdio() as stdio, stdio.diverted(log), SwarmView(stdio.err, plan) as view:
        yield JsonLines(stdio.out) if output is Output.STREAM else view


def _streamed(draw: Callable[[Event], None], found: RunReport) -> Ended:
    """The report as the stream's last line, by the writer of the others: its number follows theirs. And why the stream broke."""
    if not isinstance(draw, JsonLines):
        return found, None
    draw.report(found)
    return found, draw.lost


def _finish(ended: Ended | None, output: Output) -> None:
    if ended is None:
        return
    found, lost = ended
    match output:
        case Output.TEXT:
            shown = render(found, "text")
        case Output.JSON:
            shown = found.to_json() + "\n"
        case Output.STREAM:
            shown = ""
    raise typer.Exit(deliver(shown, int(found.exit_code), lost))
