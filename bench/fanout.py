#!/usr/bin/env python3
"""Measures eight read-only agents side by side on Ray, through the real hub: wall against the ideal, CPU, memory, processes, cold and warm.

    .venv/bin/python bench/fanout.py [--agents 8] [--turns 10] [--latency 0.3] [--rounds 3] [--runtime ray|local] [--json FILE]

Each agent is a Code-Explorer on a scripted model server (a process of its own, on loopback): `turns` answers, `turns - 1` of
them one trivial tool call. The ideal is turns x latency. "Cold" is from nothing to the reports of all agents; "warm" is with
Ray up, the pool of hosts filled and the model library loaded. The machine's load at the time is part of the result.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from opendev.actors.hub import Hub
from opendev.agents.specs import builtin_specs
from opendev.cli.project import open_project
from opendev.cli.wiring import RuntimeKind, open_hub
from opendev.core.agent import AgentReport, AgentStatus, AgentTask
from opendev.core.ids import new_id
from opendev.tools.shell.reap import family

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests" / "support" / "model_server.py"
AGENT = "Code-Explorer"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """What is measured: how many agents, turns each, seconds a model answer, rounds of the warm part, where."""

    agents: int
    turns: int
    latency: float
    rounds: int
    runtime: RuntimeKind

    @property
    def ideal(self) -> float:
        """The wall time of an agent that costs nothing itself."""
        return self.turns * self.latency


def main() -> int:
    """Measure, print the table, write the JSON; 1 when an agent failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runtime", choices=("ray", "local"), default="ray")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--part", choices=("cold", "warm"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    load = Load(given.agents, given.turns, given.latency, given.rounds, given.runtime)
    if given.part:
        print(json.dumps(asyncio.run(_part(load, cold=given.part == "cold"))))
        return 0
    cold = _measure(load, "cold")
    warm = [_measure(load, "warm") for _ in range(load.rounds)]
    result: dict[str, Any] = {**vars(load), "ideal_s": load.ideal, "load_1min": os.getloadavg()[0]}
    result |= {"cold": cold, "warm": {name: [row[name] for row in warm] for name in warm[0]}}
    print("\n".join(_table(load, result)))
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _measure(load: Load, part: str) -> dict[str, Any]:
    """One part in a process of its own, so that a cold start is cold; its last line is the result."""
    with _scene(load) as env:
        numbers = {k: v for k, v in vars(load).items() if k != "runtime"}
        flags = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        argv = [sys.executable, __file__, "--part", part, "--runtime", load.runtime, *flags]
        done = subprocess.run(argv, env=env, cwd=env["OPENDEV_BENCH_PROJECT"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{part}: the run failed ({done.returncode})\n{done.stderr[-4000:]}")
    return cast("dict[str, Any]", json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def _scene(load: Load) -> Generator[dict[str, str]]:
    """A model server, a project and an empty state folder; the environment that names them."""
    work = Path(tempfile.mkdtemp(prefix="od-fan-"))
    try:
        project = work / "project"
        for number in range(4):
            path = project / "src" / f"part{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                "".join(f"def job_{number}_{n}(x: int) -> int:\n    return x + {n}\n" for n in range(40))
            )
        script = work / "script.json"
        script.write_text(json.dumps({"replies": _replies(load.turns), "sessions": _sessions(load)}))
        argv = [sys.executable, str(SERVER), "--script", str(script), "--latency", str(load.latency)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            try:
                told: dict[str, Any] = json.loads(server.stdout.readline())
                yield {
                    **os.environ,
                    **told["env"],
                    "OPENDEV_HOME": str(work / "home"),
                    "OPENDEV_MODEL": "openai/scripted",
                    "OPENDEV_BENCH_PROJECT": str(project),
                }
            finally:
                server.stdin.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _replies(turns: int) -> list[dict[str, Any]]:
    """The answers of one agent: trivial calls of its read-only tools, then words."""
    calls = [
        {"name": "read_file", "arguments": {"file_path": "src/part0.py"}},
        {"name": "list_files", "arguments": {"path": "src"}},
        {"name": "search", "arguments": {"pattern": "job_1_7"}},
    ]
    used = [
        {"text": f"step {n}", "calls": [_varied(calls[n % 3], n)]} for n in range(turns - 1)
    ]  # varied, so that no loop is suspected
    return [*used, {"text": "It adds a number. " * 5}]


def _varied(call: dict[str, Any], n: int) -> dict[str, Any]:
    extra: dict[str, dict[str, Any]] = {
        "read_file": {"file_path": f"src/part{n // 3 % 4}.py", "offset": 1 + n, "max_lines": 20},
        "list_files": {"path": "src", "pattern": f"part{n // 3 % 4}*"},
        "search": {"pattern": f"job_{n // 3 % 4}_{n}"},
    }
    return {**call, "arguments": extra[call["name"]]}


def _sessions(load: Load) -> dict[str, list[dict[str, Any]]]:
    """Replies by marker: warming up, then one alone and all together in each round."""
    names = [f"[[warm-{n}]]" for n in range(load.agents)] + ["[[one-0]]"]
    names += [f"[[all-{part}-{n}]]" for part in (0, 1) for n in range(load.agents)]
    return {name: _replies(load.turns) for name in names}


async def _part(load: Load, *, cold: bool) -> dict[str, Any]:
    project = open_project(None)
    run = new_id(8)
    meter = Meter(run)
    began = time.monotonic()
    async with open_hub(project, run, load.runtime, desk=None) as hub:
        up = time.monotonic() - began
        if cold:
            wall, reports = await _together(hub, _tasks(load, run, "[[warm-{}]]", load.agents))
            return {
                "hub_up_s": up,
                "agents_wall_s": wall,
                "all_s": time.monotonic() - began,
                **meter.total(),
                **_ran(reports),
            }
        await _together(hub, _tasks(load, run, "[[warm-{}]]", 1))  # loads the model library
        await asyncio.sleep(3.0)  # the pool refills, the machine calms down
        idle = meter.memory()
        first = await _metered(hub, meter, _tasks(load, run, "[[all-0-{}]]", load.agents))
        one = await _metered(hub, meter, _tasks(load, run, "[[one-0]]", 1))
        again = await _metered(hub, meter, _tasks(load, run, "[[all-1-{}]]", load.agents))
    return {"hub_up_s": up, "idle": idle, "one": one, "first": first, "again": again}


def _tasks(load: Load, run: str, marker: str, count: int) -> list[AgentTask]:
    """Sub-agents of a parent that is not there: what spawn_subagent makes, without its parent's own turns."""
    spec = builtin_specs()[AGENT]
    return [
        AgentTask(
            id=new_id(),
            run_id=run,
            spec=spec.model_copy(update={"max_iterations": load.turns + 5}),
            prompt=f"{marker.format(n)} What do the functions in src do?",
            root=str(Path.cwd()),
            parent="bench",
            depth=1,
        )
        for n in range(count)
    ]


async def _together(hub: Hub, tasks: Sequence[AgentTask]) -> tuple[float, list[AgentReport]]:
    began = time.monotonic()
    reports = await asyncio.gather(*(hub.run_agent(task) for task in tasks))
    wall = time.monotonic() - began
    bad = [r for r in reports if r.status is not AgentStatus.DONE]
    if bad:
        raise SystemExit(f"{len(bad)} agents failed; the first: {bad[0].to_json()}")
    return wall, reports


async def _metered(hub: Hub, meter: "Meter", tasks: Sequence[AgentTask]) -> dict[str, Any]:
    """Run the tasks; CPU of all processes of the run, and the peak of their memory, sampled twice a second."""
    cpu, peak = meter.cpu(), {"pss_mb": 0.0, "uss_mb": 0.0}
    work = asyncio.ensure_future(_together(hub, tasks))
    while not work.done():
        await asyncio.wait({work}, timeout=1.5)
        if not work.done():
            seen = await asyncio.to_thread(meter.memory)
            peak = {name: max(peak[name], seen[name]) for name in peak}
    wall, reports = work.result()
    return {"wall_s": wall, "cpu_s": meter.cpu() - cpu, **peak, **_ran(reports)}


def _ran(reports: Sequence[AgentReport]) -> dict[str, Any]:
    return {
        "pids": len({r.pid for r in reports}),
        "model_calls": sum(r.model_calls for r in reports),
        "tool_calls": sum(r.tool_calls for r in reports),
        "agent_wall_s": statistics.median(r.wall_s for r in reports),
    }


class Meter:
    """CPU and memory of this process and of everything that carries the run's mark, Ray's daemons included."""

    def __init__(self, run: str) -> None:
        self._run = run

    def cpu(self) -> float:
        """CPU seconds of the living processes and their waited-for children."""
        total = 0
        for pid in self._pids():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += sum(int(field) for field in fields[11:15])
        return total / TICKS

    def memory(self) -> dict[str, float]:
        """Summed PSS and USS in MB, and how many processes there are."""
        pss = uss = 0
        pids = self._pids()
        for pid in pids:
            try:
                rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
            except OSError:
                continue
            sizes = {row.partition(":")[0]: int(row.split()[1]) for row in rows}
            pss += sizes["Pss"]
            uss += sizes["Private_Clean"] + sizes["Private_Dirty"]
        return {"pss_mb": pss / 1024, "uss_mb": uss / 1024, "processes": len(pids)}

    def total(self) -> dict[str, float]:
        """CPU so far, and the memory now."""
        return {"cpu_s": self.cpu(), **self.memory()}

    def _pids(self) -> tuple[int, ...]:
        return (os.getpid(), *(proc.pid for proc in family(marker={"OPENDEV_RUN": self._run})))


def _table(load: Load, result: dict[str, Any]) -> list[str]:
    cold, warm = result["cold"], result["warm"]
    idle, one, first, again = (_medians(warm[name]) for name in ("idle", "one", "first", "again"))
    extra = max(1, load.agents - 1)
    title = f"{load.agents} agents, {load.turns} turns of {load.latency:g} s (ideal {load.ideal:.1f} s), {load.runtime}"
    return [
        f"{title}; medians of {load.rounds} runs, load {result['load_1min']:.1f}",
        "",
        "| | wall s | x ideal | CPU s | PSS MB | USS MB | processes of agents |",
        "|---|---|---|---|---|---|---|",
        f"| cold: hub up | {cold['hub_up_s']:.2f} | - | - | - | - | - |",
        _row("cold: hub up to all reports", {**cold, "wall_s": cold["all_s"]}, load),
        f"| warm: idle | - | - | - | {idle['pss_mb']:.0f} | {idle['uss_mb']:.0f} | - |",
        _row("warm: one agent", one, load),
        _row(f"warm: {load.agents} agents, first time", first, load),
        _row(f"warm: {load.agents} agents, once more", again, load),
        "",
        f"{load.agents} agents beside one: {first['wall_s'] / one['wall_s']:.2f} x; an extra agent: "
        f"{(first['pss_mb'] - one['pss_mb']) / extra:.1f} MB PSS, {(first['uss_mb'] - one['uss_mb']) / extra:.1f} MB USS, "
        f"{(first['cpu_s'] - one['cpu_s']) / extra:.2f} CPU s; walls: "
        + ", ".join(f"{r['wall_s']:.2f}" for r in warm["first"]),
    ]


def _row(name: str, found: dict[str, float], load: Load) -> str:
    return (
        f"| {name} | {found['wall_s']:.2f} | {found['wall_s'] / load.ideal:.2f} | {found['cpu_s']:.1f} | "
        f"{found['pss_mb']:.0f} | {found['uss_mb']:.0f} | {found['pids']:.0f} |"
    )


def _medians(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


if __name__ == "__main__":
    sys.exit(main())
