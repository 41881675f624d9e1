"""What every agent of a run is built from: settings (plain data, they cross processes) and ports."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from ..context.compaction import Compactor
from ..context.pressure import DEFAULT_THRESHOLDS
from ..core.agent import AgentSpec
from ..core.chat import Role, ThinkingLevel
from ..core.clock import Clock
from ..core.model import Frozen
from ..core.ports import Asker, EventSink, ModelClient, Shell, Spawner, Symbols
from ..core.tool import Limits


class AgentSettings(Frozen):
    """Settings of agents. Windows are in tokens, by model; ``custom`` are the user's own agent types (CFG-11, SUB-15)."""

    models: dict[Role, str] = {}
    temperature: float | None = None
    max_tokens: int | None = None
    max_iterations: int = Field(default=100, ge=1)
    subagent_iterations: int = Field(default=15, ge=1)
    context_limits: dict[str, int] = {}
    fallback_window: int = 128_000
    thresholds: tuple[float, ...] = DEFAULT_THRESHOLDS
    limits: Limits = Limits()
    blocked_commands: tuple[str, ...] = ()
    thinking: ThinkingLevel = ThinkingLevel.OFF
    custom: tuple[AgentSpec, ...] = ()

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
