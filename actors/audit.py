"""Every decision about a call on its way into the project's history: what a layer or rule decided, what a person said (APR-07)."""

from pathlib import Path

from ..core.events import ApprovalAnswered, Event, GateDecided
from ..store.history import CommandHistory, Decision
from .eventlog import LineWriter


class Audit:
    """Writes to the history in ``folder``; None = no history is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._writer = LineWriter(CommandHistory(folder)) if folder else None

    def take(self, event: Event) -> None:
        """Note the event if it is a decision; never blocks, never raises."""
        if self._writer is None:
            return
        said: dict[str, str] = {}
        match event:
            case GateDecided():
                said = {
                    "action": event.decision,
                    "layer": event.layer,
                    "rule": event.rule,
                    "reason": event.reason,
                }
            case ApprovalAnswered():
                answer = event.answer
                said = {"action": answer.decision, "layer": "person", "by": answer.by, "reason": answer.note}
            case _:
                return
        said |= {
            "at": event.at,
            "run": event.run,
            "agent": event.agent,
            "tool": event.tool,
            "command": event.subject,
        }
        self._writer.put(Decision.model_validate(said).to_json())

    async def flush(self) -> None:
        """Wait until all is on disk."""
        if self._writer is not None:
            await self._writer.flush()
