"""The one place where agents are built, for every user interface and every worker (AGT-07, AGT-08)."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.agent import AgentSpec, AgentTask
from ..core.approval import Mode
from ..core.tool import Tool
from ..tools.catalog import BUILTIN, RECIPE
from ..tools.registry import ToolRegistry
from ..tools.skills import SkillLoader
from .custom import agent_types
from .main_agent import MainAgent
from .settings import AgentPorts, AgentSettings
from .specs import MAIN, TODO_TOOLS, builtin_specs
from .subagents import SubAgentManager, on_offer


@dataclass(frozen=True, slots=True)
class AgentSuite:
    """What ``create_agents`` gives."""

    main: MainAgent
    subagents: SubAgentManager
    skills: SkillLoader


class AgentFactory:
    """Builds agents from settings and ports. ``tools`` are all there are; each agent gets its filtered view (ACT-03)."""

    def __init__(
        self,
        *,
        settings: AgentSettings,
        ports: AgentPorts,
        tools: Iterable[Tool[Any]] = BUILTIN,
        recipe_tools: Iterable[Tool[Any]] = RECIPE,
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._tools = tuple(tools)
        self._recipe_tools = tuple(recipe_tools)
        self._skills = SkillLoader(settings.skills)

    def create_agents(self, root: Path, mode: Mode = Mode.NORMAL) -> AgentSuite:
        """All agents for ``root``: skills, which every prompt lists, then sub-agents, since the main agent's
        ``spawn_subagent`` describes them."""
        manager = SubAgentManager(lambda spec: self._build(spec, root, mode, recipe=False))
        manager.register_defaults()
        manager.register_custom_agents(self._settings.custom)
        main = self._build(builtin_specs()[MAIN], root, mode, recipe=False)
        return AgentSuite(main, manager, self._skills)

    def agent_for(self, task: AgentTask) -> MainAgent:
        """The agent for one task, from nothing but the task: it may have crossed a process. Raises ``OpenDevError`` (config)."""
        return self._build(task.spec, Path(task.root), task.mode, recipe=bool(task.recipe))

    def _build(self, spec: AgentSpec, root: Path, mode: Mode, *, recipe: bool) -> MainAgent:
        allowed = spec.tools
        if allowed is not None:
            allowed = tuple(name for name in allowed if name not in TODO_TOOLS)  # SUB-04
        tools = self._tools
        if recipe:
            tools += self._recipe_tools
            if allowed is not None:
                allowed += tuple(tool.name for tool in self._recipe_tools)
        specs = agent_types(self._settings.custom)
        agent = MainAgent(
            self._settings,
            ToolRegistry(
                tools,
                allowed,
                self._ports.mcp.tools if self._ports.mcp else tuple,
                self._settings.schema_deferral,
            ),
            mode,
            ports=self._ports,
            skills=self._skills,
            allowed_tools=allowed,
            agents_on_offer=on_offer(specs.values()),
            in_git_repo=(root / ".git").exists(),
        )
        if spec.name != MAIN:
            agent.adopt(spec.prompt or spec.description)
        return agent
