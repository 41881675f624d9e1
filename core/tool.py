"""What a tool is: a value with typed arguments, declared effects and one async function, given nothing but ports."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from .approval import ApprovalLevel, Mode
from .chat import ToolCall, ToolMessage
from .clock import Clock
from .errors import ErrorInfo, ErrorKind
from .interrupt import InterruptToken
from .model import Frozen, JsonObject
from .ports import (
    Asker,
    EventSink,
    Operations,
    Processes,
    SeenFiles,
    Shell,
    Spawner,
    Symbols,
    ToolDirectory,
    Vision,
)
from .scope import Scope


class Effect(StrEnum):
    """What a call may do to the world."""

    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    NET = "net"
    SPAWN = "spawn"
    ASK = "ask"


ALL_EFFECTS = frozenset(Effect)


class ToolResult(Frozen):
    """``text`` is for the model, ``summary`` (50-200 characters) for people and condensed views, ``changed`` root-relative paths."""

    ok: bool
    text: str
    summary: str = ""
    data: JsonObject | None = None
    error: ErrorInfo | None = None
    changed: tuple[str, ...] = ()

    @classmethod
    def failure(cls, message: str, hint: str = "", kind: ErrorKind = ErrorKind.TOOL) -> "ToolResult":
        """A readable failure (ERR-06)."""
        info = ErrorInfo(kind=kind, message=message, hint=hint)
        return cls(ok=False, text=f"Error: {info.sentence()}", error=info)


class TodoState(StrEnum):
    """A todo's life."""

    TODO = "todo"
    DOING = "doing"
    DONE = "done"


class Todo(Frozen):
    """One item of the agent's own list."""

    id: str
    text: str
    state: TodoState = TodoState.TODO
    log: str = ""


@dataclass(slots=True)
class AgentMemo:
    """What one agent's tools remember between calls: todos (at most 100) and how it declared the end."""

    todos: list[Todo] = field(default_factory=list[Todo])
    completed: JsonObject | None = None  # task_complete: {"status": "success"|"failure", "summary": str}
    completions_refused: int = 0  # task_complete was refused because todos were open (TSK-08: at most twice)
    activated: set[str] = field(default_factory=set[str])  # deferred tools whose schemas are sent (MCP-02)
    offered: set[str] = field(default_factory=set[str])  # installations a person was asked about (ARC-07)
    skills: set[str] = field(default_factory=set[str])  # loaded in this session (SKL-04)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of tool output (Catalogue K); characters, seconds, counts."""

    result_chars: int = 30_000
    keep_head: int = 10_000
    keep_tail: int = 10_000
    line_chars: int = 2_000
    read_lines: int = 2_000
    list_default: int = 100
    list_entries: int = 500
    search_matches: int = 50
    command_idle_s: float = 60.0
    command_total_s: float = 600.0
    startup_s: float = 20.0  # K24: how long a promoted command is watched before the call returns
    offload_chars: int = 8_000
    preview_chars: int = 500
    edit_similarity: Literal["locate", "apply"] = "locate"  # C-46: what edit passes 3 and 8 may do


@dataclass(frozen=True, slots=True)
class WebRules:
    """What web tools may reach, and which engine searches."""

    allow_private: bool = False  # loopback, local networks, link-local
    search_provider: str = "duckduckgo"


class Skill(Frozen):
    """What is known of a skill before it is loaded: its file, and the SHA-256 that the file must still have (SKL-02)."""

    name: str
    description: str
    path: str
    digest: str
    tier: Literal["project", "user"]
    namespace: str = "default"


class InnerCalls(Protocol):
    """Runs calls inside a call, each through every gate (BAT-02): one result per call, in order."""

    async def __call__(
        self, calls: Sequence[ToolCall], *, parallel: bool, stop: bool
    ) -> tuple[ToolMessage, ...]:
        """``stop``: after a failure the calls behind it do not run, and say so."""
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything a tool may touch. Never the process's own folder, environment or globals."""

    agent_id: str
    call_id: str
    root: Path  # the lease's folder, resolved
    scratch: Path  # outside the root; the agent may read and write it
    scope: Scope
    mode: Mode
    env: Mapping[str, str]  # for children: no keys, no pager, no editor
    clock: Clock
    shell: Shell
    ask: Asker
    spawner: Spawner
    symbols: Symbols
    seen: SeenFiles
    emit: EventSink
    interrupt: InterruptToken
    memo: AgentMemo
    limits: Limits = Limits()
    approve: ApprovalLevel = (
        ApprovalLevel.SEMI_AUTO
    )  # at AUTO, outside of plan mode, a plan needs no person (APR-09)
    plans: Path | None = None  # the folder of plan files
    plan: Path | None = None  # the one file in it that this agent may read and write
    directory: ToolDirectory | None = None  # the tools whose schemas are not sent yet
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    processes: Processes | None = None  # None: nothing can go on in the background here
    inner: InnerCalls | None = None  # set by the dispatcher; None inside an inner call
    offers: frozenset[str] = frozenset()  # the agent's tools by name: no advice names another (TOR-06)
    web: WebRules = WebRules()
    deny_read: tuple[str, ...] = ()  # files that no tool reads, as in a .gitignore
    vision: Vision | None = None  # None: no model can be asked here
    operations: Operations | None = None  # None: nothing written here can be undone (a worktree of its own)

    @property
    def own_places(self) -> tuple[Path, ...]:
        """What is open to file tools besides the root."""
        plan = () if self.plan is None else (self.plan,)
        return (self.scratch, *plan, *(self.processes.places if self.processes else ()))


A = TypeVar("A", bound=Frozen)


def _no_resources(_args: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """A tool. Schema, approval card, lock keys and doc page derive from ``args``; undeclared effects = all of them."""

    name: str
    category: str
    args: type[A]
    run: Callable[[A, ToolContext], Awaitable[ToolResult]]
    effects: frozenset[Effect] = ALL_EFFECTS
    resources: Callable[[A], tuple[str, ...]] = (
        _no_resources  # lock keys: two calls sharing one never run at once
    )
    aliases: Mapping[str, str] = field(
        default_factory=dict[str, str]
    )  # other spellings of argument names (C-22)
    poller: bool = False  # repetition is its nature (T-02)
    reports: bool = (
        False  # its result is a sub-agent's report: capped by itself and with the others of one answer
    )
    description: str = (
        ""  # of a tool that has no template: an MCP server's, which is data and not to be trusted
    )

    @property
    def read_only(self) -> bool:
        """Allowed in plan mode and run in parallel (the † of Catalogue T)."""
        return not self.effects & {Effect.WRITE, Effect.EXEC, Effect.SPAWN}
