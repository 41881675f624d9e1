"""Reports of sub-agents on disk: kept until collected, and the way to an agent's transcript when it is resumed (SUB-09)."""

from collections import OrderedDict
from pathlib import Path

from pydantic import ValidationError

from ..core.agent import AgentReport
from ..core.model import Persisted
from ..store.atomic import JsonlLog

KEPT = 1000  # reports kept in memory; the file has all


class Filed(Persisted):
    """One line of the file: an agent that was started in the background, its report, or the fact that it was collected."""

    agent_id: str
    spec: str = ""
    report: AgentReport | None = None
    collected: bool = False
    parent: str = ""


class Inbox:
    """Blocking; call it in a thread. A report outlives the process until somebody has collected it."""

    def __init__(self, path: Path) -> None:
        self._log = JsonlLog(path)
        self._filed: OrderedDict[str, Filed] = OrderedDict()
        for line in self._log.read():
            try:
                self._keep(Filed.model_validate_json(line))
            except ValidationError:
                continue  # of a newer version

    def file(self, report: AgentReport, parent: str = "") -> None:
        """An agent ended."""
        self._store(Filed(agent_id=report.id, spec=report.agent, report=report, parent=parent))

    def parents(self) -> dict[str, str]:
        """The parent of each agent on file, oldest report first."""
        return {id: filed.parent for id, filed in self._filed.items() if filed.parent}

    def find(self, agent_id: str) -> AgentReport | None:
        """The latest report of an agent, collected or not."""
        filed = self._filed.get(agent_id)
        return filed.report if filed else None

    def collected(self, agent_id: str) -> None:
        """Its report reached the agent that asked."""
        if (filed := self._filed.get(agent_id)) is not None and not filed.collected:
            self._store(filed.model_copy(update={"collected": True}))

    def waiting(self) -> tuple[AgentReport, ...]:
        """Reports that nobody has collected, oldest first."""
        return tuple(f.report for f in self._filed.values() if f.report is not None and not f.collected)

    def _store(self, filed: Filed) -> None:
        self._log.append(filed.to_json())
        self._keep(filed)

    def _keep(self, filed: Filed) -> None:
        self._filed[filed.agent_id] = filed
        self._filed.move_to_end(filed.agent_id)
        while len(self._filed) > KEPT:
            self._filed.popitem(last=False)
