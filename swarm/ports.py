"""What a swarm run is given: ports of the rooms below, and its settings."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..core.agent import AgentReport, AgentSpec, AgentTask
from ..core.chat import Role
from ..core.clock import Clock
from ..core.ports import EventSink, LeaseDesk, Shell
from ..core.ticket import AgentCounts, VerifyOutcome
from ..worktrees.train import Landing


class Desk(LeaseDesk, Protocol):
    """The lease desk with the one thing only a swarm asks of it (``worktrees.keeper.Keeper``)."""

    async def drop_branch(self, branch: str, into: str = "") -> str:
        """Delete a branch whose work is proven to be on ``into``; says what happened."""
        ...


class MergeTrain(Protocol):
    """Lands commits on the integration branch one at a time, and makes clean checkouts (``worktrees.train.Train``)."""

    async def prepare(self, base: str) -> str:
        """Create the integration branch at ``base`` when it is missing; its head."""
        ...

    async def land(
        self,
        *,
        task: str,
        commit: str,
        base: str,
        message: str,
        verify: Callable[[Path, str], Awaitable[VerifyOutcome]],
        max_rounds: int = 3,
    ) -> Landing: ...

    async def checkout(self, commit: str) -> Path: ...

    async def drop(self, path: Path) -> None: ...


class NoteBoard(Protocol):
    """Tells running agents what concerns their files (``actors.board.Board``)."""

    async def post(self, author: str, text: str, paths: tuple[str, ...]) -> tuple[str, ...]: ...


class Agents(Protocol):
    """Runs agents (``actors.hub.Hub``); ``run_agent`` never raises."""

    async def run_agent(self, task: AgentTask) -> AgentReport: ...

    async def cancel(self, agent_id: str, reason: str) -> None: ...


class Ledger(Protocol):
    """The one book of model calls and its budgets (``actors.model_service.ModelService``)."""

    async def open_scope(self, scope: str, max_cost_usd: float | None, max_tokens: int | None) -> None: ...

    async def totals(self) -> dict[str, Any]: ...


class History(Protocol):
    """Questions about commits of the user's repository; all read-only. Raises ``OpenDevError`` (git)."""

    async def resolve(self, ref: str) -> str:
        """The commit a ref stands for; empty when there is none."""
        ...

    async def is_ancestor(self, commit: str, of: str) -> bool: ...

    async def tree(self, commit: str) -> str: ...

    async def files(self, commit: str) -> tuple[str, ...]: ...

    async def diff(self, base: str, commit: str) -> str: ...


@dataclass(frozen=True, slots=True)
class SwarmPorts:
    """The rooms a run talks to."""

    desk: Desk
    train: MergeTrain
    history: History
    agents: Agents
    shell: Shell  # of verification
    emit: EventSink
    clock: Clock
    setup_shell: Shell | None = None  # of the set-up command, when it may do more
    ledger: Ledger | None = None
    board: NoteBoard | None = None
    counts: Callable[[], AgentCounts] | None = None  # the hub's count of every agent, sub-agents included


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What is not in the ticket file. ``crash_after``: SIGKILL oneself after that many journal records (crash tests)."""

    run_id: str
    run_dir: Path
    repo: Path
    base: str  # a commit, 40 hex digits
    specs: Mapping[str, AgentSpec]
    models: Mapping[Role, str] = field(default_factory=dict[Role, str])
    stronger: str = ""  # takes over from the second attempt on (MOD-10); empty = nobody does
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # of setup and verification commands
    sandbox: str = "none"  # what confines the commands of the run
    unconfined: str = ""  # why nothing does
    keep: bool = False
    verify_timeout_s: float = 1800.0
    setup_timeout_s: float = 1800.0
    disk_floor_bytes: int = 200_000_000
    crash_after: int | None = None
