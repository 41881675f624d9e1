"""The foreground agent's task, of one prompt or of one turn of a conversation, and what must hold before it (BLG-05)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..agents.custom import agent_types
from ..core.agent import AgentReport, AgentStatus, AgentTask, Budget
from ..core.approval import Mode
from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError
from ..core.exits import Exit
from ..core.scope import Scope
from ..llm.replay import Replay
from ..store.atomic import JsonlLog
from ..store.sessions import OpenSession
from .project import Project
from .wiring import RuntimeKind, own_agents

_EXITS = {
    AgentStatus.DONE: Exit.DONE,
    AgentStatus.FAILED: Exit.FAILED,
    AgentStatus.EMPTY: Exit.FAILED,
    AgentStatus.ITERATION_CAP: Exit.FAILED,
    AgentStatus.TIMEOUT: Exit.FAILED,
    AgentStatus.VERIFY_FAILED: Exit.VERIFY,
    AgentStatus.BUDGET: Exit.BUDGET,
    AgentStatus.INFRA: Exit.INFRA,
    AgentStatus.UNANSWERED: Exit.UNANSWERED,
    AgentStatus.CANCELLED: Exit.INTERRUPTED,
}


@dataclass(frozen=True)
class PromptOptions:
    """The options of `-p`; of a conversation too, whose ``prompt`` is that of the present turn."""

    prompt: str
    output: str
    agent: str
    mode: Mode | None  # None: the session's, normal in a new one
    verify: str
    scope: Scope
    done: str
    max_iterations: int | None
    max_cost_usd: float | None
    runtime: RuntimeKind
    record: Path | None
    replay: Path | None
    resume: str | None = None  # a session's id, empty for the newest; None starts a new one


def chosen_models(project: Project, options: PromptOptions) -> dict[Role, str]:
    """The configured models; a replay where none is configured takes the one of the recording."""
    models = project.config.models()
    if options.replay is not None and Role.ACTION not in models:
        models[Role.ACTION] = Replay(JsonlLog(options.replay), str(options.replay)).model
    return models


def check_start(project: Project, options: PromptOptions, models: Mapping[Role, str]) -> None:
    """What must hold before `-p` starts. Raises ``OpenDevError`` (usage, config)."""
    if not options.prompt.strip():
        raise OpenDevError(
            ErrorKind.USAGE, "The prompt is empty.", 'Say what to do: opendev -p "Fix the failing test".'
        )
    check_options(project, options)
    need_model(models)


def check_options(project: Project, options: PromptOptions) -> None:
    """The agent type is known and no recording is written over. Raises ``OpenDevError`` (usage)."""
    if options.agent not in agent_types(own_agents(project).specs):
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no agent type `{options.agent}`.", "`opendev agents list` shows them."
        )
    if options.record is not None and options.record.exists() and options.record.stat().st_size:
        raise OpenDevError(
            ErrorKind.USAGE,
            f"The recording {options.record} exists already and is left alone.",
            "Name another file, or delete that one.",
        )


def need_model(models: Mapping[Role, str]) -> None:
    """Raises ``OpenDevError`` (config) when no model is configured."""
    if not models.get(Role.ACTION):
        raise OpenDevError(
            ErrorKind.CONFIG,
            "No model is configured.",
            "Set OPENDEV_MODEL=provider/NAME and the provider's key (for example OPENAI_API_KEY), or give --model.",
        )


def foreground_task(
    project: Project, held: OpenSession, options: PromptOptions, models: dict[Role, str]
) -> AgentTask:
    """The task of the main agent of a session, with what was said before. Blocking."""
    session = held.id
    spec = agent_types(own_agents(project).specs)[options.agent]
    if project.loaded.origins["model"][-1].layer == "command line":
        spec = spec.model_copy(update={"model": ""})  # --model is above every setting, the agent's own too
    return AgentTask(
        id=f"main-{session}",
        run_id=session,
        session=session,
        spec=spec,
        prompt=_four_parts(options),
        root=str(project.path),
        scope=options.scope,
        mode=options.mode or held.mode(),
        approve=project.config.approval_level,
        models=models,
        budget=Budget(max_cost_usd=options.max_cost_usd, max_iterations=options.max_iterations),
        scopes=(f"run:{session}",),
        verify=options.verify,
        history=held.files.history(),
        stream=True,
    )


def _four_parts(options: PromptOptions) -> str:
    """The prompt, with what it says about scope, verification and completion state (BLG-05); alone when it says nothing."""
    parts = {
        "You may change only": ", ".join(options.scope.may),
        "You must not change": ", ".join(options.scope.avoid),
        "It is done when": options.done,
        "This command must exit 0": options.verify if options.scope != Scope() or options.done else "",
    }
    said = [f"{head}: {text}" for head, text in parts.items() if text]
    return "\n\n".join([options.prompt, "\n".join(said)]) if said else options.prompt


def exit_of_report(report: AgentReport) -> Exit:
    """The exit code that tells how an agent ended."""
    if (
        report.status is AgentStatus.FAILED
        and report.error
        and report.error.kind in (ErrorKind.CONFIG, ErrorKind.USAGE)
    ):
        return Exit.USAGE
    return _EXITS[report.status]
