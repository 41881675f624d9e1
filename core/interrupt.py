"""A cooperative stop flag, polled at the six boundaries of an iteration (LOOP-17)."""


class InterruptToken:
    """Set once; the first reason stays (LOOP-18: rapid key presses make one interrupt)."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def set(self, reason: str) -> bool:
        """Request the stop. Returns False when it was requested already."""
        if self.reason is not None:
            return False
        self.reason = reason
        return True

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self.reason is not None
