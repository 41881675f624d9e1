"""Planning as delegation: who gets a plan file, and when a prompt starts with the Planner (LOOP-22, LOOP-23, SUB-12, C-08)."""

from pathlib import Path

from ..context.cautions import cautions
from ..context.detectors import wants_plan
from ..core.agent import AgentTask
from ..core.approval import Mode
from ..core.chat import MessageClass
from ..store.plans import PlanShelf
from .iteration import IterationContext
from .settings import AgentPorts

PLANNER = "Planner"
_COMMAND = "/plan"


def plan_file(task: AgentTask, tools: tuple[str, ...], ports: AgentPorts, root: Path) -> Path | None:
    """The one file a Planner writes; for an agent that goes on with a session, the plan it has. Blocking."""
    shelf = PlanShelf(ports.home, ports.clock)
    if task.spec.name == PLANNER and "write_file" in tools:
        return shelf.reserve(agent=task.id, session=task.run_id, project=root)
    if "present_plan" in tools and task.history:
        return shelf.latest(session=task.run_id, project=root)
    return None


def starting_mode(task: AgentTask, plan: Path | None) -> Mode:
    """The mode an agent starts in. A Planner writes nothing but its plan file and its scratch folder, in either mode."""
    return Mode.NORMAL if plan is not None and task.spec.name == PLANNER else task.mode


def plan_note(task: AgentTask, plan: Path | None) -> str:
    """The line of the environment that names a Planner's file."""
    return f"\n- Plan file, the only file you write: {plan}" if plan and task.spec.name == PLANNER else ""


def prompt_of(task: AgentTask) -> str:
    """The user's words, without the command ``/plan``."""
    text = task.prompt.lstrip()
    if text.startswith((f"{_COMMAND} ", f"{_COMMAND}\n")):
        return text[len(_COMMAND) :].strip() or task.prompt
    return task.prompt


def route(ctx: IterationContext, plan: Path | None) -> None:
    """Decide once per prompt whether it starts with planning; point to the plan that a resumed session has."""
    task = ctx.task
    can_plan = {"present_plan", "spawn_subagent"} <= set(ctx.dispatcher.registry.names)
    if not can_plan or task.depth or task.recipe:
        return
    if plan is not None:
        ctx.remind("plan_file_reference", MessageClass.INTERNAL, path=plan)
    if task.mode is Mode.PLAN or wants_plan(task.prompt):
        ctx.remind("plan_requested", MessageClass.DIRECTIVE)
    elif not task.verify and (why := cautions(task.prompt)):
        ctx.remind("goal_unclear", MessageClass.DIRECTIVE, why="; ".join(why))
