#!/usr/bin/env python3
"""Measures snapshots for undo beside `git add -A && git write-tree`: time and disk of each, over the same tree and the same changes.

    .venv/bin/python bench/undo.py [--files 50000] [--rounds 200] [--json FILE]

Two copies of one tree change in the same way before each round: a file in 1 of 10,000 is written anew, one comes, one goes. The
rounds are interleaved, so that other load hits both alike. `disk` is what the object stores and indexes grow by.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from opendev.worktrees.undo_scan import Rules  # noqa: E402 - needs the path above
from opendev.worktrees.undo_store import UndoStore  # noqa: E402
from support.repos import ENV  # noqa: E402


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), options.files, options.rounds)
    for name, row in rows.items():
        print(f"{name:28}" + "  ".join(f"{key} {value}" for key, value in row.items()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


def measure(folder: Path, files: int, rounds: int) -> dict[str, dict[str, float]]:
    """Both, first snapshot and the later ones."""
    ours, theirs = folder / "ours", folder / "theirs"
    for place in (ours, theirs):
        plant(place, files)
        subprocess.run(["git", "init", "-q"], cwd=place, env=ENV, check=True)
    store = UndoStore(ours, folder / "home", ENV, Rules())
    ways: dict[str, tuple[Callable[[], None], Path]] = {
        "snapshot": (lambda: void(store.picture()), store.folder),
        "git add -A && write-tree": (lambda: by_git(theirs), theirs / ".git"),
    }
    found: dict[str, dict[str, float]] = {}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    start: dict[str, int] = {}
    for name, (run, place) in ways.items():
        found[name] = {"first_s": round(timed(run), 2), "first_MB": round(size(place) / 1e6, 1)}
        start[name] = size(place)
    for number in range(rounds):
        for place in (ours, theirs):
            change(place, files, number)
        for name in (list(ways), list(reversed(ways)))[number % 2]:
            seconds[name].append(timed(ways[name][0]))
    for name, (_, place) in ways.items():
        found[name] |= {
            "median_ms": round(statistics.median(seconds[name]) * 1000, 1),
            "least_ms": round(min(seconds[name]) * 1000, 1),
            "kB_each": round((size(place) - start[name]) / 1000 / rounds, 1),
        }
    mine, git = found.values()
    found["ratio"] = {key: round(mine[key] / git[key], 2) for key in mine if git[key]}
    return found


def plant(place: Path, files: int) -> None:
    """A tree of small files, 100 in a folder."""
    for number in range(files):
        path = place / f"d{number // 2500}" / f"e{number // 100 % 25}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 20)


def change(place: Path, files: int, number: int) -> None:
    """What happens between two snapshots."""
    for index in range(max(1, files // 10_000)):
        which = (number * 7919 + index * 104_729) % files
        path = place / f"d{which // 2500}" / f"e{which // 100 % 25}" / f"f{which}.txt"
        path.write_text(f"round {number}\n" * 20)
    (place / "d0" / f"new{number}.txt").write_text(f"new {number}\n")
    (place / "d0" / f"new{number - 1}.txt").unlink(missing_ok=True)


def by_git(place: Path) -> None:
    """The yardstick."""
    for words in (["add", "-A"], ["write-tree"]):
        subprocess.run(["git", *words], cwd=place, env=ENV, check=True, stdout=subprocess.DEVNULL)


def timed(run: Callable[[], None]) -> float:
    """Seconds."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def void(_value: object) -> None:
    """Drop a result."""


def size(place: Path) -> int:
    """Bytes on disk of objects and index."""
    return sum(
        os.lstat(f"{top}/{name}").st_blocks * 512 for top, _, names in os.walk(place) for name in names
    )


if __name__ == "__main__":
    main()
