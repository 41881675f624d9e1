#!/usr/bin/env python3
"""Measures how fast `opendev` starts: --version, --help, and `-p` from process start to its first model request and per turn.

    .venv/bin/python bench/startup.py [--rounds 7] [--json FILE]

Wall in ms (median, least) and CPU in ms, beside `python -c pass` of the same interpreter in the same run: absolute times belong to the
machine, ratios carry over. The model is tests/support/model_server.py on loopback without latency, so a turn is OpenDev's own
time, the trivial command (`echo`) included. Rounds are interleaved, so that other load hits every row alike.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.model_server import ModelServer, Reply, Seen, call, text  # noqa: E402 - needs the path above

OPENDEV = str(Path(sys.executable).parent / "opendev")
TURNS = 10
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import litellm": [sys.executable, "-c", "import litellm"],
    "import openai": [sys.executable, "-c", "import openai"],
    "import ray": [sys.executable, "-c", "import ray"],
    "opendev --version": [OPENDEV, "--version"],
    "opendev --help": [OPENDEV, "--help"],
}
PROMPTS = {"openai/scripted": "OpenAI-compatible server", "anthropic/claude-scripted": "through litellm"}


def main() -> int:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every start would compile everything
    rows: dict[str, list[dict[str, float]]] = {}
    for number in range(given.rounds + 1):  # the first round warms caches and does not count
        for name, found in _round().items():
            rows.setdefault(name, []).extend([found] if number else [])
    result = {name: _summary(found) for name, found in rows.items()}
    print("\n".join(_table(result, given.rounds)))
    if given.json:
        given.json.write_text(json.dumps({"load_1min": os.getloadavg()[0], **result}, indent=1) + "\n")
    return 0


def _round() -> dict[str, dict[str, float]]:
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    found = {name: _timed(argv, env, Path.cwd()) for name, argv in COMMANDS.items()}
    for model, how in PROMPTS.items():
        found |= {f"opendev -p, {how}: {what}": row for what, row in _prompt(model).items()}
    return found


def _timed(argv: list[str], env: Mapping[str, str], cwd: Path) -> dict[str, float]:
    """Wall and CPU (its waited-for children included) of one process, in ms."""
    began = time.monotonic()
    with subprocess.Popen(
        argv, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} failed ({process.returncode}): {told[-2000:].decode()}")
    return {"wall": wall * 1000, "cpu": (usage.ru_utime + usage.ru_stime) * 1000}


def _prompt(model: str) -> dict[str, dict[str, float]]:
    """One run of `-p` with ten answers: to the first request, a turn, after the last answer, the whole."""
    times: list[float] = []
    replies = iter(
        [call("run_command", {"command": f"echo {n} >> trace"}) for n in range(TURNS - 1)] + [text("done")]
    )

    def answer(seen: Seen) -> Reply:
        if not seen.body.get("tools"):
            return text("A summary.")  # a call on the side (a running summary, for example) is no turn
        times.append(time.monotonic())
        return next(replies)

    with ModelServer(answer) as server, tempfile.TemporaryDirectory(prefix="od-start-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        git = ["git", "-c", "user.name=b", "-c", "user.email=b@b"]
        subprocess.run([*git, "init", "-q"], cwd=project, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], cwd=project, check=True)
        env = {**os.environ, **server.env(), "OPENDEV_HOME": f"{folder}/home", "OPENDEV_MODEL": model}
        began = time.monotonic()
        whole = _timed([OPENDEV, "-p", "Do it.", "--approve", "auto"], env, project)
        if (project / "trace").read_text().split() != [str(n) for n in range(TURNS - 1)]:
            raise SystemExit("the run did not do what was scripted")
    gaps = [b - a for a, b in itertools.pairwise(times)]
    return {
        "to the first request": {"wall": (times[0] - began) * 1000},
        "a turn": {"wall": statistics.median(gaps) * 1000},
        "after the last request": {"wall": began * 1000 + whole["wall"] - times[-1] * 1000},
        f"{TURNS} turns in all": whole,
    }


def _summary(found: list[dict[str, float]]) -> dict[str, float]:
    walls = [row["wall"] for row in found]
    cpus = [row["cpu"] for row in found if "cpu" in row]
    cpu = {"cpu_ms": statistics.median(cpus)} if cpus else {}
    return {"wall_ms": statistics.median(walls), "least_ms": min(walls), **cpu}


def _table(result: Mapping[str, dict[str, Any]], rounds: int) -> list[str]:
    base = result["python -c pass"]
    lines = [
        f"medians of {rounds} runs, load {os.getloadavg()[0]:.1f}",
        "",
        "| | wall ms | least ms | x python | CPU ms | x python |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in result.items():
        cpu = f"{row['cpu_ms']:.0f} | {row['cpu_ms'] / base['cpu_ms']:.1f}" if "cpu_ms" in row else "- | -"
        lines.append(
            f"| {name} | {row['wall_ms']:.0f} | {row['least_ms']:.0f} | {row['wall_ms'] / base['wall_ms']:.1f} | {cpu} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
