"""What the thinking stage is given: the port between that stage and the memory that fills it (MEM-01, MEM-05)."""

from collections.abc import Sequence
from typing import Protocol

from ..core.chat import Message


class ThinkingInput(Protocol):
    """Renders the conversation for a thinking call. ``context.episodic.ThinkingMemory`` implements it."""

    def render(self, history: Sequence[Message]) -> str:
        """Summary of what came before, the last six exchanges, and the current query; bounded whatever the length of
        ``history`` (N-11). Never waits and never raises: a summary that is due is made beside the loop for a later call."""
        ...
