"""What every agent of a run is built from: settings (plain data, they cross processes) and ports."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..context.compaction import Compactor, Roster, no_children
from ..context.pressure import DEFAULT_THRESHOLDS
from ..core.agent import AgentSpec
from ..core.chat import Role, ThinkingLevel
from ..core.clock import Clock
from ..core.hooks import HookSet
from ..core.model import Frozen
from ..core.permissions import Permissions
from ..core.ports import Asker, EventSink, ModelClient, Processes, Shell, Spawner, Symbols
from ..core.tool import Limits, Skill, WebRules
from ..tools.hooked import AgentHooks
from ..tools.mcp.config import McpServer
from ..tools.mcp.manager import McpManager


class MemorySettings(Frozen):
    """Whether the project's playbook is used, and when it is extended: beside the work, only after the final answer, or never.

    The tokens that memory work may use in one run, the share of the run's own tokens beyond which no further reflection begins,
    and the seconds it may go on after the end."""

    playbook: bool = False
    learn: Literal["beside", "after", "never"] = "never"
    max_tokens: int = Field(default=50_000, ge=0)
    share: float = Field(default=0.1, ge=0, le=1)
    finish_s: float = Field(default=10.0, ge=0)


class UndoSettings(Frozen):
    """Whether the foreground agent's steps can be undone; what snapshots cover; seconds that one may hold up a call."""

    enabled: bool = False
    ignored: Literal["skip", "cover"] = "skip"
    max_files: int = 100_000
    max_file_mb: int = 10
    max_new_mb: int = 200
    wait_s: float = 5.0


class AgentSettings(Frozen):
    """Settings of agents. Windows are in tokens, by model; ``custom`` are the user's own agent types (CFG-11, SUB-15)."""

    models: dict[Role, str] = {}
    temperature: float | None = None
    max_tokens: int | None = None
    max_iterations: int = Field(default=100, ge=1)
    escalate_after: int = Field(default=0, ge=0)  # failures in a row; 0 = never
    escalate_to: str = ""
    subagent_iterations: int = Field(default=15, ge=1)
    context_limits: dict[str, int] = {}
    fallback_window: int = 128_000
    thresholds: tuple[float, ...] = DEFAULT_THRESHOLDS
    small_window: int = 64_000
    repo_map_tokens: int = Field(default=1_500, ge=0)  # 0 = no map
    auto_save_interval: int = Field(default=5, ge=1)  # turns between two writes of a session's record (K36)
    limits: Limits = Limits()
    blocked_commands: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    permissions: Permissions = Permissions()
    thinking: ThinkingLevel = ThinkingLevel.OFF
    schema_deferral: Literal["off", "external", "all"] = "external"
    custom: tuple[AgentSpec, ...] = ()
    mcp: tuple[McpServer, ...] = ()  # those that may be started, variables filled in
    skills: tuple[Skill, ...] = ()
    hooks: HookSet = HookSet()
    memory: MemorySettings = MemorySettings()
    undo: UndoSettings = UndoSettings()
    seeing: tuple[str, ...] = ()  # models known to see pictures
    web: WebRules = WebRules()

    def window(self, model: str) -> int:
        """The context window of ``model`` in tokens."""
        return self.context_limits.get(model, self.fallback_window)


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """The world of an agent. ``child_env`` holds no keys; ``home`` is the folder for transcripts and scratch files."""

    model: ModelClient
    shell: Shell
    ask: Asker
    spawner: Spawner
    symbols: Symbols
    emit: EventSink
    clock: Clock
    child_env: Mapping[str, str]
    home: Path
    compact: Compactor
    roster: Roster = no_children
    mcp: McpManager | None = None  # the MCP servers of this process
    hooks: AgentHooks | None = None
    processes: Processes | None = None  # None: nothing can run in the background
