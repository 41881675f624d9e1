"""What to do about a failed tool call: a reminder by class, at most three for one sequence of errors (ERR-01..04, C-06)."""

import re
from collections.abc import Sequence

from ..context.detectors import classify
from ..context.reminders import get_reminder, reminder
from ..core.chat import MessageClass, ToolMessage, UserMessage
from ..core.errors import ErrorInfo, ErrorKind

MAX_ATTEMPTS = 3
_ACCEPTED = re.compile(r"^\W*failure accepted\W*:", re.I | re.M)
_DECISIONS = frozenset({ErrorKind.DENIED, ErrorKind.UNANSWERED, ErrorKind.CANCELLED})


class Recovery:
    """The sequence of errors an agent is in. ``pending`` is the failure of the newest batch that nothing mended."""

    def __init__(self, *, can_complete: bool) -> None:
        self.pending: ErrorInfo | None = None
        self._tool = ""
        self._class = ""
        self._attempts = 0
        self._can_complete = can_complete

    @property
    def recoverable(self) -> bool:
        """Whether another try could help: a refusal is a decision, not a failure to mend."""
        return self.pending is not None and self.pending.kind not in _DECISIONS

    def note(self, results: Sequence[ToolMessage], last_failure: ErrorInfo | None) -> None:
        """Take in the results of a batch. A success ends the sequence (LOOP-20); another class of error begins a new one."""
        failed = [result for result in results if result.is_error]
        if len(failed) < len(results):
            self._class = ""  # the next failure begins a new sequence, with a count of its own
        if not results or not results[-1].is_error:
            self.pending = None
            return
        self._tool = failed[-1].name
        self.pending = last_failure or ErrorInfo(kind=ErrorKind.TOOL, message=failed[-1].content[:1_000])
        found = classify(self.pending)
        if found != self._class:
            self._class, self._attempts = found, 0

    def next_reminder(self) -> UserMessage | None:
        """The classified reminder for the pending failure; None when the budget is used up."""
        if self.pending is None or self._attempts >= MAX_ATTEMPTS:
            return None
        self._attempts += 1
        way = "acknowledge_by_tool" if self._can_complete else "acknowledge_by_line"
        return reminder(
            self._class,
            MessageClass.DIRECTIVE,
            tool=self._tool,
            message=self.pending.sentence(),
            acknowledge=get_reminder(way),
        )

    def settle(self, text: str) -> None:
        """Forget the failure when the agent says, in so many words, that it does not matter."""
        if _ACCEPTED.search(text):
            self.pending = None
            self._attempts = 0
