"""Tickets of a swarm: the file's fields, recipe steps, states and the report (cli.md)."""

from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import Field, field_validator, model_validator

from .approval import ApprovalLevel
from .exits import Exit
from .model import Frozen, JsonObject, Persisted


class RenameSymbol(Frozen):
    """Rename a symbol with all its references, by a language server."""

    step: Literal["rename_symbol"] = "rename_symbol"
    symbol: str
    to: str
    path: str = ""


class Replace(Frozen):
    """Replace text, or a regular expression, in every file that matches ``glob``."""

    step: Literal["replace"] = "replace"
    pattern: str
    replacement: str = Field(alias="with")
    glob: str
    regex: bool = False


class Rewrite(Frozen):
    """A structural rewrite by ast-grep."""

    step: Literal["rewrite"] = "rewrite"
    lang: str
    pattern: str
    rewrite: str
    glob: str = ""


class Write(Frozen):
    """Create a file."""

    step: Literal["write"] = "write"
    path: str
    content: str


class Insert(Frozen):
    """Insert text after or before an anchor that occurs exactly once."""

    step: Literal["insert"] = "insert"
    path: str
    after: str = ""
    before: str = ""
    content: str

    @model_validator(mode="after")
    def _one_anchor(self) -> "Insert":
        if bool(self.after) == bool(self.before):
            raise ValueError("give exactly one of `after` and `before`")
        return self


class Delete(Frozen):
    """Delete a file."""

    step: Literal["delete"] = "delete"
    path: str


class Move(Frozen):
    """Move a file."""

    step: Literal["move"] = "move"
    source: str = Field(alias="from")
    to: str


class Run(Frozen):
    """Run a shell command; its exit code must be 0."""

    step: Literal["run"] = "run"
    command: str


RecipeStep = Annotated[
    RenameSymbol | Replace | Rewrite | Write | Insert | Delete | Move | Run, Field(discriminator="step")
]
STEPS: dict[str, type[Frozen]] = {
    "rename_symbol": RenameSymbol,
    "replace": Replace,
    "rewrite": Rewrite,
    "write": Write,
    "insert": Insert,
    "delete": Delete,
    "move": Move,
    "run": Run,
}


class Ticket(Frozen):
    """One task of a batch. Goal, scope, verification and completion state are its four parts (SWM-05)."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")
    goal: str = Field(min_length=1)
    scope: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    verify: str = ""
    done: str = ""
    depends_on: tuple[str, ...] = ()
    agent: str = "Coder"
    model: str = ""
    review: tuple[str, ...] = ()
    attempts: int = Field(default=2, ge=1, le=10)
    best_of: int = Field(default=1, ge=1, le=8)
    max_cost_usd: float | None = Field(default=None, gt=0)
    timeout_s: float = Field(default=1800, gt=0)
    recipe: tuple[RecipeStep, ...] = ()

    @field_validator("recipe", mode="before")
    @classmethod
    def _steps(cls, value: Any) -> Any:
        """``{name: {fields}}`` as written in a ticket file becomes a step; steps pass through."""
        if not isinstance(value, list | tuple):
            return value
        return tuple(_parse_step(item) for item in cast("list[Any]", value))


def _parse_step(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    fields = cast("JsonObject", item)
    if "step" in fields:
        return fields
    entries = list(fields.items())
    if len(entries) != 1 or entries[0][0] not in STEPS:
        raise ValueError(f"a recipe step has exactly one of the keys {', '.join(STEPS)}")
    return STEPS[entries[0][0]].model_validate(entries[0][1])


class Dirty(StrEnum):
    """What to do with uncommitted changes of the user's tree. Never dropped silently."""

    REFUSE = "refuse"
    SNAPSHOT = "snapshot"
    IGNORE = "ignore"


class Overlap(StrEnum):
    """What to do with tickets whose scopes overlap."""

    AUTO = "auto"
    PARALLEL = "parallel"
    SERIAL = "serial"
    REFUSE = "refuse"


class SwarmSettings(Frozen):
    """The table ``[swarm]`` of a ticket file."""

    base: str = "HEAD"
    into: str
    setup: str = ""
    copy_files: tuple[str, ...] = Field(default=(), alias="copy")
    verify: str = ""
    baseline: bool = True
    concurrency: int = Field(default=4, ge=1, le=64)
    max_cost_usd: float | None = Field(default=None, gt=0)
    approve: ApprovalLevel = ApprovalLevel.AUTO
    overlap: Overlap = Overlap.AUTO
    dirty: Dirty = Dirty.REFUSE
    model: str = ""


class SwarmPlan(Persisted):
    """A whole ticket file, validated."""

    swarm: SwarmSettings
    task: tuple[Ticket, ...] = Field(min_length=1)


class TaskStatus(StrEnum):
    """The final states of a ticket (cli.md). Only ``MERGED`` is success."""

    MERGED = "merged"
    VERIFY_FAILED = "verify_failed"
    CONFLICT = "conflict"
    OUT_OF_SCOPE = "out_of_scope"
    REJECTED = "rejected"
    SETUP_FAILED = "setup_failed"
    AGENT_FAILED = "agent_failed"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    INFRA = "infra"
    BLOCKED = "blocked"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


TASK_EXIT: dict[TaskStatus, Exit] = {
    TaskStatus.MERGED: Exit.DONE,
    TaskStatus.VERIFY_FAILED: Exit.VERIFY,
    TaskStatus.CONFLICT: Exit.CONFLICT,
    TaskStatus.OUT_OF_SCOPE: Exit.FAILED,
    TaskStatus.REJECTED: Exit.FAILED,
    TaskStatus.SETUP_FAILED: Exit.INFRA,
    TaskStatus.AGENT_FAILED: Exit.FAILED,
    TaskStatus.TIMEOUT: Exit.FAILED,
    TaskStatus.BUDGET: Exit.BUDGET,
    TaskStatus.INFRA: Exit.INFRA,
    TaskStatus.BLOCKED: Exit.UNANSWERED,
    TaskStatus.SKIPPED: Exit.FAILED,
    TaskStatus.CANCELLED: Exit.INTERRUPTED,
}


class Tokens(Frozen):
    """Token counts of a report."""

    input: int = 0
    output: int = 0
    cached: int = 0


class VerifyOutcome(Frozen):
    """One run of a verification command in a clean checkout."""

    command: str
    exit_code: int | None = None  # None: it did not end by itself
    wall_s: float = 0.0
    log: str = ""
    outcome: Literal["pass", "fail", "timeout", "infra", "not_run"] = "not_run"


class ReviewOutcome(Frozen):
    """A reviewer's machine-readable verdict; one that cannot be parsed is a rejection."""

    agent: str
    verdict: Literal["approve", "reject"]
    findings: tuple[JsonObject, ...] = ()


class TaskResult(Frozen):
    """One ticket in the report."""

    id: str
    status: TaskStatus
    attempts: int = 0
    branch: str = ""
    commit: str = ""
    merged_as: str = ""
    files: tuple[str, ...] = ()
    verify: VerifyOutcome | None = None
    reviews: tuple[ReviewOutcome, ...] = ()
    model_calls: int = 0
    tool_calls: int = 0
    tokens: Tokens = Tokens()
    cost_usd: float = 0.0
    wall_s: float = 0.0
    error: str | None = None


class AgentCounts(Frozen):
    """How many agents ran, how many at once, in which processes."""

    spawned: int = 0
    peak: int = 0
    pids: tuple[int, ...] = ()


class Leftovers(Frozen):
    """What a run leaves on purpose."""

    worktrees: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()


class RunReport(Persisted):
    """The report of a run, ``report.json`` (SWM-15)."""

    run_id: str
    status: Literal["succeeded", "partial", "failed", "cancelled"]
    exit_code: int
    repo: str
    base: str
    into: str
    head: str
    wall_s: float = 0.0
    cost_usd: float = 0.0
    tokens: Tokens = Tokens()
    model_calls: int = 0
    agents: AgentCounts = AgentCounts()
    phases: dict[Literal["plan", "spawn", "work", "verify", "integrate"], float] = {}
    tasks: tuple[TaskResult, ...] = ()
    leftovers: Leftovers = Leftovers()
    notes: tuple[str, ...] = ()  # the retrospective (SWM-02)
    sandbox: str = ""  # of its commands: bubblewrap, landlock, none; empty in older reports
