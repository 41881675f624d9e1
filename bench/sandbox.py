#!/usr/bin/env python3
"""Measures what a sandbox costs each command: `true` through ProcessShell without one, under bubblewrap and under Landlock.

    .venv/bin/python bench/sandbox.py [--rounds 40]

Wall in ms (median, least) and CPU in ms of a command, interleaved, so that other load hits every row alike. "alone" is how
verification runs: with a process list of its own. The ratio to "none" carries over to other machines.
"""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from opendev.configs.load import load_config, read_environment
from opendev.core.errors import OpenDevError
from opendev.tools.shell.process import ProcessShell
from opendev.tools.shell.sandbox import Sandbox, Work, choose

ROWS = {"none": ("off", False), "bubblewrap": ("bubblewrap", False), "bubblewrap, alone": ("bubblewrap", True), "landlock": ("landlock", False)}  # fmt: skip


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        shells = {name: shell for name, row in ROWS.items() if (shell := make(base, *row)) is not None}
        walls: dict[str, list[float]] = {name: [] for name in shells}
        cpu = dict.fromkeys(shells, 0.0)
        for _ in range(rounds):
            for name, shell in shells.items():
                before, began = spent(), time.perf_counter()
                done = await shell.run(
                    "true", cwd=base / "work", env={"PATH": "/usr/bin:/bin"}, idle_s=10, total_s=10
                )
                walls[name].append(1000 * (time.perf_counter() - began))
                cpu[name] += 1000 * (spent() - before)
                assert done.exit_code == 0, done
    print(
        f"load {os.getloadavg()[0]:.1f}, {rounds} rounds\n\n| | wall ms | least ms | CPU ms | x none |\n|---|---|---|---|---|"
    )
    for name, found in walls.items():
        middle = statistics.median(found)
        ratio = middle / statistics.median(walls["none"])
        print(f"| {name} | {middle:.1f} | {min(found):.1f} | {cpu[name] / rounds:.1f} | {ratio:.1f} |")


def make(base: Path, mode: str, alone: bool) -> ProcessShell | None:
    """A shell in a fresh worktree; None when this machine lacks the sandbox."""
    work = base / "work"
    if not work.exists():
        subprocess.run(["git", "init", "-q", work], check=True)
    environment = read_environment()
    settings = load_config(project=work, environment=environment).config.sandbox.model_copy(
        update={"mode": mode}
    )
    try:
        choose(settings)
    except OpenDevError as error:
        print(f"{mode}: {error.info.message}")
        return None
    box = Sandbox(
        settings, Work(roots=(work,), alone=alone), env=environment.child_env(), home=base / "state"
    )
    return ProcessShell(log_dir=base / "logs", marker={}, sandbox=box)


def spent() -> float:
    """CPU seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    asyncio.run(main())
