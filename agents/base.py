"""What an agent is: the abstract base and the Protocol that the rest of the program depends on (AGT-01..04)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ..core.agent import AgentReport, AgentTask
from ..core.approval import Mode
from ..core.chat import ModelFailed, ModelReply, ModelRequest, ToolSchema
from ..core.interrupt import InterruptToken
from ..tools.registry import ToolRegistry
from .settings import AgentSettings


@runtime_checkable
class AgentInterface(Protocol):
    """What callers may know of an agent."""

    @property
    def system_prompt(self) -> str: ...

    @property
    def tool_schemas(self) -> tuple[ToolSchema, ...]: ...

    def refresh_tools(self) -> None: ...

    async def call_llm(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed: ...

    def run_sync(self, task: AgentTask, token: InterruptToken) -> AgentReport: ...


class BaseAgent(ABC):
    """Prompt and schemas are built eagerly: no first-call delay, and a broken template shows at construction."""

    def __init__(self, config: AgentSettings, tool_registry: ToolRegistry, mode: Mode) -> None:
        self.config = config
        self.registry = tool_registry
        self.mode = mode
        self._system_prompt = self.build_system_prompt()
        self._tool_schemas = self.build_tool_schemas()

    @property
    def system_prompt(self) -> str:
        """The stable part of the system prompt: the same for every agent of this type in this project."""
        return self._system_prompt

    @property
    def tool_schemas(self) -> tuple[ToolSchema, ...]:
        """The schemas of exactly the tools this agent may call, sorted by name."""
        return self._tool_schemas

    def refresh_tools(self) -> None:
        """Build prompt and schemas again, after the registry or the role changed (AGT-03)."""
        self._system_prompt = self.build_system_prompt()
        self._tool_schemas = self.build_tool_schemas()

    @abstractmethod
    def build_system_prompt(self) -> str:
        """The stable system prompt."""

    @abstractmethod
    def build_tool_schemas(self) -> tuple[ToolSchema, ...]:
        """The schemas; the model client turns them into the provider's form."""

    @abstractmethod
    async def call_llm(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        """One model call."""

    @abstractmethod
    def run_sync(self, task: AgentTask, token: InterruptToken) -> AgentReport:
        """The full loop, outside of any event loop."""
