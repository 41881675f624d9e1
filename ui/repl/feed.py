"""What happens, folded into blocks for the scrollback and into what moves above the prompt. Pure, bounded, everything escaped."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ...core.chat import Usage
from ...core.errors import ErrorKind
from ...core.events import (
    AgentFinished,
    AgentStarted,
    ApprovalAnswered,
    ApprovalAsked,
    AssistantText,
    Compacted,
    Cost,
    Event,
    GateDecided,
    Notice,
    ProcessChanged,
    QuestionAnswered,
    RunFinished,
    RunStarted,
    TextDelta,
    TodoLine,
    TodosChanged,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    Verified,
)
from ...policy.visible import visible
from .stream import Stream

Kind = Literal[
    "you", "answer", "tool", "output", "warn", "note", "agent", "end", "card", "plan", "todo", "text"
]
SHOWN = ("command", "file_path", "path", "pattern", "query", "url", "symbol_name", "prompt", "name", "source")
AGENTS_MAX, CALLS_MAX, ASKED_MAX = 1_000, 200, 500
KEEP_LINES = {True: 3, False: 8}  # of a command's output, by whether it went well
TEXT_MAX = 2_000  # of one line of foreign text, before it is cut to the width
COMPLETE = "task_complete"
TOLD = frozenset({COMPLETE, "ask_user"})  # what they did was said already


@dataclass(frozen=True, slots=True)
class Block:
    """One thing to print. ``text`` has no control characters; ``depth`` 1 belongs to a sub-agent."""

    kind: Kind
    text: str
    note: str = ""
    ok: bool = True
    depth: int = 0


@dataclass(slots=True)
class Call:
    """A tool call at work."""

    title: str
    agent: str
    lines: int = 0
    last: deque[str] = field(default_factory=lambda: deque[str](maxlen=KEEP_LINES[False]))
    rest: str = ""  # of a line that is not finished

    def put(self, text: str) -> None:
        """A piece of its output."""
        *whole, self.rest = (self.rest + text).split("\n")
        self.rest = self.rest[-TEXT_MAX:]
        self.lines += len(whole)
        self.last.extend(visible(line.rsplit("\r", 1)[-1][:TEXT_MAX]) for line in whole)


class Feed:
    """``take`` gives the blocks of an event; the attributes are what the live part of the screen draws."""

    def __init__(self) -> None:
        self.agents: dict[str, str] = {}  # sub-agents at work, id to name
        self.calls: dict[str, Call] = {}
        self.todos: tuple[TodoLine, ...] = ()
        self.stream = Stream()
        self._texts: tuple[str, ...] = ()  # of the todos that were printed
        self.asked: dict[str, str] = {}
        self._began = ""
        self._spent = self._before = Usage()
        self._error = ""
        self._said = ""

    def take(self, event: Event) -> list[Block]:
        """The blocks to print, none for most events of a stream."""
        return self._talk(event) or self._call(event) or self._team(event) or self._rest(event)

    def forget(self) -> None:
        """Another session begins."""
        self.__init__()

    def name_of(self, agent: str) -> str:
        """A sub-agent's name; empty for the main agent."""
        return self.agents.get(agent, "")

    # --- the conversation ---

    def _talk(self, event: Event) -> list[Block]:
        match event:
            case TextDelta() if not self._depth(event.agent):
                return _answers(self.stream.feed(event.text))
            case AssistantText() if self._depth(event.agent):
                return [self._sub("note", event.agent, _flat(event.text))]
            case AssistantText():
                self._said = event.text.strip()
                return _answers(self.stream.end(event.text))
            case RunStarted():
                self._began, self._before, self._error, self._said = event.at, self._spent, "", ""
                return _answers(self.stream.flush())
            case RunFinished():
                return [*_answers(self.stream.flush()), self._end(event)]
            case _:
                return []

    def _end(self, event: RunFinished) -> Block:
        self.calls.clear()
        self.agents.clear()
        used = self._spent
        figures = [
            _seconds(self._began, event.at),
            f"{used.input + used.output - self._before.input - self._before.output:,} tokens",
            f"${used.cost_usd - self._before.cost_usd:.4f}",
        ]
        note = " · ".join(figure for figure in figures if figure)
        if event.status == "done":
            return Block("end", "done", note)
        if event.status == "cancelled":
            return Block("end", "interrupted", note)
        why = f"{event.status.replace('_', ' ')}: {self._error}" if self._error else event.status
        return Block("end", visible(why), note, ok=False)

    # --- tools ---

    def _call(self, event: Event) -> list[Block]:
        match event:
            case ToolStarted():
                if len(self.calls) < CALLS_MAX:
                    self.calls[event.call_id] = Call(title_of(event.tool, event.arguments), event.agent)
                return self._conclusion(event)
            case ToolOutput() if event.call_id in self.calls:
                self.calls[event.call_id].put(event.text)
                return []
            case ToolFinished():
                return self._finished(event)
            case GateDecided() if event.decision == "deny":
                text = f"{event.tool} was refused by {event.layer}: {event.reason}"
                return [self._sub("warn", event.agent, _flat(text), ok=False)]
            case _:
                return []

    def _conclusion(self, event: ToolStarted) -> list[Block]:
        """The words with which the agent ends are its answer, not an argument."""
        said = event.arguments.get("summary")
        own = event.tool == COMPLETE and not self._depth(event.agent) and isinstance(said, str)
        if not own or not str(said).strip() or str(said).strip() == self._said:
            return []
        return _answers([str(said)])

    def _finished(self, event: ToolFinished) -> list[Block]:
        call = self.calls.pop(event.call_id, None)
        if event.tool in TOLD and event.ok:
            return []
        if call is None and event.error is not None and event.error.kind is ErrorKind.DENIED:
            return []  # the refusal itself was told
        said = _flat(event.summary or (event.error.sentence() if event.error else ""))
        said = said.lstrip("✓✗× ").removeprefix("Error: ")
        folded = self._folded(event, call)
        notes = ("" if folded and event.ok else said, f"{event.wall_s:.1f} s" if event.wall_s >= 1 else "")
        title = call.title if call else visible(event.tool)
        note = " · ".join(note for note in notes if note)
        return [self._sub("tool", event.agent, title, note=note, ok=event.ok), *folded]

    def _folded(self, event: ToolFinished, call: Call | None) -> list[Block]:
        """The end of a command's output, and how much stands before it."""
        if call is None or self._depth(event.agent):
            return []
        if call.rest:
            call.put("\n")
        lines = [*call.last][-KEEP_LINES[event.ok] :]
        if not lines:
            return []
        left = call.lines - len(lines)
        return [Block("output", "\n".join(lines), note=f"{left:,} more lines" if left else "", ok=event.ok)]

    # --- agents, todos and the rest ---

    def _team(self, event: Event) -> list[Block]:
        match event:
            case AgentStarted() if event.parent:
                if len(self.agents) < AGENTS_MAX:
                    self.agents[event.agent] = event.name
                return [Block("agent", visible(f"{event.name} starts"), visible(event.task), depth=1)]
            case AgentFinished() if event.agent in self.agents:
                return self._left(event)
            case AgentFinished():
                self._error = event.error.sentence() if event.error else ""
                return []
            case _:
                return []

    def _left(self, event: AgentFinished) -> list[Block]:
        why = f": {event.error.sentence()}" if event.error else ""
        text = _flat(f"{event.name} {event.status.replace('_', ' ')}{why}")
        note = f"{event.turns} turns · ${event.usage.cost_usd:.4f}"
        del self.agents[event.agent]
        self.calls = {id: call for id, call in self.calls.items() if call.agent != event.agent}
        return [Block("agent", text, note, ok=event.status == "done", depth=1)]

    def _rest(self, event: Event) -> list[Block]:
        match event:
            case TodosChanged() if not self._depth(event.agent):
                return self._listed(event.todos)
            case Cost():
                self._spent = event.total
                return []
            case Notice():
                return [Block("note" if event.level == "info" else "warn", visible(event.text), ok=event.level != "error")]  # fmt: skip
            case Compacted():
                text = f"context {event.stage.replace('_', ' ')}: {event.before:,} to {event.after:,} tokens"
                return [self._sub("note", event.agent, visible(text))]
            case Verified():
                return [Block("tool", visible(f"verify {event.result.command}"), event.result.outcome, ok=event.result.outcome == "pass")]  # fmt: skip
            case _:
                return self._asked_or_ran(event)

    def _asked_or_ran(self, event: Event) -> list[Block]:
        match event:
            case ProcessChanged():
                code = "" if event.exit_code is None else f", exit code {event.exit_code}"
                text = _flat(f"background task {event.id} {event.state}{code}")
                return [Block("note", text, _flat(event.command))]
            case ApprovalAsked():
                if len(self.asked) < ASKED_MAX:
                    request = event.request
                    self.asked[request.id] = title_of(request.tool, request.arguments)
                return []
            case ApprovalAnswered():
                return self._answered(event)
            case QuestionAnswered():
                told = "nobody answered" if not event.answers else "answered: " + ", ".join(event.answers)
                return [Block("note", _flat(told))]
            case _:
                return []

    def _answered(self, event: ApprovalAnswered) -> list[Block]:
        told = {
            "once": "allowed once",
            "session": "allowed in this session",
            "always": "always allowed",
            "deny": "denied",
            "no_answer": "not answered, so denied",
        }
        title = self.asked.pop(event.request_id, "") or visible(event.tool)
        note = _flat(event.answer.note) if event.answer.decision == "deny" else ""
        return [Block("note", f"{told[event.answer.decision]}: {title}", note)]

    def _listed(self, todos: tuple[TodoLine, ...]) -> list[Block]:
        """A new list is printed; that an item is done shows above the prompt."""
        self.todos = todos
        texts = tuple(todo.text for todo in todos)
        if texts == self._texts:
            return []
        self._texts = texts
        marks = {"todo": "☐", "doing": "▸", "done": "☑"}
        lines = [f"{marks[todo.state]} {_flat(todo.text)}" for todo in todos]
        return [Block("todo", "\n".join(lines))] if lines else []

    def _depth(self, agent: str) -> int:
        return int(agent in self.agents)

    def _sub(self, kind: Kind, agent: str, text: str, *, note: str = "", ok: bool = True) -> Block:
        name = self.name_of(agent)
        return Block(kind, f"{name}: {text}" if name else text, note, ok, self._depth(agent))


def title_of(tool: str, arguments: Mapping[str, object]) -> str:
    """A call in one line: the tool, and the argument that says most."""
    said = next((arguments[key] for key in SHOWN if isinstance(arguments.get(key), str)), "")
    return _flat(f"{tool} {said}".rstrip())


def _answers(texts: list[str]) -> list[Block]:
    return [Block("answer", visible(text)) for text in texts if text.strip()]


def _flat(text: str) -> str:
    return visible(" ".join(text[:TEXT_MAX].split()))


def _seconds(began: str, ended: str) -> str:
    try:
        seconds = (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
