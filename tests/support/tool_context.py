"""A ToolContext for tests: a real folder, a real shell-less world, and fakes that record what they were asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opendev.core.agent import AgentReport, AgentStatus, SpawnRequest
from opendev.core.approval import ApprovalAnswer, ApprovalRequest, Mode
from opendev.core.chat import Question
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorInfo
from opendev.core.events import Event
from opendev.core.interrupt import InterruptToken
from opendev.core.ports import CodeProblem, CommandResult, SymbolPlace, SymbolUse, TextEdit
from opendev.core.scope import Scope
from opendev.core.tool import AgentMemo, ToolContext
from opendev.tools.files import SeenHashes


@dataclass
class FakeShell:
    """Answers every command with ``result`` and remembers the commands."""

    result: CommandResult = field(
        default_factory=lambda: CommandResult(exit_code=0, text="", ended="exit", wall_s=0.0)
    )
    commands: list[str] = field(default_factory=list[str])

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
        if on_output:
            on_output(self.result.text)
        return self.result


@dataclass
class FakeAsker:
    """A person: ``decision`` answers every approval, ``answers`` every question (None: nobody is there)."""

    decision: Any = "once"
    answers: tuple[str, ...] | None = None
    requests: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    questions: list[tuple[Question, ...]] = field(default_factory=list[tuple[Question, ...]])

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.requests.append(request)
        return ApprovalAnswer(decision=self.decision, digest=request.digest, by="test")

    async def question(self, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        self.questions.append(questions)
        return self.answers


@dataclass
class FakeSpawner:
    """Answers every spawn with ``reply`` (default: a report that it is done)."""

    reply: AgentReport | str | ErrorInfo | None = None
    requests: list[SpawnRequest] = field(default_factory=list[SpawnRequest])
    outputs: dict[str, AgentReport | str | ErrorInfo] = field(
        default_factory=dict[str, "AgentReport | str | ErrorInfo"]
    )

    async def spawn(self, request: SpawnRequest) -> AgentReport | str | ErrorInfo:
        self.requests.append(request)
        return self.reply or AgentReport(
            id="sub1", agent=request.agent, status=AgentStatus.DONE, text=f"did: {request.prompt}"
        )

    async def output(self, agent_id: str, wait_s: float) -> AgentReport | str | ErrorInfo:
        return self.outputs.get(agent_id, agent_id)


@dataclass
class FakeSymbols:
    """A language server with prepared answers."""

    places: tuple[SymbolPlace, ...] = ()
    edits: dict[str, tuple[TextEdit, ...]] = field(default_factory=dict[str, "tuple[TextEdit, ...]"])
    uses: tuple[SymbolUse, ...] = ()
    errors: dict[str, tuple[CodeProblem, ...]] = field(default_factory=dict[str, "tuple[CodeProblem, ...]"])

    async def find(self, root: Path, name: str, path: str | None) -> tuple[SymbolPlace, ...]:
        return tuple(p for p in self.places if p.name == name and path in (None, p.path))

    async def rename_edits(
        self, root: Path, place: SymbolPlace, new_name: str
    ) -> dict[str, tuple[TextEdit, ...]]:
        return self.edits

    async def references(
        self, root: Path, place: SymbolPlace, *, include_declaration: bool
    ) -> tuple[SymbolUse, ...]:
        return self.uses

    async def problems(self, root: Path, path: str) -> tuple[CodeProblem, ...] | None:
        return self.errors.get(path)

    async def close(self) -> None:
        return None


@dataclass
class EventLog:
    """An event sink that keeps what it was given."""

    events: list[Event] = field(default_factory=list[Event])

    def __call__(self, event: Event) -> None:
        self.events.append(event)


def make_context(root: Path, **overrides: Any) -> ToolContext:
    """A context on ``root``; every field of ``ToolContext`` can be overridden. ``scratch`` is a sibling of the root."""
    root = root.resolve()
    scratch = root.parent / f"{root.name}-scratch"
    fields: dict[str, Any] = {
        "agent_id": "agent1",
        "call_id": "call1",
        "root": root,
        "scratch": scratch,
        "scope": Scope(),
        "mode": Mode.NORMAL,
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
        "clock": SystemClock(),
        "shell": FakeShell(),
        "ask": FakeAsker(),
        "spawner": FakeSpawner(),
        "symbols": FakeSymbols(),
        "seen": SeenHashes(),
        "emit": EventLog(),
        "interrupt": InterruptToken(),
        "memo": AgentMemo(),
    }
    return ToolContext(**(fields | overrides))
