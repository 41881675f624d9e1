"""Ports: what one room needs of another, as Protocols. Implementations are wired in ``cli/wiring.py``."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from .agent import AgentReport, SpawnRequest
from .approval import ApprovalAnswer, ApprovalRequest
from .chat import ImagePart, ModelFailed, ModelReply, ModelRequest, Question, ToolSchema
from .errors import ErrorInfo
from .events import Event
from .lease import Lease
from .mail import Down
from .model import Frozen


class EventSink(Protocol):
    """Takes events; never blocks, never raises."""

    def __call__(self, event: Event, /) -> None: ...


class ModelClient(Protocol):
    """Calls a model. A failure is a value; only cancellation is raised."""

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed: ...


class Vision(Protocol):
    """Asks the vision model of a run about one picture. Raises ``OpenDevError`` (config) when no model sees (MOD-02)."""

    async def __call__(self, question: str, image: ImagePart, /) -> ModelReply | ModelFailed: ...


class Asker(Protocol):
    """Reaches a person, through the hub."""

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer: ...

    async def question(self, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        """The answers in order; None when nobody answered."""
        ...


class Spawner(Protocol):
    """Starts sub-agents, through the hub's broker."""

    async def spawn(self, request: SpawnRequest) -> AgentReport | str | ErrorInfo:
        """A report; for a background agent its id; an error when the broker refuses."""
        ...

    async def output(self, agent_id: str, wait_s: float) -> AgentReport | str | ErrorInfo:
        """The report of a background agent, or its id while it runs."""
        ...


class ToolDirectory(Protocol):
    """The tools that an agent may call and whose schemas it is sent only once they are activated (MCP-01)."""

    def deferred(self) -> tuple[ToolSchema, ...]:
        """All of them, activated or not, sorted by name."""
        ...

    async def settled(self, wait_s: float) -> tuple[str, ...]:
        """Wait until every source has been read, at most ``wait_s`` seconds; one sentence for each that could not be (yet)."""
        ...


class CommandResult(Frozen):
    """How a command ended. ``text`` is stdout and stderr in order of arrival, cleaned, head and tail kept."""

    exit_code: int | None  # None: it was killed by us
    signal: int | None = None
    text: str
    omitted_bytes: int = 0
    log: str = ""  # path of the full (bounded) log
    ended: Literal["exit", "idle", "total", "cancelled"]
    survivors: tuple[int, ...] = ()  # pids of its group that still run on purpose (``&``)
    wall_s: float


class Shell(Protocol):
    """Runs a command in a process group of its own, standard input closed."""

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        idle_s: float,
        total_s: float,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult: ...


class ProcessState(StrEnum):
    """The life of a background task (SHL-11). ``KILLED``: by a signal, ours or another's."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"


class ProcessInfo(Frozen):
    """One background task. ``started`` is on the monotonic clock, ``wall_s`` in seconds, ``output`` the path of its output file."""

    id: str
    command: str
    pid: int
    state: ProcessState = ProcessState.RUNNING
    exit_code: int | None = None  # 128 + the signal when one ended it
    signal: int | None = None
    started: float
    wall_s: float = 0.0
    output: str = ""
    survivors: tuple[int, ...] = ()  # pids of its group that outlive it


class Processes(Protocol):
    """Background tasks of one agent, each on a terminal of its own (SHL-10). Raises ``OpenDevError`` (not found) for an id it does not know."""

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders in which its output files may lie; the agent may read them."""
        ...

    async def start(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> ProcessInfo:
        """Start it. Raises ``OpenDevError`` (tool) when too many run or it cannot be started."""
        ...

    async def wait(self, id: str, seconds: float) -> ProcessInfo:
        """How it is when it ended, or after ``seconds``."""
        ...

    def first_output(self, id: str) -> tuple[str, int]:
        """The text so far and the bytes left out of it; later output is in the output file only."""
        ...

    def live(self, id: str) -> str:
        """What it wrote since the last look, at most the last 4,000 characters."""
        ...

    def tasks(self) -> tuple[ProcessInfo, ...]:
        """All that are known, oldest first."""
        ...

    async def tail(self, id: str, lines: int) -> str:
        """The last lines of its output, cleaned."""
        ...

    async def kill(self, id: str) -> ProcessInfo:
        """End its whole group: SIGTERM, 5 s, SIGKILL."""
        ...

    def told(self, id: str) -> None:
        """The agent knows how this task ended; it is in no later notice."""
        ...

    def take_ended(self) -> tuple[ProcessInfo, ...]:
        """Tasks that ended and whose end the agent does not know yet; each once."""
        ...

    async def close(self) -> None:
        """End all of them."""
        ...


class SymbolPlace(Frozen):
    """Where a symbol is defined. Lines and columns count from 1; ``path`` is root-relative."""

    name: str
    name_path: str
    kind: str
    path: str
    line: int
    column: int
    body: str = ""
    start: tuple[int, int] = (0, 0)  # the whole definition; lines and code points from 0, the end exclusive
    end: tuple[int, int] = (0, 0)


class SymbolUse(Frozen):
    """One reference to a symbol; line and column count from 1, ``text`` is the line."""

    path: str
    line: int
    column: int
    text: str


class CodeProblem(Frozen):
    """An error a language server found in a file; line and column count from 1."""

    line: int
    column: int
    message: str


class TextEdit(Frozen):
    """A replacement in one file; lines and columns (in code points) count from 0, the end is exclusive."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class Symbols(Protocol):
    """Semantic look-ups by language servers. Raises ``OpenDevError`` that names a missing server."""

    async def find(self, root: Path, name: str, path: str | None) -> tuple[SymbolPlace, ...]: ...

    async def rename_edits(
        self, root: Path, place: SymbolPlace, new_name: str
    ) -> dict[str, tuple[TextEdit, ...]]:
        """The edits by root-relative path, in files of the root only."""
        ...

    async def references(
        self, root: Path, place: SymbolPlace, *, include_declaration: bool
    ) -> tuple[SymbolUse, ...]:
        """Every reference in files of the root, by path and line."""
        ...

    async def problems(self, root: Path, path: str) -> tuple[CodeProblem, ...] | None:
        """Errors in the present text of a file (FIL-10); None when no server runs that could tell in time. Never raises
        ``OpenDevError``."""
        ...

    async def close(self) -> None: ...


class SeenFiles(Protocol):
    """Which content of a file the agent has seen (FIL-04); by hash, so that the clock does not matter."""

    def record(self, path: Path, content: bytes) -> None: ...

    def assert_fresh(self, path: Path, content: bytes) -> None:
        """Raise ``OpenDevError`` when the file changed since the agent read it."""
        ...


class Operations(Protocol):
    """The operation log: told by each file tool what it wrote (UND-01). Safe from any thread, never raises."""

    def note(self, path: Path, before: bytes | None, after: bytes | None, perm: int = 0) -> None:
        """Whole contents; None = no file. ``path`` is real and absolute, ``perm`` that of the file before."""
        ...


class LeaseDesk(Protocol):
    """Hands out working folders; the one owner of git administration of a repository. Raises ``OpenDevError`` (git)."""

    async def lease(
        self, *, write: bool, task: str, run_id: str, base: str = "", private: bool = False
    ) -> Lease:
        """A folder at commit ``base`` (default: the pinned base); a write lease has its own worktree and branch.

        ``private``: a read lease with a disposable folder of its own, for agents with run_command (C-36).
        """
        ...

    async def snapshot(self, folder: str = "") -> str:
        """The present files of a folder as a commit (its HEAD when clean): the user's checkout (empty), one in it, or a leased one."""
        ...

    async def commit(self, lease: Lease, message: str) -> str:
        """Commit everything changed in a write lease's folder; the commit, or the base when nothing changed."""
        ...

    async def changed(self, lease: Lease) -> tuple[str, ...]:
        """Paths that differ between the base and the folder's present content, untracked files included."""
        ...

    async def release(self, lease: Lease) -> str:
        """Give the folder back once its work is proven durable; says what became of it."""
        ...

    async def quarantine(self, lease: Lease, reason: str) -> str:
        """Save work in progress under ``refs/opendev/rescue/<id>`` and give the folder back; the ref's name."""
        ...


class Ref(Protocol):
    """A handle of one actor. Arguments and results are plain JSON-able values, bytes, or pydantic values."""

    @property
    def name(self) -> str: ...

    async def ask(self, method: str, *args: Any) -> Any:
        """Call and wait. Raises ``OpenDevError`` (kind infra) when the actor is dead. Cancelling the await cancels the call."""
        ...

    def stream(self, method: str, *args: Any) -> AsyncIterator[Any]:
        """Call an async-generator method; leaving the loop cancels the producer."""
        ...


class Runtime(Protocol):
    """Starts, watches and ends actors. Actor classes are plain async classes named by import path ``module:Class``."""

    @property
    def kind(self) -> Literal["local", "ray"]: ...

    async def start(self) -> None: ...

    async def spawn(self, cls: str, *args: Any, name: str) -> Ref:
        """Start an actor and wait until it answers ``ping``. Raises ``OpenDevError`` (infra) after a time-out."""
        ...

    def watch(self, ref: Ref, on_down: Callable[[Down], Awaitable[None]]) -> None:
        """Call ``on_down`` once, when the actor dies without ``kill``."""
        ...

    async def kill(self, ref: Ref) -> None:
        """End the actor and wait until its process is gone."""
        ...

    async def stop(self) -> None:
        """End every actor and the runtime itself; idempotent."""
        ...
