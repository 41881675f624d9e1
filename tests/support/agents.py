"""Agents for tests: the real factory and tools around a scripted model, fakes for what reaches out of the process."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opendev.agents.factory import AgentFactory
from opendev.agents.main_agent import MainAgent
from opendev.agents.settings import AgentPorts, AgentSettings
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentReport, AgentTask
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest
from opendev.core.chat import Message, Question, Role
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.interrupt import InterruptToken
from opendev.core.ports import CommandResult, ModelClient
from opendev.core.tool import Tool
from opendev.tools.hooked import AgentHooks

from .scripted_model import ScriptedModel, Step
from .tool_context import EventLog, FakeSpawner, FakeSymbols


class ScriptedShell:
    """Plays exit codes; 0 when there are no more. ``hang`` waits until it is cancelled."""

    def __init__(self, *codes: int, hang: bool = False) -> None:
        self.commands: list[str] = []
        self.cancelled = 0
        self.began = asyncio.Event()
        self._codes = list(codes)
        self._hang = hang

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        idle_s: float,
        total_s: float,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        self.commands.append(command)
        self.began.set()
        if self._hang:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled += 1
        code = self._codes.pop(0) if self._codes else 0
        return CommandResult(exit_code=code, text=f"output of {command}", ended="exit", wall_s=0.1)


@dataclass
class People:
    """Whoever answers approvals and questions. ``decisions`` are played; then nobody answers."""

    decisions: list[str] = field(default_factory=list[str])
    answers: tuple[str, ...] | None = None
    asked: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.asked.append(request)
        decision = self.decisions.pop(0) if self.decisions else "no_answer"
        return ApprovalAnswer.model_validate({"decision": decision, "digest": request.digest})

    async def question(self, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        return self.answers


class NoCompactor:
    """A compactor that has failed."""

    async def summarise(self, messages: tuple[Message, ...], artifacts: str) -> str | ErrorInfo:
        return ErrorInfo(kind=ErrorKind.INFRA, message="the compactor is gone")


class Bench:
    """One agent in a temporary project."""

    def __init__(self, tmp_path: Path, *steps: Step, tools: tuple[Tool[Any], ...] | None = None) -> None:
        self.root = tmp_path / "project"
        self.home = tmp_path / "home"
        self.root.mkdir(exist_ok=True)
        self.model = ScriptedModel(*steps)
        self.client: ModelClient = self.model
        self.shell: Any = ScriptedShell()
        self.people = People()
        self.log = EventLog()
        self.events = self.log.events
        self.token = InterruptToken()
        self.settings = AgentSettings(models={Role.ACTION: "test/model"})
        self.compact: Any = NoCompactor()
        self.spawner = FakeSpawner()
        self.hooks: AgentHooks | None = None
        self._tools = tools
        self.agent: MainAgent | None = None

    def ports(self) -> AgentPorts:
        return AgentPorts(
            model=self.client,
            shell=self.shell,
            ask=self.people,
            spawner=self.spawner,
            symbols=FakeSymbols(),
            emit=self.log,
            clock=SystemClock(),
            child_env={"PATH": "/usr/bin:/bin"},
            home=self.home,
            compact=self.compact,
            hooks=self.hooks,
        )

    def factory(self) -> AgentFactory:
        extra: dict[str, Any] = {} if self._tools is None else {"tools": self._tools}
        return AgentFactory(settings=self.settings, ports=self.ports(), **extra)

    def task(self, agent: str = "Main", prompt: str = "Do it.", **fields: Any) -> AgentTask:
        given: dict[str, Any] = {"approve": ApprovalLevel.AUTO, "id": "a1", "run_id": "r1", **fields}
        return AgentTask(spec=builtin_specs()[agent], prompt=prompt, root=str(self.root), **given)

    async def run(self, agent: str = "Main", prompt: str = "Do it.", **fields: Any) -> AgentReport:
        task = self.task(agent, prompt, **fields)
        self.agent = self.factory().agent_for(task)
        return await self.agent.run(task, self.token)

    def kinds(self) -> list[str]:
        """The kinds of the events, in order."""
        return [event.kind for event in self.events]
