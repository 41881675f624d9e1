"""The composition root: builds the hub and the rooms around it from a project's settings."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ..actors.hub import Hub
from ..actors.isolation import Desk
from ..actors.sides import HubPorts, HubSettings
from ..actors.worker import WorkerSettings
from ..agents.custom import CustomAgents, agent_types, load_custom
from ..agents.settings import AgentSettings, MemorySettings, UndoSettings
from ..configs.schema import AppConfig
from ..core.agent import AgentSpec
from ..core.errors import OpenDevError
from ..core.events import Notice
from ..core.permissions import Rule
from ..core.ports import Runtime
from ..core.tool import Limits, WebRules
from ..store.permissions import add_rules
from ..tools.shell.sandbox import choose
from ..worktrees.keeper import Keeper
from .catalogue import local_file, open_catalog
from .extensions import Extensions, load_extensions
from .project import Project

RuntimeKind = Literal["auto", "ray", "local"]
Startup = Literal["startup", "resume", "swarm"]


@asynccontextmanager
async def open_hub(  # noqa: PLR0913 - the composition of one run
    project: Project,
    run_id: str,
    runtime: RuntimeKind,
    *,
    desk: Desk,
    record: Path | None = None,
    replay: Path | None = None,
    models: Iterable[str] = (),
    startup: Startup = "startup",
    keep: bool = False,
) -> AsyncGenerator[Hub]:
    """A started hub; it is stopped, and everything it started is dead, when the block is left. ``models`` are used beside the
    configured ones. ``keep``: background tasks of the foreground agent live on between its turns."""
    config = project.config
    custom, more, confined = await asyncio.gather(
        asyncio.to_thread(own_agents, project),
        asyncio.to_thread(load_extensions, project),
        asyncio.to_thread(choose, config.sandbox),
    )
    settings = HubSettings(
        run_id=run_id,
        runtime=runtime,
        max_concurrent=config.agents.max_concurrent,
        max_depth=config.agents.max_depth,
        max_total=config.agents.max_total,
        approval_timeout_s=config.agents.approval_timeout_s,
        cores=os.cpu_count() or 2,
        tiers=config.tier_models(),
        hooks=more.hooks,
        startup=startup,
    )
    memory = _memory(config, startup, keep=keep)
    agent = agent_settings(project, custom.specs, models).model_copy(update={"memory": memory})
    worker = _worker_settings(project, run_id, agent, more, keep=keep)
    ports = HubPorts(
        clock=project.clock,
        run_dir=project.layout.run(run_id),
        worker=worker.model_dump(mode="json"),
        model=model_settings(project, run_id, record, replay),
        specs=agent_types(custom.specs),
        desk=desk,
        make_ray=_ray_maker(project, run_id),
        history=project.layout.project(project.path),
        remember=_rule_saver(project),
    )
    hub = Hub(settings, ports)
    try:
        await hub.start()
        for text in (*project.loaded.warnings, *custom.refused, *custom.notes, *more.notes):
            hub.emit(Notice(level="warning", text=text))
        if confined.kind == "none":
            hub.emit(Notice(level="warning", text=confined.why))
        yield hub
    finally:
        await hub.stop()


async def refit(hub: Hub, project: Project, run_id: str) -> None:
    """The next agents of a conversation are built from the settings, files and servers as they are now (REPL-06)."""

    def read() -> tuple[WorkerSettings, CustomAgents]:
        custom = own_agents(project)
        memory = _memory(project.config, "resume", keep=True)
        agent = agent_settings(project, custom.specs).model_copy(update={"memory": memory})
        return _worker_settings(project, run_id, agent, load_extensions(project), keep=True), custom

    worker, custom = await asyncio.to_thread(read)
    await hub.refit(worker.model_dump(mode="json"), agent_types(custom.specs))


def _worker_settings(
    project: Project, run_id: str, agent: AgentSettings, more: Extensions, *, keep: bool
) -> WorkerSettings:
    """What every worker of a run gets."""
    added = {
        "mcp": more.mcp,
        "skills": more.skills,
        "hooks": more.hooks,
        "permissions": more.permissions,
    }
    return WorkerSettings(
        run_id=run_id,
        home=str(project.layout.home),
        child_env=project.environment.child_env(),
        agent=agent.model_copy(update=added),
        diagnostics=project.config.lsp.diagnostics == "on",
        sandbox=project.config.sandbox,
        keep=keep,
    )


def _memory(config: AppConfig, startup: Startup, *, keep: bool) -> MemorySettings:
    """When memory learns: beside the work in a conversation; in one prompt only after the answer, and by default only where a
    session goes on: a prompt costs the calls of its task, no others."""
    wanted = config.memory.learn
    learn = "never"
    if keep and wanted != "never":
        learn = "beside"
    elif wanted == "always" or (wanted == "sessions" and startup == "resume"):
        learn = "after"
    return MemorySettings.model_validate({**config.memory.model_dump(), "learn": learn})


def _rule_saver(project: Project) -> Callable[[tuple[Rule, ...]], None]:
    """Saves what a person always allows: for this project only, in the user's own file (APR-05)."""

    def save(rules: tuple[Rule, ...]) -> None:
        here = tuple(rule.model_copy(update={"project": str(project.path)}) for rule in rules)
        add_rules(project.layout.home, here, project.clock)

    return save


def own_agents(project: Project) -> CustomAgents:
    """The user's own agent types, and the project's as far as the user agreed to them. Blocking."""
    found = load_custom(project.layout.home, project.path)
    named = project.config.named_model
    specs = tuple(spec.model_copy(update={"model": named(spec.model)}) for spec in found.specs)
    return replace(found, specs=specs)


def agent_settings(
    project: Project, custom: tuple[AgentSpec, ...] = (), models: Iterable[str] = ()
) -> AgentSettings:
    """What every agent is built from; windows of the configured models, of the agents' own and of ``models`` (CFG-06)."""
    config = project.config
    catalog = open_catalog(project)
    own = (spec.model for spec in custom if spec.model)
    named = {*config.models().values(), *config.tier_models().values(), *own, *models}
    windows = {model: catalog.window(model, config.context.fallback_window) for model in named}
    if bound := config.max_context_tokens:
        windows = {model: min(window, bound) for model, window in windows.items()}
    return AgentSettings(
        models=config.models(),
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        max_iterations=config.agents.max_iterations,
        escalate_after=config.agents.escalate_after,
        escalate_to=config.stronger_model(),
        subagent_iterations=config.agents.subagent_iterations,
        context_limits=windows,
        fallback_window=min(
            config.context.fallback_window, config.max_context_tokens or config.context.fallback_window
        ),
        thresholds=config.context.thresholds,
        small_window=config.context.small_window,
        repo_map_tokens=config.context.repo_map_tokens,
        auto_save_interval=config.sessions.auto_save_interval,
        limits=tool_limits(config),
        blocked_commands=config.blocked_commands,
        deny_read=config.deny_read,
        schema_deferral=config.schema_deferral,
        thinking=config.thinking.level,
        custom=custom,
        seeing=tuple(sorted(filter(catalog.has_vision, named))),
        web=web_rules(config),
        undo=undo_settings(config),
    )


def undo_settings(config: AppConfig) -> UndoSettings:
    """What undo covers."""
    return UndoSettings.model_validate(config.undo.model_dump())


def web_rules(config: AppConfig) -> WebRules:
    """What web tools may reach."""
    return WebRules(allow_private=config.web.allow_private, search_provider=config.web.search_provider)


def tool_limits(config: AppConfig) -> Limits:
    """Bounds of tools."""
    return Limits(
        command_idle_s=config.commands.idle_s,
        command_total_s=config.commands.total_s,
        startup_s=config.commands.startup_s,
        offload_chars=config.context.offload_chars,
        edit_similarity=config.edit.similarity,
    )


def model_settings(project: Project, run_id: str, record: Path | None, replay: Path | None) -> dict[str, Any]:
    """Settings of the model service. Keys go nowhere else (CFG-04)."""
    config = project.config
    return {
        "env": project.environment.provider_env(),
        "journal": str(project.layout.run(run_id) / "ledger.jsonl"),
        "retry": config.retry.model_dump(mode="json"),
        "prices": {name: price.model_dump(mode="json") for name, price in config.prices.items()},
        "assumed_price": {
            "input": config.cost.assumed_input_usd,
            "output": config.cost.assumed_output_usd,
        },
        "record": str(record.absolute()) if record else None,
        "replay": str(replay.absolute()) if replay else None,
        "models_dev": str(local_file(project) or "") or None,
        "cache": str(project.layout.cache()),
        "preload": sorted(set(config.models().values())),
    }


def open_keeper(project: Project, repo: Path, base: str = "") -> Keeper:
    """The lease desk of a repository. Raises ``OpenDevError`` when it cannot be worked on."""
    return Keeper(
        repo=repo,
        home=project.layout.home,
        clock=project.clock,
        base=base,
        env=dict(project.environment.items()),
    )


def keeper_if_repository(project: Project) -> Keeper | None:
    """The lease desk, or None where the project is no repository with a commit: sub-agents that write are then refused."""
    try:
        return open_keeper(project, project.path)
    except OpenDevError:
        return None


def _ray_maker(project: Project, run_id: str) -> Callable[[Callable[[Path], None]], Runtime]:
    def make(on_session: Callable[[Path], None]) -> Runtime:
        from ..actors.ray_runtime import RayRuntime  # 0.7 s: only where processes are needed

        address, home = project.config.runtime.address, project.layout.home
        return RayRuntime(run_id=run_id, address=address, home=home, on_session=on_session)

    return make
