#!/usr/bin/env python3
"""Compares the speed of this checkout with an older commit, interleaved, so that other load on the machine hits both alike.

    .venv/bin/python bench/versions.py COMMIT [--rounds 7] [--only NAME…] [--json FILE]

CPU seconds are those of the command and of everything it started (daemons of Ray included: this process adopts and awaits
them). The model is tests/support/model_server.py without latency. "kB sent" is all that the model got.
"""

import argparse
import contextlib
import ctypes
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.model_server import Call, ModelServer, Reply, Seen, call, calls, text  # noqa: E402 - needs the path

OPENDEV = str(Path(sys.executable).parent / "opendev")
MANY = 60  # calls in one turn, to see what one call costs
ADOPT = 36  # PR_SET_CHILD_SUBREAPER
Row = dict[str, float]
Measured = Callable[[Path, Path], Row]  # (folder that holds the package, fresh folder) -> figures


def main() -> int:
    """Measure both, print the table, write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit")
    parser.add_argument("--new", help="compare with this commit, not with the working tree")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=sorted(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)
    found: dict[str, dict[str, list[Row]]] = {name: {"old": [], "new": []} for name in given.only}
    with tempfile.TemporaryDirectory(prefix="od-versions-") as folder:
        sides = _sides(Path(folder), given.commit, given.new)
        for number in range(given.rounds + 1):  # the first round compiles and warms caches and does not count
            for name in given.only:
                for side in sorted(sides, reverse=bool(number % 2)):
                    work = Path(tempfile.mkdtemp(dir=folder))
                    row = SCENARIOS[name](sides[side], work)
                    found[name][side].extend([row] if number else [])
    print("\n".join(_table(found, given.rounds)))
    if given.json:
        given.json.write_text(json.dumps({"load_1min": os.getloadavg()[0], **found}, indent=1) + "\n")
    return 0


def _sides(folder: Path, old: str, new: str | None) -> dict[str, Path]:
    """Folders to put on the path: the checkout's root is the package, so it must be called opendev."""
    sides = {"old": folder / "old", "new": folder / "new"}
    for side, commit in (("old", old), ("new", new)):
        sides[side].mkdir()
        package = sides[side] / "opendev"
        if commit is None:
            package.symlink_to(ROOT)
            continue
        subprocess.run(["git", "clone", "-q", str(ROOT), str(package)], check=True)
        subprocess.run(["git", "checkout", "-q", commit], cwd=package, check=True)
    return sides


def _plain(*argv: str) -> Measured:
    return lambda side, work: _timed([OPENDEV, *argv], side, work, {})


def _prompt(*replies: Reply) -> Measured:
    """One run of ``-p`` in a fresh repository of ``MANY`` files."""

    def measure(side: Path, work: Path) -> Row:
        rest, first, sent = iter(replies), 0.0, 0

        def answer(seen: Seen) -> Reply:
            nonlocal first, sent
            first = first or time.monotonic()
            sent += len(seen.raw)
            return next(rest) if seen.body.get("tools") else text("A summary.")

        for n in range(MANY):
            (work / f"f{n}.py").write_text(f"value = {n}\n" * 20)
        git = ["git", "-c", "user.name=b", "-c", "user.email=b@b"]
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "start"]):
            subprocess.run([*git, *arguments], cwd=work, check=True)
        with ModelServer(answer) as server:
            env = {**server.env(), "OPENDEV_MODEL": "openai/scripted"}
            began = time.monotonic()
            row = _timed([OPENDEV, "-p", "Do it.", "--approve", "auto"], side, work, env)
        if next(rest, None) is not None:
            raise SystemExit("the run ended before its script")
        return {**row, "first_ms": (first - began) * 1000, "sent_kb": sent / 1000}

    return measure


def _timed(argv: list[str], side: Path, work: Path, env: dict[str, str]) -> Row:
    """Wall and CPU in ms, the largest process in MB; ends when everything that ``argv`` started has ended."""
    home = work.with_name(work.name + "-home")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OPENDEV_", "PYTHON"))}
    cache = side.parent / "pycache"  # compiled code of both, outside the checkout
    whole = {
        **clean,
        "PYTHONPATH": str(side),
        "PYTHONPYCACHEPREFIX": str(cache),
        "OPENDEV_HOME": str(home),
        **env,
    }
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with (
        tempfile.TemporaryFile() as told,
        subprocess.Popen(argv, env=whole, cwd=work, stdout=told, stderr=told) as run,
    ):
        _, status, usage = os.wait4(run.pid, 0)
        wall = time.monotonic() - began
        run.returncode = os.waitstatus_to_exitcode(status)
        if run.returncode:
            told.seek(0)
            raise SystemExit(f"{' '.join(argv)} failed ({run.returncode}): {told.read()[-2000:].decode()}")
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_ms": wall * 1000, "cpu_ms": cpu * 1000, "rss_mb": usage.ru_maxrss / 1024}


def _table(found: dict[str, dict[str, list[Row]]], rounds: int) -> list[str]:
    lines = [
        f"medians of {rounds} runs, least in brackets, load {os.getloadavg()[0]:.1f}",
        "",
        "| | CPU ms old | new | ratio | of the least | wall ms old | new | to the first request old | new | MB old | new | kB sent old | new |",
        "|---" * 13 + "|",
    ]
    for name, sides in found.items():
        old, new = ({key: [row[key] for row in rows] for key in rows[0]} for rows in sides.values())
        mid = {key: (statistics.median(old[key]), statistics.median(new[key])) for key in old}
        cpu, least = mid["cpu_ms"], (min(old["cpu_ms"]), min(new["cpu_ms"]))
        cells = [
            *(f"{a:.0f} ({b:.0f})" for a, b in zip(cpu, least, strict=True)),
            f"**{cpu[1] / cpu[0]:.2f}**",
            f"{least[1] / least[0]:.2f}",
            *(f"{value:.0f}" for value in mid["wall_ms"]),
            *(f"{value:.0f}" for value in mid.get("first_ms", (math.nan, math.nan))),
            *(f"{value:.0f}" for value in mid["rss_mb"]),
            *(f"{value:.1f}" for value in mid.get("sent_kb", (math.nan, math.nan))),
        ]
        lines.append(f"| {name} | {' | '.join(cells).replace('nan', '-')} |")
    return lines


SCENARIOS: dict[str, Measured] = {
    "version": _plain("--version"),
    "policy": _plain("policy", "check", "--", "ls"),
    "tool": _plain("tools", "run", "list_files"),
    "turn1": _prompt(text("done")),
    "turns10": _prompt(
        *(call("run_command", {"command": f"echo {n} >> trace"}) for n in range(9)), text("done")
    ),
    "reads": _prompt(
        calls(*(Call("read_file", {"file_path": f"f{n}.py"}) for n in range(MANY))), text("done")
    ),
    "writes": _prompt(
        calls(*(Call("write_file", {"file_path": f"n{n}.py", "content": "x = 1\n"}) for n in range(MANY))),
        text("done"),
    ),
    "commands": _prompt(
        calls(
            *(
                Call("run_command", {"command": f"grep -c value f{n}.py | sort > /dev/null"})
                for n in range(MANY)
            )
        ),
        text("done"),
    ),
    "demo": _plain("swarm", "demo", "--runtime", "local"),
    "demo_ray": _plain("swarm", "demo"),
}


if __name__ == "__main__":
    sys.exit(main())
