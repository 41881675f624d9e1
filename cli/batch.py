"""Runs a batch for the command line: resolves the base, wires keeper, train and hub, draws, and returns the report."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..agents.custom import agent_types
from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event
from ..core.ports import Ref
from ..core.ticket import Dirty, RunReport, SwarmPlan
from ..swarm.control import claim, load_run
from ..swarm.history import GitHistory
from ..swarm.ports import RunSettings, SwarmPorts
from ..swarm.recover import Recovered
from ..swarm.run import SwarmRun
from ..tools.shell.places import installs
from ..tools.shell.process import ProcessShell
from ..tools.shell.sandbox import Sandbox, Work, choose
from ..worktrees.doctor import Doctor
from ..worktrees.keeper import Keeper
from ..worktrees.train import Train
from .catalogue import keep_current
from .project import Project
from .signals import Wish, stopping
from .wiring import RuntimeKind, open_hub, open_keeper, own_agents


@dataclass(frozen=True)
class BatchOptions:
    """How a batch runs, besides its plan."""

    run_id: str
    runtime: RuntimeKind = "ray"
    keep: bool = False
    crash_after: int | None = None  # crash tests: SIGKILL after that many journal records


class LedgerRef:
    """The ledger of a model service behind its handle."""

    def __init__(self, ref: Ref) -> None:
        self._ref = ref

    async def open_scope(self, scope: str, max_cost_usd: float | None, max_tokens: int | None) -> None:
        """Set the budget of a scope."""
        await self._ref.ask("open_scope", scope, max_cost_usd, max_tokens)

    async def totals(self) -> dict[str, Any]:
        """What was spent, in all and by scope."""
        return await self._ref.ask("totals")


async def resolve_base(keeper: Keeper, plan: SwarmPlan, ticket_file: Path | None) -> str:
    """The commit a batch starts from, by the declared policy on uncommitted changes. Raises ``OpenDevError`` (usage), also when
    the integration branch cannot be one; nothing was made then."""
    await Train(keeper, plan.swarm.into, keeper.clock).check()
    commit, head = keeper.commit_of(plan.swarm.base), keeper.commit_of("HEAD")
    if plan.swarm.dirty is Dirty.IGNORE or commit != head:
        return commit
    own = str(await asyncio.to_thread(ticket_file.resolve)) if ticket_file else ""
    dirty = [path for path in await keeper.is_dirty() if str(keeper.repo.toplevel / path) != own]
    if not dirty:
        return commit
    if plan.swarm.dirty is Dirty.SNAPSHOT:
        return await keeper.snapshot()
    shown = ", ".join(dirty[:5]) + (f" and {len(dirty) - 5} more" if len(dirty) > 5 else "")
    raise OpenDevError(
        ErrorKind.USAGE,
        f"The checkout has uncommitted changes: {shown}. Nothing was started.",
        "Commit them, or say --dirty snapshot (start from them) or --dirty ignore (start from HEAD).",
    )


async def run_batch(
    project: Project,
    keeper: Keeper,
    plan: SwarmPlan,
    base: str,
    options: BatchOptions,
    draw: Callable[[Event], None],
) -> RunReport:
    """Run a new batch to its report."""
    return await _run(project, keeper, plan, base, options, draw, None)


async def resume_batch(
    project: Project, run_id: str, options: BatchOptions, draw: Callable[[Event], None]
) -> tuple[SwarmPlan, RunReport]:
    """Finish exactly what a run left unfinished. Working copies of dead holders are saved and removed first."""
    past = load_run(project.layout.run(run_id))
    # Before the hub: a second hub of a living run would, when it stops, end that run's processes.
    await asyncio.to_thread(claim, project.layout.run(run_id))
    keeper = await asyncio.to_thread(open_keeper, project, Path(past.began.repo), past.began.base)
    await Doctor(keeper).repair()
    return past.began.plan, await _run(project, keeper, past.began.plan, past.began.base, options, draw, past)


async def _run(  # noqa: PLR0913 - the composition of one run
    project: Project,
    keeper: Keeper,
    plan: SwarmPlan,
    base: str,
    options: BatchOptions,
    draw: Callable[[Event], None],
    past: Recovered | None,
) -> RunReport:
    wish = Wish()
    models = await asyncio.to_thread(_models, project, plan)
    with stopping(wish.say):  # around the hub as well: it must neither start nor stop half-way
        async with open_hub(
            project, options.run_id, options.runtime, desk=keeper, models=models, startup="swarm"
        ) as hub:
            drawing = asyncio.create_task(_draw(hub.subscribe(), draw))
            ports = SwarmPorts(
                desk=keeper,
                train=Train(keeper, plan.swarm.into, project.clock),
                history=GitHistory(keeper.repo.admin),
                agents=hub,
                shell=_shell(project, keeper, options.run_id, alone=True),
                setup_shell=_shell(project, keeper, options.run_id, alone=False),
                emit=hub.emit,
                clock=project.clock,
                ledger=LedgerRef(hub.model),
                board=hub.board,
                counts=lambda: hub.counts,
            )
            run = SwarmRun(plan, ports, _settings(project, keeper, plan, base, options), past=past)
            wish.pass_to(run.stop)  # agents are stopped, their work is kept, the report says cancelled
            report = await run.run()
        await drawing
    return report


def _shell(project: Project, keeper: Keeper, run_id: str, *, alone: bool) -> ProcessShell:
    """Runs verification (``alone``) or set-up, confined to the checkout it is for; a set-up may install, and fetch what it installs."""
    run_dir, config, env = project.layout.run(run_id), project.config.sandbox, project.environment.child_env()
    users = (keeper.repo.toplevel, keeper.repo.common)
    work = Work(fixed=users, alone=alone, installs=() if alone else installs(env))
    settings = config if alone else config.model_copy(update={"network": "allow"})
    sandbox = Sandbox(settings, work, env=env, home=project.layout.home)
    return ProcessShell(log_dir=run_dir / "commands", marker={"OPENDEV_RUN": run_id}, sandbox=sandbox)


def _models(project: Project, plan: SwarmPlan) -> tuple[str, ...]:
    """The models that tickets without a recipe name; what is known of them is brought up to date. A batch of recipes never
    touches the network."""
    if all(ticket.recipe for ticket in plan.task):
        return ()
    named = (plan.swarm.model, *(ticket.model for ticket in plan.task))
    keep_current(project, (*project.config.models().values(), *filter(None, named)))
    return tuple(filter(None, named))


def _settings(
    project: Project, keeper: Keeper, plan: SwarmPlan, base: str, options: BatchOptions
) -> RunSettings:
    config = project.config
    chosen = {Role.ACTION: plan.swarm.model} if plan.swarm.model else {}
    confined = choose(config.sandbox)
    return RunSettings(
        run_id=options.run_id,
        run_dir=project.layout.run(options.run_id),
        repo=keeper.repo.toplevel,
        base=base,
        specs=agent_types(own_agents(project).specs),
        models={**config.models(), **chosen},
        stronger=config.stronger_model(),
        env=project.environment.child_env(),
        sandbox=confined.kind,
        unconfined=confined.why if confined.kind == "none" else "",
        keep=options.keep,
        verify_timeout_s=config.swarm.verify_timeout_s,
        setup_timeout_s=config.swarm.setup_timeout_s,
        disk_floor_bytes=config.swarm.disk_floor_mb * 1_000_000,
        crash_after=options.crash_after,
    )


async def _draw(events: Any, draw: Callable[[Event], None]) -> None:
    async for event in events:
        draw(event)
