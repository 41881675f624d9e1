"""Ctrl-C, SIGTERM and SIGHUP as an orderly stop: what runs is told, and ends by itself."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stopping(stop: Callable[[str], object]) -> Generator[None]:
    """Call ``stop`` with a sentence for each signal that comes in; the signals are put back afterwards."""
    loop = asyncio.get_running_loop()
    for number in _NUMBERS:
        loop.add_signal_handler(number, stop, f"The run was stopped by {number.name}.")
    try:
        yield
    finally:
        for number in _NUMBERS:
            loop.remove_signal_handler(number)


class Wish:
    """A wish to stop, kept until there is something to stop: what starts and ends the run must not be cut in two."""

    def __init__(self) -> None:
        self._reason = ""
        self._stop: Callable[[str], object] | None = None

    def say(self, reason: str) -> None:
        """Pass the wish on, or keep it."""
        self._reason = self._reason or reason
        if self._stop is not None:
            self._stop(reason)

    def pass_to(self, stop: Callable[[str], object]) -> None:
        """From now on wishes go to ``stop``; one that was said before goes there now."""
        self._stop = stop
        if self._reason:
            stop(self._reason)
