"""The exit codes of ``opendev -p`` and ``opendev swarm`` (cli.md)."""

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    VERIFY = 3
    CONFLICT = 4
    BUDGET = 5
    INFRA = 6
    UNANSWERED = 7
    INTERRUPTED = 130


def combine(codes: Iterable[Exit]) -> Exit:
    """The code of a batch: interrupted wins, else the highest-numbered cause."""
    found = set(codes)
    if Exit.INTERRUPTED in found:
        return Exit.INTERRUPTED
    return max(found, default=Exit.DONE)
