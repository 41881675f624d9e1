"""Outlives the driver: when the driver's pipe closes, ends every process that holds its marker. A stand-alone script.

Run as ``python -S -E janitor.py NAME VALUE PREFIX`` with a pipe on standard input. It forks twice, so it is no child of
the driver, of Ray or of a terminal. Lines it understands: ``rm PATH`` (remember a folder below PREFIX, to be removed) and
``done`` (the driver has tidied up itself: leave without doing anything). At end of file, which comes even when the driver
dies of SIGKILL, it sends SIGTERM to every process whose environment holds NAME=VALUE, SIGKILL half a second later and
again until none is left (20 s at most), then removes the remembered folders. Standard library only: it must start in
under 100 ms, stay under 10 MB and work while the package it came from is being removed. Source: ray.md 7, 15, 18; P03.
"""

import os
import signal
import sys
import time

GRACE_S = 0.5
POLL_S = 0.05
KILL_FOR_S = 20.0
PATHS_KEPT = 1_000


def start_time(pid: int) -> "str | None":
    """Field 22 of ``stat``; pid and start time identify a process. None for a zombie or a dead one."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib: memory
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def marked(pair: bytes) -> "dict[int, str]":
    """Pid and start time of every live process, except this one, whose environment holds ``pair``."""
    found: dict[int, str] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - no pathlib: memory
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123 - no pathlib: memory
                holds = pair in file.read().split(b"\0")
        except OSError:
            continue
        started = start_time(int(name)) if holds else None
        if started is not None:
            found[int(name)] = started
    return found


def send(pid: int, started: str, number: int) -> None:
    """Signal exactly the process that was found, never one that took over its pid."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if start_time(pid) == started:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        pass
    finally:
        os.close(handle)


def sweep(pair: bytes) -> None:
    """SIGTERM once to each, SIGKILL after the grace, until none is left or the time is up."""
    begun = time.monotonic()
    told: set[tuple[int, str]] = set()
    while time.monotonic() - begun < KILL_FOR_S:
        found = marked(pair)
        if not found:
            return
        for pid, started in found.items():
            if time.monotonic() - begun >= GRACE_S:
                send(pid, started, signal.SIGKILL)
            elif (pid, started) not in told:
                told.add((pid, started))
                send(pid, started, signal.SIGTERM)
        time.sleep(POLL_S)


def remove(paths: "list[str]", prefix: str) -> None:
    """Remove the folders that really (links followed) lie below ``prefix``; anything else is left alone."""
    import shutil  # only now: it doubles the memory of the waiting process

    home = os.path.realpath(prefix)
    for path in paths:
        real = os.path.realpath(path)
        if real.startswith(home.rstrip("/") + "/"):
            shutil.rmtree(real, ignore_errors=True)


def detach() -> None:
    """Fork twice and leave every tie: session, terminal, folder, output."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def main(name: str, value: str, prefix: str) -> None:
    """Wait for the end of the driver, then tidy up after it."""
    detach()
    paths: list[str] = []
    for raw in sys.stdin.buffer:
        line = os.fsdecode(raw).rstrip("\n")
        if line == "done":
            return
        if line.startswith("rm ") and len(paths) < PATHS_KEPT:
            paths.append(line[3:])
    sweep(os.fsencode(f"{name}={value}"))
    remove(paths, prefix)


if __name__ == "__main__":
    if len(sys.argv) != 4 or not sys.argv[1] or not sys.argv[2] or not os.path.isabs(sys.argv[3]):  # noqa: PTH117
        sys.exit("usage: python -S -E janitor.py NAME VALUE PREFIX < pipe   (PREFIX is an absolute path)")
    main(sys.argv[1], sys.argv[2], sys.argv[3])
