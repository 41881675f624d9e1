#!/usr/bin/env python3
"""Runs the shared benchmark's batch of tasks (a JSONL file) with `opendev swarm`: batch_adapter.py TASKS.jsonl --repo DIR --jobs N.

Every ticket works in a worktree of its own that OpenDev leases, not in the folder that the benchmark prepared (`path`), and
its commands write only an ignored file, `.bench/trace`. So while the swarm runs that file is linked (a second name of the
same file) to where the benchmark looks for it. With nothing to land a ticket ends as "empty" and the swarm with exit code 1:
right for OpenDev and beside the point here; the benchmark itself checks that every command ran exactly once.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

OPENDEV = Path(sys.executable).parent / "opendev"


def main() -> int:
    """Write the ticket file and run it; the exit code is that of `opendev swarm`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--runtime", choices=("ray", "local"), default="ray")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.tasks.read_text("utf-8").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory(prefix="od-batch-") as folder:
        tickets = Path(folder) / "tickets.toml"
        tickets.write_text(_tickets(rows, given.jobs), encoding="utf-8")
        argv = [
            str(OPENDEV),
            "swarm",
            "run",
            str(tickets),
            "--repo",
            str(given.repo),
            "--runtime",
            given.runtime,
        ]
        trees = {_ticket_id(row): Path(row["path"]) for row in rows}
        with subprocess.Popen([*argv, "--output", "json"]) as swarm:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return swarm.wait(0.05)
                _link(Path(os.environ["OPENDEV_HOME"]), trees)


def _link(home: Path, trees: Mapping[str, Path]) -> None:
    """Give each trace that a leased folder holds its second name in the benchmark's tree, once."""
    for path in home.glob("leases/*/*.json"):
        with suppress(OSError, ValueError, KeyError):
            lease = json.loads(path.read_text("utf-8"))["lease"]
            trace = Path(lease["path"], ".bench", "trace")
            target = trees[lease["task"]] / ".bench" / "trace"
            if trace.exists() and not target.exists():
                target.parent.mkdir(exist_ok=True)
                target.hardlink_to(trace)


def _tickets(rows: list[dict[str, str]], jobs: int) -> str:
    head = f'[swarm]\ninto = "swarm/bench"\nconcurrency = {jobs}\napprove = "auto"\noverlap = "parallel"\nbaseline = false\n'
    return head + "".join(_ticket(row) for row in rows)


def _ticket(row: dict[str, str]) -> str:
    goal = json.dumps(row["problem_statement"])  # a JSON string is a TOML basic string
    return f'\n[[task]]\nid = "{_ticket_id(row)}"\ngoal = {goal}\nscope = ["**"]\nattempts = 1\n'


def _ticket_id(row: dict[str, str]) -> str:
    return re.sub(r"[^a-z0-9-]", "-", row["instance_id"].lower())


if __name__ == "__main__":
    sys.exit(main())
