"""Time as a port: everything that needs the time is handed a clock."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time (seconds since the epoch) and monotonic time (seconds)."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never jumps."""
        return time.monotonic()


def iso(seconds: float) -> str:
    """The wall time ``seconds`` as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds")
