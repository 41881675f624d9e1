"""What to do about a failed tool call: a reminder by class, at most three for one sequence of errors (ERR-01..04, C-06)."""

import re
from collections import deque
from collections.abc import Sequence

from ..context.detectors import same_failure
from ..context.reminders import Reminders
from ..core.chat import MessageClass, ToolMessage, UserMessage
from ..core.errors import ErrorInfo, ErrorKind

MAX_ATTEMPTS = 3
REFLECT_AFTER = 2
WINDOW = 4  # failures that are compared (BLG-03)
_MESSAGE_CHARS, _OUTPUT_CHARS = 1_000, 4_000
_ACCEPTED = re.compile(r"^\W*failure accepted\W*:", re.I | re.M)
_DECISIONS = frozenset({ErrorKind.DENIED, ErrorKind.UNANSWERED, ErrorKind.CANCELLED})


class Recovery:
    """The sequence of errors an agent is in. ``pending`` is the failure of the newest batch that nothing mended."""

    def __init__(self, *, can_complete: bool, reminders: Reminders) -> None:
        self.pending: ErrorInfo | None = None
        self.streak = 0  # answers in a row whose last call failed
        self._tool = ""
        self._class = ""
        self._attempts = 0
        self._can_complete = can_complete
        self._reminders = reminders
        self._seen: deque[str] = deque(maxlen=WINDOW)  # the marks of the latest failures
        self.repeated: tuple[str, int, str] | None = (
            None  # tool, count and message of a failure that came again
        )

    @property
    def recoverable(self) -> bool:
        """Whether another try could help: a refusal is a decision, not a failure to mend."""
        return self.pending is not None and self.pending.kind not in _DECISIONS

    def note(self, results: Sequence[ToolMessage], last_failure: ErrorInfo | None) -> None:
        """Take in the results of a batch. A success ends the sequence (LOOP-20); another class of error begins a new one."""
        failed = [result for result in results if result.is_error]
        refused = last_failure is not None and last_failure.kind in _DECISIONS
        self.repeated = None if refused else self._again(failed)
        if len(failed) < len(results):
            self._class = ""  # the next failure begins a new sequence, with a count of its own
        if not results or not results[-1].is_error:
            self.pending, self.streak = None, 0
            return
        self.streak += 0 if refused else 1
        self._tool = failed[-1].name
        self.pending = last_failure or ErrorInfo(kind=ErrorKind.TOOL, message=failed[-1].content[:1_000])
        # What a command printed says more than its exit code; its end says most.
        seen = f"{self.pending.message}\n{failed[-1].content[-_OUTPUT_CHARS:]}"
        found = self._reminders.classify(self.pending.model_copy(update={"message": seen}))
        if found != self._class:
            self._class, self._attempts = found, 0

    def next_reminder(self) -> UserMessage | None:
        """The classified reminder for the pending failure; None when the budget is used up."""
        if self.pending is None or self._attempts >= MAX_ATTEMPTS:
            return None
        self._attempts += 1
        way = "acknowledge_by_tool" if self._can_complete else "acknowledge_by_line"
        return self._reminders.message(
            self._class,
            MessageClass.DIRECTIVE,
            tool=self._tool,
            message=self.pending.sentence(),
            acknowledge=self._reminders.text(way),
        )

    def _again(self, failed: Sequence[ToolMessage]) -> tuple[str, int, str] | None:
        """The failure of this batch that came for the second or fourth time of the latest four: another approach is needed."""
        found: tuple[str, int, str] | None = None
        for mark, result in {same_failure(r.name, r.content): r for r in failed}.items():
            self._seen.append(mark)
            count = self._seen.count(mark)
            if count % REFLECT_AFTER == 0:
                found = (result.name, count, result.content[:_MESSAGE_CHARS])
        return found

    def settle(self, text: str) -> None:
        """Forget the failure when the agent says, in so many words, that it does not matter."""
        if _ACCEPTED.search(text):
            self.pending = None
            self._attempts = 0
