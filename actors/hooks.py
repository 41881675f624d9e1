"""The hooks of the driver: around the session, what the user asks, and every agent that is started (HOK-01, SUB-16, LOOP-16)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from ..core.agent import AgentReport, AgentStatus, AgentTask
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event, Notice
from ..core.hooks import HookEvent, HookSet
from ..core.model import JsonObject
from ..core.ops import COMPACT
from ..tools.hooks import FINISH_S, Answer, HookEngine

_TEXT = 20_000  # characters of a result that a hook is told


class RunHooks:
    """One engine for all events outside of the agents' own. ``env`` holds no keys."""

    def __init__(
        self, hooks: HookSet, *, session: str, env: Mapping[str, str], emit: Callable[[Event], None]
    ) -> None:
        self._engine = HookEngine(hooks, session=session, env=env, emit=emit)
        self._emit, self._project = emit, hooks.project or "/"
        self._open = False
        self._asking: set[asyncio.Task[Answer]] = set()  # one a prompt or sub-agent that is about to start

    def session_started(self, startup: str) -> None:
        """``startup``: how the session began."""
        self._open = True
        self._engine.tell(HookEvent.SESSION_START, startup, {"startup_type": startup}, self._project)

    async def session_ended(self, wait_s: float = FINISH_S) -> None:
        """Run the hooks of the end, and wait for all that still run, at most ``wait_s`` seconds. Idempotent."""
        if self._open:
            self._open = False
            self._engine.tell(HookEvent.SESSION_END, "", {}, self._project)
        await self._engine.close(wait_s)

    def interrupt(self) -> None:
        """The user stops everything: hooks that are waited for are ended, and what waits for them does not start."""
        for asking in self._asking:
            asking.cancel()
        self._engine.hurry()

    async def around(
        self, task: AgentTask, run: Callable[[AgentTask], Awaitable[AgentReport]]
    ) -> AgentReport:
        """Run an agent that no other agent started: the one in the foreground answers the user's prompt and ends with Stop, the
        others (a swarm's) are sub-agents to their hooks. A refusal is a failed report."""
        name, prompt, cwd = task.spec.name, task.prompt, task.root
        if task.stream and prompt == COMPACT:  # a command, between two turns
            return await run(task)
        try:
            text = await (self.prompt(prompt, cwd) if task.stream else self.before(name, prompt, cwd))
        except OpenDevError as error:
            stopped = error.info.kind is ErrorKind.CANCELLED
            status = AgentStatus.CANCELLED if stopped else AgentStatus.FAILED
            return AgentReport(id=task.id, agent=name, status=status, error=error.info)
        report = await run(task if text == prompt else task.model_copy(update={"prompt": text}))
        if task.stream:
            self._ended(HookEvent.STOP, report, {}, cwd)
        else:
            self.after(report, prompt, cwd)
        return report

    async def typed(self, text: str) -> str:
        """What the user typed while an agent works, with what hooks add; empty when one refused it, and a notice says so."""
        if text.strip() == COMPACT:
            return text
        try:
            return await self.prompt(text, self._project)
        except OpenDevError as error:
            self._emit(Notice(level="error", text=error.info.sentence()))
            return ""

    async def prompt(self, text: str, cwd: str) -> str:
        """The user's prompt with what the hooks of UserPromptSubmit add. Raises ``OpenDevError`` (denied) when one refuses."""
        return await self._asked(
            HookEvent.USER_PROMPT_SUBMIT, "", {"user_prompt": text}, cwd, text, "The prompt was not sent"
        )

    async def before(self, agent: str, task: str, cwd: str) -> str:
        """The task with what the hooks of SubagentStart add. Raises ``OpenDevError`` (denied) when one refuses."""
        facts = {"agent_type": agent, "agent_task": task}
        return await self._asked(
            HookEvent.SUBAGENT_START, agent, facts, cwd, task, "The sub-agent was not started"
        )

    def after(self, report: AgentReport, task: str, cwd: str) -> None:
        """Start the hooks of SubagentStop."""
        self._ended(HookEvent.SUBAGENT_STOP, report, {"agent_task": task}, cwd)

    def _ended(self, event: HookEvent, report: AgentReport, facts: JsonObject, cwd: str) -> None:
        result = {"status": report.status.value, "text": report.text[:_TEXT]}
        told = {"agent_type": report.agent, **facts, "agent_id": report.id, "agent_result": result}
        self._engine.tell(event, report.agent, told, cwd)

    async def _asked(
        self, event: HookEvent, subject: str, facts: JsonObject, cwd: str, text: str, what: str
    ) -> str:
        asking = asyncio.ensure_future(self._engine.ask(event, subject, facts, cwd))
        self._asking.add(asking)
        try:
            await asyncio.wait({asking})
        finally:
            asking.cancel()
            self._asking.discard(asking)
        if asking.cancelled():
            raise OpenDevError(ErrorKind.CANCELLED, f"{what}: interrupted while a {event} hook ran.")
        answer = asking.result()
        if answer.refused or answer.question:
            why = answer.refused or f"{answer.question} (nobody can be asked about it)"
            message = f"{what}: a hook of the user refused it: {why}"
            raise OpenDevError(ErrorKind.DENIED, message, "No setting overrides a hook; do it another way.")
        return "\n\n".join((text, *answer.contexts))
