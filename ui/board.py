"""A batch on one screen: who needs me, what landed, what it costs. Folded from events, bounded, drawn with rich."""

from collections import deque
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.approval import ApprovalRequest
from ..core.events import (
    AgentFinished,
    AgentStarted,
    ApprovalAnswered,
    ApprovalAsked,
    Cost,
    Event,
    Merged,
    Notice,
    TaskChanged,
    ToolStarted,
    Verified,
)
from ..core.ticket import SwarmPlan, TaskStatus
from ..policy.visible import visible

ROWS = 30
NOTICES = 4
MAX_AGENTS = 2_000
_QUIET = ("queued", TaskStatus.MERGED, TaskStatus.SKIPPED)
_STYLE = {"queued": "dim", "retrying": "yellow", TaskStatus.MERGED: "green", TaskStatus.SKIPPED: "dim"}


@dataclass(slots=True)
class Row:
    """One ticket."""

    state: str = "queued"
    attempt: int = 0
    doing: str = ""
    merged_as: str = ""


class Board:
    """The state. ``take`` folds an event in; ``draw`` gives what is shown."""

    def __init__(self, plan: SwarmPlan | None) -> None:
        self.rows: dict[str, Row] = {ticket.id: Row() for ticket in plan.task} if plan else {}
        self.into = plan.swarm.into if plan else ""
        self.asks: dict[str, ApprovalRequest] = {}  # pending only, so bounded by the agents that are blocked
        self.notices: deque[str] = deque(maxlen=NOTICES)
        self.cost_usd, self.calls = 0.0, 0
        self.task_of: dict[str, str] = {}  # live agents; at most MAX_AGENTS

    def take(self, event: Event) -> None:
        """Fold one event in."""
        self._take_ticket(event)
        self._take_agent(event)
        match event:
            case ApprovalAsked():
                self.asks[event.request.id] = event.request
            case ApprovalAnswered():
                self.asks.pop(event.request_id, None)
            case Cost():
                self.cost_usd, self.calls = event.total.cost_usd, event.calls
            case Notice():
                self.notices.append(f"{event.level}: {event.text}")
            case _:
                pass

    def _take_ticket(self, event: Event) -> None:
        match event:
            case TaskChanged():
                row = self.rows.setdefault(event.task, Row())
                row.state, row.attempt, row.doing = event.state, event.attempt or row.attempt, event.detail
            case Merged():
                self.rows.setdefault(event.task, Row()).merged_as = event.commit[:12]
                self.into = event.into
            case Verified() if event.task in self.rows:
                self.rows[event.task].doing = f"{event.where} verification: {event.result.outcome}"
            case _:
                pass

    def _take_agent(self, event: Event) -> None:
        match event:
            case AgentStarted() if event.task and len(self.task_of) < MAX_AGENTS:
                self.task_of[event.agent] = event.task
            case AgentFinished():
                self.task_of.pop(event.agent, None)
            case ToolStarted() if (task := self.task_of.get(event.agent)) in self.rows:
                self.rows[task].doing = event.tool
            case _:
                pass

    def draw(self) -> RenderableType:
        """What needs a person first, then the tickets (those at work first), then the last notices."""
        parts: list[RenderableType] = []
        if self.asks:
            parts.append(Text(f"{len(self.asks)} waiting for you", style="bold yellow"))
            parts += [Text(_ask(request), style="yellow") for request in list(self.asks.values())[:5]]
        parts += [Text(self._headline(), style="bold"), self._table()]
        parts += [Text(visible(" ".join(text.split()))[:200], style="dim") for text in self.notices]
        return Group(*parts)

    def _headline(self) -> str:
        ended = {str(status) for status in TaskStatus}
        merged = sum(row.state == TaskStatus.MERGED for row in self.rows.values())
        failed = sum(row.state in ended for row in self.rows.values()) - merged
        live = sum(row.state not in ended and row.state != "queued" for row in self.rows.values())
        return (
            f"{merged} of {len(self.rows)} landed on {self.into or 'the branch'}, {live} at work, {failed} ended otherwise,"
            f" ${self.cost_usd:.4f} in {self.calls} model calls"
        )

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(4):
            table.add_column(no_wrap=True, overflow="ellipsis")
        ordered = sorted(self.rows.items(), key=lambda item: item[1].state in _QUIET)
        for name, row in ordered[:ROWS]:
            style = _STYLE.get(row.state, "cyan" if row.state not in set(TaskStatus) else "red")
            tries = f"#{row.attempt}" if row.attempt > 1 else ""
            what = row.merged_as or " ".join(visible(row.doing).split())[:100]
            table.add_row(
                Text(visible(name)), Text(row.state, style=style), Text(tries), Text(what, style="dim")
            )
        if len(ordered) > ROWS:
            table.add_row(Text(f"and {len(ordered) - ROWS} more"), Text(""), Text(""), Text(""))
        return table


def _ask(request: ApprovalRequest) -> str:
    return f"  {visible(request.agent)} asks to run {visible(request.tool)}: {' '.join(visible(request.card).split())[:300]}"
