"""How full the window is: reported tokens where there are some, an estimate for what changed since; and when a stage is due."""

from collections import deque
from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise

from ..core.chat import (
    IMAGE_TOKENS,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    ToolSchema,
    canonical,
)

CHARS_PER_TOKEN = 4
_MESSAGE_TOKENS = 4  # role and separators
DEFAULT_THRESHOLDS = (0.70, 0.80, 0.85, 0.90, 0.99)  # C-01
_TREND_TURNS = 20


class Stage(IntEnum):
    """The stages of compaction, weakest first."""

    NONE = 0
    WARN = 1
    MASK = 2
    PRUNE = 3
    TIGHTEN = 4
    SUMMARISE = 5


def message_tokens(message: Message) -> int:
    """Estimated tokens of one message."""
    if isinstance(message, SystemMessage):
        chars = len(message.stable) + len(message.dynamic)
    elif isinstance(message, AssistantMessage):
        chars = len(message.content) + sum(
            len(call.name) + len(canonical(call.arguments)) for call in message.tool_calls
        )
        chars += sum(len(canonical(block)) for block in message.thinking)
    elif isinstance(message, ToolMessage):
        chars = len(message.content) + len(message.name)
    else:
        chars = len(message.content) + len(message.images) * IMAGE_TOKENS * CHARS_PER_TOKEN
    return _MESSAGE_TOKENS + -(-chars // CHARS_PER_TOKEN)


def estimate(messages: Iterable[Message], tools: Iterable[ToolSchema] = ()) -> int:
    """Estimated tokens of what is *sent* (C11: not of what is stored)."""
    schemas = sum(len(tool.name) + len(tool.description) + len(canonical(tool.parameters)) for tool in tools)
    return sum(message_tokens(message) for message in messages) + -(-schemas // CHARS_PER_TOKEN)


class TokenMeter:
    """Tokens of a request, calibrated on the provider's count of the request before (CMP-02).

    The difference of two estimates stands for what was added *and* for what a stage saved, so that pressure falls at once (T-03).
    """

    def __init__(self) -> None:
        self._reported = 0
        self._estimated = 0

    def calibrate(self, reported: int, estimated: int) -> None:
        """Note that a request estimated at ``estimated`` counted ``reported`` tokens; 0 = the provider did not say."""
        if reported > 0:
            self._reported, self._estimated = reported, estimated

    def tokens(self, estimated: int) -> int:
        """The tokens of a request that is estimated at ``estimated``."""
        return max(0, self._reported + estimated - self._estimated)


class StageLadder:
    """Which stage is due: each at most once per upward crossing, a jump takes the strongest only, falling re-arms (C15, CMP-08).

    A threshold counts as crossed at equality: Algorithm 1 prints ``>``, the prose says "at", and case C15 wants 0.70 to
    fire and 0.6999 not (reading C-01).
    """

    def __init__(self, thresholds: tuple[float, ...] = DEFAULT_THRESHOLDS) -> None:
        self._thresholds = thresholds
        self._level = Stage.NONE

    def step(self, pressure: float) -> Stage:
        """The stage to run now, ``Stage.NONE`` for none. At the last threshold a stage is due every time: there is no later."""
        level = Stage(sum(pressure >= threshold for threshold in self._thresholds))
        due = level if level > self._level or level is Stage.SUMMARISE else Stage.NONE
        self._level = level
        return due


class Trend:
    """How fast the request grows, from the moment the first threshold is crossed (CMP-03); the last 20 turns count."""

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=_TREND_TURNS)

    def note(self, tokens: int, stage: Stage) -> None:
        """Take a measurement, one a turn; tracking begins when a stage is due for the first time."""
        if self._seen or stage is not Stage.NONE:
            self._seen.append(tokens)

    def per_turn(self) -> int:
        """Average growth in tokens a turn; turns in which the request shrank do not count."""
        grown = [after - before for before, after in pairwise(self._seen) if after > before]
        return round(sum(grown) / len(grown)) if grown else 0

    def sentence(self) -> str:
        """For a person; empty while there is nothing to tell."""
        growth = self.per_turn()
        return f"The request grows by about {growth:,} tokens a turn." if growth else ""
