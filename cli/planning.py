"""`opendev swarm plan`: one run of the Planner over the repository, reading only; its checked ticket file is written, never run."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..actors.hub import Hub
from ..agents.custom import agent_types
from ..core.agent import AgentReport, AgentSpec, AgentTask, Budget
from ..core.approval import Mode
from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.ops import Interrupt
from ..store.atomic import write_atomic
from ..swarm.history import GitHistory
from ..swarm.plan import PlanView, make_plan
from ..swarm.planner import Draft, draft_plan, planner_spec
from ..swarm.tickets import load_plan
from ..ui.terminal import PromptLines
from ..worktrees.keeper import Keeper
from .project import Project
from .signals import stopping
from .stdio import own_stdio
from .wiring import open_hub, own_agents


@dataclass(frozen=True)
class PlanningOptions:
    """The options of `swarm plan`."""

    goal: str
    out: Path
    max_cost_usd: float | None


def check_options(project: Project, options: PlanningOptions) -> None:
    """Raise ``OpenDevError`` (usage, config) before anything is started."""
    if not options.goal.strip():
        raise OpenDevError(ErrorKind.USAGE, "The goal is empty.", "Say in a sentence what shall be true.")
    if options.out.suffix != ".toml":
        raise OpenDevError(ErrorKind.USAGE, f"{options.out} does not end in .toml.", "Name a file that does.")
    if options.out.exists():
        raise OpenDevError(
            ErrorKind.USAGE, f"{options.out} exists already and is left alone.", "Name another file."
        )
    if not project.config.models().get(Role.ACTION):
        raise OpenDevError(
            ErrorKind.CONFIG,
            "No model is configured, and planning needs one.",
            "Set OPENDEV_MODEL=provider/NAME and the provider's key (for example OPENAI_API_KEY), or give --model.",
        )


async def write_plan(project: Project, keeper: Keeper, options: PlanningOptions) -> PlanView:
    """Ask the Planner, check its answer, write the file, and return what it would do. Raises ``OpenDevError``."""
    run_id = new_id(10)
    with own_stdio() as stdio, stdio.diverted(project.layout.run(run_id) / "runtime.log"):
        async with open_hub(project, run_id, "local", desk=None, startup="swarm") as hub:
            drawing = asyncio.create_task(_draw(hub, stdio.err))
            draft = await _ask(project, keeper, hub, run_id, options)
        await drawing
    check_options(project, options)  # nobody wrote the file meanwhile
    await asyncio.to_thread(write_atomic, options.out, draft.text.encode(), 0o644)
    return draft.view


async def _ask(project: Project, keeper: Keeper, hub: Hub, run_id: str, options: PlanningOptions) -> Draft:
    specs = agent_types((await asyncio.to_thread(own_agents, project)).specs)
    scope = f"run:{run_id}"
    await hub.model.ask("open_scope", scope, options.max_cost_usd, None)
    asked: list[asyncio.Task[None]] = []

    async def ask(prompt: str) -> AgentReport:
        return await hub.run_agent(
            AgentTask(
                id=f"planner-{new_id(8)}",
                run_id=run_id,
                spec=planner_spec(specs["Planner"], project.config.agents.max_iterations),
                prompt=prompt,
                root=str(project.path),
                mode=Mode.PLAN,
                approve=project.config.approval_level,
                models=project.config.models(),
                budget=Budget(max_cost_usd=options.max_cost_usd),
                scopes=(scope,),
            )
        )

    async def check(text: str) -> PlanView:
        return await _view(keeper, text, options.out.name, specs)

    def interrupt(_why: str) -> None:
        asked.append(asyncio.ensure_future(hub.submit(Interrupt())))

    branch = await asyncio.to_thread(_branch, keeper)
    with stopping(interrupt):
        return await draft_plan(options.goal, branch=branch, specs=specs, ask=ask, check=check)


def _branch(keeper: Keeper) -> str:
    """The branch that is checked out; HEAD when none is."""
    name = keeper.repo.user_tree().line("rev-parse", "--abbrev-ref", "HEAD")
    return name or "HEAD"


async def _view(keeper: Keeper, text: str, name: str, specs: Mapping[str, AgentSpec]) -> PlanView:
    """What the ticket file would do, on this repository. Raises ``OpenDevError`` (usage) with every problem."""
    with tempfile.TemporaryDirectory(prefix="opendev-plan-") as folder:
        path = Path(folder) / name
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        try:
            plan = load_plan(path, agents=specs)
        except OpenDevError as error:
            message = error.info.message.replace(f"{folder}/", "")
            raise OpenDevError(error.info.kind, message, error.info.hint) from error
    try:
        base = await asyncio.to_thread(keeper.commit_of, plan.swarm.base)
    except OpenDevError as error:  # the model's word, not git's trouble: it may mend it
        raise OpenDevError(ErrorKind.USAGE, f"{name}: swarm.base: {error.info.message}") from error
    return make_plan(plan, base=base, files=await GitHistory(keeper.repo.admin).files(base))


async def _draw(hub: Hub, to: TextIO) -> None:
    draw = PromptLines(to)
    async for event in hub.subscribe():
        draw(event)
