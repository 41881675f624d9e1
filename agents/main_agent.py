"""The one concrete agent: main agent, built-in and custom sub-agents differ only by data (AGT-05, AGT-06)."""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace

from ..context.composer import Composer, create_agent_composer, create_default_composer
from ..context.sections import PromptContext, prompt_provider
from ..core.agent import AgentReport, AgentStatus, AgentTask
from ..core.approval import Mode
from ..core.chat import ModelFailed, ModelReply, ModelRequest, Role, ToolSchema, UserMessage
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.interrupt import InterruptToken
from ..tools.registry import ToolRegistry
from ..tools.skills import SkillLoader
from .assembly import Assembly
from .base import BaseAgent
from .inbox import Inbox
from .iteration import End, IterationContext
from .opening import stop_build
from .react import react
from .report import make_report
from .settings import AgentPorts, AgentSettings
from .summing_up import only_sums_up, sum_up
from .survey import survey


class MainAgent(BaseAgent):
    """An agent. ``allowed_tools`` None = every tool, else it is a sub-agent; the registry is already filtered by it.

    ``agents_on_offer`` is the text about sub-agents that stands in the description of ``spawn_subagent`` (AGT-07).
    """

    def __init__(  # noqa: PLR0913 - the constructor of AGT-05 and AGT-06
        self,
        config: AgentSettings,
        tool_registry: ToolRegistry,
        mode: Mode = Mode.NORMAL,
        *,
        ports: AgentPorts,
        allowed_tools: tuple[str, ...] | None = None,
        agents_on_offer: str = "",
        skills: SkillLoader | None = None,
        in_git_repo: bool = False,
    ) -> None:
        self.is_subagent = allowed_tools is not None
        self._subagent_system_prompt = ""
        self._ports = ports
        self._agents_on_offer = agents_on_offer
        self._skills = skills or SkillLoader()
        self._prompt = PromptContext(frozenset(tool_registry.names), in_git_repo)
        self._composer: Composer = create_default_composer()
        self._inbox = Inbox()
        self._registry = tool_registry
        super().__init__(config, tool_registry, mode)

    def adopt(self, prompt: str) -> None:
        """Take on the role of a sub-agent (step four of AGT-10): a template's name, or the prompt itself."""
        self._subagent_system_prompt = prompt
        self.refresh_tools()

    def build_system_prompt(self) -> str:
        """The stable part for the configured model; names no tool that the agent lacks (TOR-06). A run adds its dynamic part."""
        if self.is_subagent or self._subagent_system_prompt:
            self._composer = create_agent_composer(self._subagent_system_prompt or "main")
        model = self.config.models.get(Role.ACTION, "")
        return self._composer.compose_two_part(replace(self._prompt, model_provider=prompt_provider(model)))[
            0
        ]

    def build_tool_schemas(self) -> tuple[ToolSchema, ...]:
        """The schemas of the filtered registry (SUB-02), the agent types filled into ``spawn_subagent``."""
        return self.schemas_with(())

    def schemas_with(self, activated: Collection[str]) -> tuple[ToolSchema, ...]:
        """The same, with those of the deferred tools that are activated (MCP-02)."""
        return self._registry.schemas({"AGENTS": self._agents_on_offer or "none"}, activated)

    async def call_llm(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        """One model call through the port."""
        return await self._ports.model.complete(request, on_delta)

    def inject(self, text: str) -> bool:
        """Hand the running agent a message; False when it cannot take it (full, ended, blank). Safe from any thread."""
        return self._inbox.put(text)

    def run_sync(self, task: AgentTask, token: InterruptToken) -> AgentReport:
        """The full loop for a caller without an event loop."""
        return asyncio.run(self.run(task, token))

    async def run(self, task: AgentTask, token: InterruptToken) -> AgentReport:
        """Work on ``task`` until the end; failures are in the report. Raises only ``CancelledError``, without a stop by ``token``."""
        clock = self._ports.clock
        started = clock.monotonic()
        ctx: IterationContext | None = None
        try:
            if not task.spec.calls_model:
                end = await survey(task.prompt, self._ports.ask)
            else:
                ctx = await self._assembly().context(task, token)
                end = await (sum_up(ctx) if only_sums_up(task) else _bounded(ctx))
        except OpenDevError as error:
            config = error.info.kind in (ErrorKind.CONFIG, ErrorKind.USAGE)
            status = AgentStatus.FAILED if config else AgentStatus.INFRA
            end = End(status, ctx.said if ctx else "", error.info)
        if ctx is not None:
            end = await _close(ctx, end)
        return make_report(task, end, clock.monotonic() - started, ctx)

    def _assembly(self) -> Assembly:
        return Assembly(
            settings=self.config,
            ports=self._ports,
            registry=self._registry,
            composer=self._composer,
            prompt=self._prompt,
            tools=self.tool_schemas,
            inbox=self._inbox,
            call_llm=self.call_llm,
            schemas=self.schemas_with,
            skills=self._skills,
        )


async def _bounded(ctx: IterationContext) -> End:
    """The loop within the task's time. A cancellation that the token explains is an end like any other."""
    limit = ctx.task.budget.timeout_s
    timer = asyncio.timeout(limit)
    try:
        async with timer:
            return await react(ctx)
    except TimeoutError:
        if not timer.expired():
            raise
        message = f"The agent did not finish within {limit:g} s."
        return End(AgentStatus.TIMEOUT, ctx.said, ErrorInfo(kind=ErrorKind.TIMEOUT, message=message))
    except asyncio.CancelledError:
        if not ctx.interrupted() or ctx.end is None:
            await _close(ctx, End(AgentStatus.CANCELLED))
            raise
        return ctx.end


async def _close(ctx: IterationContext, end: End) -> End:
    """Leave a conversation that can be resumed: every call has a result, late messages are kept, all is on disk."""
    await stop_build(ctx)
    if ctx.cover is not None:
        await ctx.cover.close()
    ctx.messages.close_open_calls()
    for text in ctx.inbox.close():
        ctx.messages.add_user(UserMessage(content=text))
    try:
        await ctx.flush()
    except OpenDevError as error:
        end = End(AgentStatus.INFRA, end.text, end.error or error.info)
    ctx.memory.note(ctx.messages.snapshot(), ctx.usage, final=True)
    await ctx.memory.close(wait=end.status is AgentStatus.DONE)
    ctx.usage, ctx.model_calls = ctx.usage + ctx.memory.usage, ctx.model_calls + ctx.memory.calls
    with contextlib.suppress(OpenDevError):  # the conversation itself is on disk; its record is a help
        await ctx.transcript.ended(end.status, ctx.usage, ctx.model_calls, end.text)
    return end
