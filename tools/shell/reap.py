"""Find processes by environment marker, group, session or parent, and end them for certain (P01, P03; ray.md 15)."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import ErrorKind, OpenDevError

PROC = Path("/proc")
HAS_PROC = PROC.is_dir()
POLL_S = 0.02
KILL_FOR_S = 5.0  # how long SIGKILL is repeated for processes that fork while they die


@dataclass(frozen=True, slots=True)
class Proc:
    """A live process; pid and start time (clock ticks since boot) together are its identity."""

    pid: int
    start: int
    parent: int
    group: int
    session: int


Finder = Callable[[], tuple[Proc, ...]]


def process_start(pid: int) -> int | None:
    """The start time of a live process in clock ticks since boot; None when it is gone, a zombie, or unknown."""
    found = _read(pid)
    return found.start if found else None


def _read(pid: int) -> Proc | None:
    try:
        # the name in brackets may itself hold brackets and spaces, hence the split at the last one
        fields = _content(pid, "stat").rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in b"ZX":
        return None
    return Proc(
        pid=pid, start=int(fields[19]), parent=int(fields[1]), group=int(fields[2]), session=int(fields[3])
    )


def _holds(pid: int, pairs: frozenset[bytes]) -> bool:
    try:
        return pairs <= set(_content(pid, "environ").split(b"\0"))
    except OSError:
        return False  # gone, or another user's


def _content(pid: int, name: str) -> bytes:
    """Every process is looked at after every command, so without ``Path`` and buffers: half the time."""
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def family(
    *, marker: Mapping[str, str] | None = None, group: int | None = None, since: int = 0
) -> tuple[Proc, ...]:
    """Every process that holds all pairs of ``marker`` or is in ``group`` (as group or session), and all descendants.

    ``since``: the start time of the first that was given the marker; older ones are not asked. Never this process nor one
    of its ancestors. Empty on systems without ``/proc``.
    """
    table = {found.pid: found for pid in _pids() if (found := _read(pid))}
    pairs = frozenset(os.fsencode(f"{name}={value}") for name, value in (marker or {}).items())
    safe = _lineage(table)
    hit = {
        found.pid
        for found in table.values()
        if found.pid not in safe
        and found.start >= since
        and (group in (found.group, found.session) or (pairs and _holds(found.pid, pairs)))
    }
    grown = True
    while grown:
        young = {p.pid for p in table.values() if p.parent in hit and p.pid not in hit and p.pid not in safe}
        hit |= young
        grown = bool(young)
    return tuple(table[pid] for pid in sorted(hit))


def _pids() -> tuple[int, ...]:
    try:
        return tuple(int(name) for name in os.listdir(PROC) if name.isdigit())  # noqa: PTH208
    except OSError:
        return ()


def _lineage(table: dict[int, Proc]) -> frozenset[int]:
    """This process and its ancestors; they are never ended, whatever they hold."""
    pid, line = os.getpid(), set[int]()
    while pid > 0 and pid not in line:
        line.add(pid)
        pid = table[pid].parent if pid in table else 0
    return frozenset(line)


def send(target: Proc, number: int) -> bool:
    """Signal exactly this process, never one that took over its pid. Returns whether it was there."""
    try:
        handle = os.pidfd_open(target.pid)
    except OSError:
        return False
    try:
        if process_start(target.pid) != target.start:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


async def end(find: Finder, grace_s: float) -> tuple[int, ...]:
    """SIGTERM, up to ``grace_s`` seconds, then SIGKILL until none is left. Returns the pids it ended.

    Processes found once stay targets even when they leave their parent or group while they die.
    Raises ``OpenDevError`` (infra) naming the pids that are still there after five seconds of SIGKILL.
    """
    loop = asyncio.get_running_loop()
    known = set[Proc]()

    def present() -> tuple[Proc, ...]:
        known.update(find())
        return tuple(one for one in known if process_start(one.pid) == one.start)

    async def signal_until_gone(number: int, seconds: float, *, again: bool) -> tuple[Proc, ...]:
        until, told, left = loop.time() + seconds, set[Proc](), await asyncio.to_thread(present)
        while left:
            for one in left:
                if again or one not in told:
                    send(one, number)
            told.update(left)
            if loop.time() >= until:
                break
            await asyncio.sleep(POLL_S)
            left = await asyncio.to_thread(present)
        return left

    left = await signal_until_gone(signal.SIGTERM, grace_s, again=False)
    if left:
        left = await signal_until_gone(signal.SIGKILL, KILL_FOR_S, again=True)
    if left:
        pids = ", ".join(str(one.pid) for one in left)
        message = f"These processes did not die of SIGKILL: {pids}."
        raise OpenDevError(ErrorKind.INFRA, message, "Look at them with `ps`.")
    return tuple(sorted(one.pid for one in known))


async def kill_marked(marker: Mapping[str, str], grace_s: float = 0.5) -> tuple[int, ...]:
    """End every process whose environment holds all pairs of ``marker``, and its descendants; returns their pids.

    Raises ``OpenDevError``: usage for an empty marker (it would match everything), infra on a system without ``/proc``
    or when a process survives SIGKILL.
    """
    if not marker:
        raise OpenDevError(ErrorKind.USAGE, "An empty marker would match every process; nothing was ended.")
    if not HAS_PROC:
        raise OpenDevError(
            ErrorKind.INFRA,
            "This system has no /proc, so processes cannot be found by their environment.",
            "Look for left-over commands with `ps` and end them by pid.",
        )
    return await end(lambda: family(marker=marker), grace_s)
