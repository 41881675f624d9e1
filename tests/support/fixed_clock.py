"""A clock that stands still until it is moved."""


class FixedClock:
    """Both times are ``at``."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        """Wall time."""
        return self.at

    def monotonic(self) -> float:
        """Monotonic time."""
        return self.at
