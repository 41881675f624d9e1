"""Everything one run of the loop knows: the conversation, the guards, the counters (LOOP-01)."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ..context.compaction import Compaction
from ..context.messages import ValidatedMessageList
from ..context.picker import ContextPicker
from ..context.reminders import Reminders
from ..context.thinking_input import ThinkingInput
from ..core.agent import AgentStatus, AgentTask
from ..core.chat import (
    FinishReason,
    MessageClass,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    ThinkingLevel,
    ToolCall,
    ToolSchema,
    Usage,
    UserMessage,
)
from ..core.clock import iso
from ..core.errors import ErrorInfo, ErrorKind
from ..core.events import Event, TodoLine, TodosChanged
from ..core.interrupt import InterruptToken
from ..core.model import JsonObject
from ..core.ops import COMPACT
from ..core.tool import AgentMemo, Todo, TodoState
from ..tools.dispatch import Dispatcher
from .children import Children
from .cover import Cover
from .doomloop import DoomLoop
from .inbox import Inbox
from .memory import Memory
from .recovery import Recovery
from .settings import AgentPorts, AgentSettings
from .transcript import Transcript
from .verifier import Verifier

_POLL_S = 0.05
T = TypeVar("T")


class CallModel(Protocol):
    """One model call; ``BaseAgent.call_llm``."""

    async def __call__(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed: ...


@dataclass(frozen=True, slots=True)
class End:
    """How the loop ends."""

    status: AgentStatus
    text: str = ""
    error: ErrorInfo | None = None


@dataclass(slots=True, kw_only=True)
class IterationContext:
    """The state of one run. Stages read and change it; it never leaves the process."""

    task: AgentTask
    settings: AgentSettings
    ports: AgentPorts
    token: InterruptToken
    inbox: Inbox
    call_llm: CallModel
    model: str
    cap: int
    system: SystemMessage
    tools: tuple[ToolSchema, ...]
    schemas: Callable[[Collection[str]], tuple[ToolSchema, ...]]  # with these deferred tools activated
    dispatcher: Dispatcher
    messages: ValidatedMessageList
    transcript: Transcript
    compaction: Compaction
    picker: ContextPicker
    memo: AgentMemo
    memory: Memory
    doom: DoomLoop
    recovery: Recovery
    verifier: Verifier
    reminders: Reminders
    children: Children
    thinks: ThinkingInput
    thinking: ThinkingLevel = ThinkingLevel.OFF
    cover: Cover | None = None  # None: what it changes is not under undo
    models: dict[Role, str] = field(default_factory=dict[Role, str])  # of this run, by role
    trace: str = ""  # the thoughts about the present step
    plan: JsonObject | None = None  # what ``present_plan`` gave when the plan was approved
    reads: int = 0  # answers in a row that only read
    map_build: asyncio.Task[None] | None = None  # of the repository map, beside this run
    mapped: bool = False  # the conversation holds the map
    iteration: int = 0
    told: tuple[Todo, ...] = ()  # the todos as screens know them
    nudges: Counter[str] = field(default_factory=Counter[str])
    usage: Usage = field(default_factory=Usage)
    model_calls: int = 0
    calls: tuple[ToolCall, ...] = ()  # of the present answer
    finish: FinishReason = FinishReason.STOP
    text: str = ""  # what the present answer says
    said: str = ""  # the last words that were not blank, partial ones included
    cut: list[str] = field(default_factory=list[str])  # pieces of an answer that was cut off
    unanswered: ErrorInfo | None = None  # an approval nobody gave, and nothing else was done since
    end: End | None = None

    def refresh_tools(self) -> None:
        """What was activated is sent from the next call on (MCP-02); where nothing is deferred, what a server lists by now."""
        everything = self.settings.schema_deferral == "off" and self.ports.mcp is not None
        if self.memo.activated or everything:
            self.tools = self.schemas(frozenset(self.memo.activated))

    async def flush(self) -> None:
        """Make the conversation and the agent's state durable. Raises ``OpenDevError`` (infra)."""
        self.transcript.keep(self.state())
        await self.transcript.flush()
        self._tell_todos()

    def _tell_todos(self) -> None:
        """Screens draw the list from events (TUI-05)."""
        if (todos := tuple(self.memo.todos)) != self.told:
            self.told = todos
            lines = tuple(TodoLine(id=todo.id, text=todo.text, state=todo.state.value) for todo in todos)
            self.emit(TodosChanged(todos=lines))

    def state(self) -> JsonObject:
        """What a later run of this session needs beside the messages (``resume.restore``); it stands in the record."""
        shown, memo = self.compaction.shown, self.memo
        state: JsonObject = {
            "mode": self.dispatcher.gate.mode.value,
            "todos": [todo.model_dump(mode="json") for todo in memo.todos],
            "activated": sorted(memo.activated),
            "skills": sorted(memo.skills),
        }
        if shown.summary is not None:
            state["view"] = {"upto": shown.upto, "summary": shown.summary.content}
        return state

    def emit(self, event: Event) -> None:
        """Send an event, stamped with run, agent and time."""
        stamp = {"run": self.task.run_id, "agent": self.task.id, "at": iso(self.ports.clock.now())}
        self.ports.emit(event.model_copy(update=stamp))

    def drain(self) -> None:
        """Move injected messages into the conversation (C-15: none is dropped); ``/compact`` is a command (CMP-15)."""
        for text in self.inbox.drain():
            if text.strip() == COMPACT:
                self.compaction.request()
            else:
                self.messages.add_user(UserMessage(content=text))

    def remind(self, name: str, msg_class: MessageClass = MessageClass.NUDGE, **values: object) -> None:
        """Put a reminder into the conversation, directly before the next model call (REM-01)."""
        self.messages.add_user(self.reminders.message(name, msg_class, **values))

    def nudge(self, name: str, cap: int) -> bool:
        """Count a nudge; False when its cap is used up (REM-06)."""
        if self.nudges[name] >= cap:
            return False
        self.nudges[name] += 1
        return True

    def open_todos(self) -> str:
        """The open todos, one a line; empty when there are none."""
        return "\n".join(
            f"- [{todo.state.value}] {todo.id}: {todo.text}"
            for todo in self.memo.todos
            if todo.state is not TodoState.DONE
        )

    def finish_with(self, status: AgentStatus, text: str = "", error: ErrorInfo | None = None) -> None:
        """End the loop after this stage; the last words are kept when there is no better text."""
        self.end = End(status, text or self.said, error)

    def interrupted(self) -> bool:
        """One of the six interrupt checks (LOOP-17): ends the loop when a stop was requested."""
        if self.token.is_set and self.end is None:
            reason = self.token.reason or "interrupted"
            error = ErrorInfo(kind=ErrorKind.CANCELLED, message=f"The agent was stopped: {reason}.")
            self.finish_with(AgentStatus.CANCELLED, error=error)
        return self.token.is_set

    async def unless_interrupted(self, work: Awaitable[T]) -> T | None:
        """The result of ``work``, or None when a stop was requested first; then ``work`` is cancelled and waited for."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_POLL_S)
                if self.token.is_set and not task.done():
                    self.interrupted()
                    return None
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
                if not task.cancelled():
                    task.exception()  # what failed on the way out has no reader: it was given up
