"""A lease: the right of one agent to one working folder, with the identity of its holder."""

from typing import Literal

from .model import Persisted


class Owner(Persisted):
    """A process, told apart from a later one with the same number by its start time (clock ticks since boot)."""

    pid: int
    started: int


class Lease(Persisted):
    """A working folder. Write leases have a branch of their own; read leases share a detached checkout."""

    id: str
    kind: Literal["read", "write"]
    repo: str  # toplevel of the user's repository, absolute
    path: str  # the folder handed out, absolute
    base: str  # the commit it started from, 40 hex digits
    branch: str = ""  # refs/heads/… short name; empty for a read lease
    task: str = ""
    run_id: str = ""
    owner: Owner
