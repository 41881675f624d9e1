"""Agents as data: what an agent may do (spec), what it is asked (task), how it ended (report)."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from .approval import ApprovalLevel, Mode
from .chat import Message, Role, Usage
from .errors import ErrorInfo
from .model import Frozen, Persisted
from .scope import Scope
from .ticket import RecipeStep


class DockerConfig(Frozen):
    """The container an agent's commands run in (AGT-09). ``network``: none, bridge or host, as Docker means them."""

    image: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", max_length=300)
    network: Literal["none", "bridge", "host"] = "none"


class AgentSpec(Frozen):
    """One agent type. ``tools`` None = all; an empty tuple = none. ``writes`` = it gets a worktree of its own (ACT-07, C-36)."""

    name: str
    description: str
    prompt: str = (
        ""  # name of the template in templates/agents, or the prompt itself when it holds a line break
    )
    tools: tuple[str, ...] | None = None
    writes: bool = False
    max_iterations: int | None = None
    model: str = ""
    calls_model: bool = True  # the Ask-User agent makes no model call (SUB-14)
    builtin: bool = True
    docker: DockerConfig | None = None
    offered: bool = True  # listed in the description of spawn_subagent


class Budget(Frozen):
    """Hard caps; None = no cap of that kind."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_iterations: int | None = None
    timeout_s: float | None = None


class AgentTask(Persisted):
    """One assignment, complete in itself: it crosses processes and can be run again from disk."""

    id: str  # the agent's id
    run_id: str
    session: str = ""  # of the foreground agent: its transcript is that session's, in the project's folder
    spec: AgentSpec
    prompt: str
    root: str  # absolute path of the folder it works in
    parent: str = ""
    depth: int = 0
    attempt: int = 1
    scope: Scope = Scope()
    recipe: tuple[RecipeStep, ...] = ()
    mode: Mode = Mode.NORMAL
    approve: ApprovalLevel = ApprovalLevel.SEMI_AUTO
    models: dict[Role, str] = {}
    budget: Budget = Budget()
    scopes: tuple[str, ...] = ()  # ledger scopes its model calls are charged to
    verify: str = ""  # completion is refused until this command exits 0
    history: tuple[Message, ...] = ()  # a resumed agent's earlier messages (SUB-09)
    stream: bool = False  # only the foreground agent streams
    env: dict[str, str] = {}  # extra variables for its commands


class AgentStatus(StrEnum):
    """How an agent ended. Only ``DONE`` is success."""

    DONE = "done"
    FAILED = "failed"
    EMPTY = "empty"  # it ended without a word: counted as a failure
    ITERATION_CAP = "iteration_cap"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNANSWERED = "unanswered"
    VERIFY_FAILED = "verify_failed"
    INFRA = "infra"


class AgentReport(Persisted):
    """The result that crosses back; only the final text, never the transcript (SUB-03)."""

    id: str
    agent: str
    status: AgentStatus
    text: str = ""
    error: ErrorInfo | None = None
    turns: int = 0
    tool_calls: int = 0
    model_calls: int = 0
    usage: Usage = Usage()
    wall_s: float = 0.0
    files_changed: tuple[str, ...] = ()
    pid: int = 0
    transcript: str = ""  # path of its JSONL transcript
    branch: str = ""  # a writing sub-agent's branch, with its commits
    commit: str = ""


class SpawnRequest(Frozen):
    """A call of ``spawn_subagent``."""

    call_id: str
    agent: str
    prompt: str
    background: bool = False
    resume: str = ""  # an earlier agent id
    model: str = ""  # a model, or a tier: haiku, sonnet, opus (SUB-10)
    mode: Mode | None = (
        None  # None: the mode the asking agent was started in; an approved plan ends plan mode (C-08)
    )
