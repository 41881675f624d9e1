"""The figures of the prompt line, kept from the events of a session: cost, context, agents and background tasks (TUI-04)."""

from dataclasses import dataclass, field

from ...core.chat import Usage
from ...core.events import AgentFinished, AgentStarted, Compacted, Cost, Event, ProcessChanged
from ...core.ports import ProcessState
from ...core.session import Spent

KNOWN_MAX = 200  # background tasks that are remembered; of more, the oldest ended one is forgotten


@dataclass(slots=True)
class Figures:
    """Of one session. ``main`` is the id of its foreground agent, ``window`` its model's in tokens (0: not known)."""

    main: str
    before: Spent = field(default_factory=Spent)  # what earlier runs and settled turns cost
    window: int = 0
    tokens: int = 0  # of the conversation, as the last call of the main agent was counted
    agents: dict[str, str] = field(default_factory=dict[str, str])  # sub-agents at work: id to name
    tasks: dict[str, ProcessChanged] = field(default_factory=dict[str, ProcessChanged])
    _fresh: bool = True  # no call of the present turn was counted yet
    _total: Usage = field(default_factory=Usage)  # of this hub
    _calls: int = 0
    _settled: tuple[Usage, int] = field(default_factory=lambda: (Usage(), 0))

    def take(self, event: Event) -> None:
        """Note one event."""
        match event:
            case Cost():
                self._paid(event)
            case Compacted() if event.agent == self.main:
                self.tokens = event.after
            case AgentStarted() if event.parent:
                self.agents[event.agent] = event.name
            case AgentStarted():
                self._fresh = True
            case AgentFinished():
                self.agents.pop(event.agent, None)
            case ProcessChanged():
                self._process(event)
            case _:
                pass

    def settle(self, total: Spent, done: tuple[Usage, int]) -> None:
        """The ledger's totals, exact; they hold what the hub had counted by then (``done``), also where its events come later."""
        self.before, self._settled = total, done

    def fresh_hub(self) -> None:
        """The next costs are those of another hub, counted from nothing."""
        self._total, self._calls, self._settled = Usage(), 0, (Usage(), 0)
        self.agents.clear()

    @property
    def usage(self) -> Usage:
        """Of the whole session."""
        before, now, done = self.before, self._total, self._settled[0]
        return Usage(
            input=before.total_input_tokens + max(0, now.input - done.input),
            output=before.total_output_tokens + max(0, now.output - done.output),
            cached=before.total_cached_tokens + max(0, now.cached - done.cached),
            cost_usd=before.total_cost_usd + max(0.0, now.cost_usd - done.cost_usd),
        )

    @property
    def calls(self) -> int:
        """Model calls of the whole session."""
        return self.before.api_call_count + max(0, self._calls - self._settled[1])

    @property
    def context(self) -> float:
        """The share of the window in use."""
        return min(1.0, self.tokens / self.window) if self.window else 0.0

    @property
    def running(self) -> tuple[ProcessChanged, ...]:
        """The background tasks that run."""
        return tuple(task for task in self.tasks.values() if task.state == ProcessState.RUNNING)

    def _paid(self, event: Cost) -> None:
        call = event.total.input - self._total.input + event.total.output - self._total.output
        if event.agent == self.main and event.calls == self._calls + 1 and call:
            # Thinking and reflection are smaller requests of the same agent: the largest of a turn is the conversation.
            self.tokens = call if self._fresh else max(self.tokens, call)
            self._fresh = False
        self._total, self._calls = event.total, event.calls

    def _process(self, event: ProcessChanged) -> None:
        self.tasks[event.id] = event
        ended = [id for id, task in self.tasks.items() if task.state != ProcessState.RUNNING]
        if len(self.tasks) > KNOWN_MAX and ended:
            del self.tasks[ended[0]]
