"""Batches in a sandbox: ticket files, the installed command as a process, and what must hold after every run of it.

``python -m support.swarm_cli`` is a driver for crash tests: it imports everything once and then forks, for each line of JSON
on standard input, a process that runs or resumes one batch and may kill itself after its n-th journal record.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from opendev.actors import ray_session
from opendev.core.ticket import RunReport
from opendev.store.atomic import JsonlLog

from .command_line import Json, Outcome, Sandbox, marked
from .repos import fingerprint, git, locks, make_repo, worktrees

FIELDS = (  # of a run's report, in the order of cli.md; `notes` and `sandbox` are more
    *(
        "schema",
        "run_id",
        "status",
        "exit_code",
        "repo",
        "base",
        "into",
        "head",
        "wall_s",
        "cost_usd",
        "tokens",
    ),
    *("model_calls", "agents", "phases", "tasks", "leftovers", "notes", "sandbox"),
)
TASK_FIELDS = (
    *(
        "id",
        "status",
        "attempts",
        "branch",
        "commit",
        "merged_as",
        "files",
        "verify",
        "reviews",
        "model_calls",
    ),
    *("tool_calls", "tokens", "cost_usd", "wall_s", "error"),
)
PHASES = {"plan", "spawn", "work", "verify", "integrate"}
CHECK = "python3 check.py"
FILES: Mapping[str, str | bytes | None] = {
    "lib.py": "def greet():\n    return 'hi'\n",
    "app.py": "from lib import greet\n\nprint(greet())\n",
    "check.py": "import glob, importlib\nfor p in sorted(glob.glob('*.py')):\n    p == 'check.py' or importlib.import_module(p[:-3])\n",
    ".gitignore": "__pycache__/\n",
}


def task(name: str, *steps: Json, **fields: Any) -> Json:
    """A ticket; with ``steps`` it is a recipe."""
    return {"id": name, "goal": f"Do {name}.", **({"recipe": list(steps)} if steps else {}), **fields}


def put(path: str, content: str) -> Json:
    return {"write": {"path": path, "content": content}}


def sub(pattern: str, replacement: str, glob: str) -> Json:
    return {"replace": {"pattern": pattern, "with": replacement, "glob": glob}}


def sh(command: str) -> Json:
    return {"run": {"command": command}}


def report_of(raw: Json) -> RunReport:
    """A report with exactly the fields of cli.md, whose sums add up."""
    assert tuple(raw) == FIELDS, tuple(raw)
    assert all(tuple(row) == TASK_FIELDS for row in raw["tasks"]), raw["tasks"]
    assert set(raw["phases"]) == PHASES
    found = RunReport.model_validate_json(json.dumps(raw))
    assert found.model_calls == sum(row.model_calls for row in found.tasks)
    assert found.tokens.input == sum(row.tokens.input for row in found.tasks)
    for row in found.tasks:
        assert (row.status == "merged") == bool(row.merged_as) == (row.error is None), row
    return found


@dataclass(frozen=True)
class Ended(Outcome):
    """How a run of a batch ended."""

    @property
    def run(self) -> RunReport:
        """The report on standard output, which is that one line and nothing else."""
        assert self.stdout.count("\n") == 1, self
        found = report_of(cast("Json", json.loads(self.stdout)))
        assert found.exit_code == self.code
        return found

    @property
    def statuses(self) -> dict[str, str]:
        return {row.id: str(row.status) for row in self.run.tasks}


@dataclass
class Bench:
    """One repository, one state root, one ticket file."""

    sandbox: Sandbox
    place: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list["subprocess.Popen[str]"])

    @property
    def repo(self) -> Path:
        return self.sandbox.project

    @property
    def home(self) -> Path:
        return self.sandbox.home / "opendev"

    def tickets(self, *tasks: Json, **swarm: Any) -> Path:
        """Write a ticket file outside of the repository."""
        path = self.place / "tickets.json"
        path.write_text(json.dumps({"swarm": {"into": "swarm/x", **swarm}, "task": list(tasks)}))
        return path

    def start(self, *words: str) -> "subprocess.Popen[str]":
        process = self.sandbox.start(*words)
        self.started.append(process)
        return process

    def close(self) -> None:
        """End what a failed test left running."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def wait(self, process: "subprocess.Popen[str]") -> Ended:
        stdout, stderr = process.communicate(timeout=100)
        return Ended(process.returncode, stdout, stderr)

    def opendev(self, *words: str) -> Ended:
        """Run the installed command to its end."""
        return self.wait(self.start(*words))

    def run(self, *tasks: Json, options: tuple[str, ...] = (), runtime: str = "local", **swarm: Any) -> Ended:
        """Run a batch to its end and hold it to what every run owes its user."""
        file = self.tickets(*tasks, **swarm)
        before = fingerprint(self.repo)
        done = self.opendev("swarm", "run", str(file), "--runtime", runtime, "--output", "json", *options)
        self.assert_tidy(before)
        return done

    def assert_tidy(self, before: Json, *, folders: bool = True) -> None:
        """The user's checkout is byte-equal, and no process, lock, worktree, lease or Ray session of ours is left."""
        after = fingerprint(self.repo)
        assert after == before, {
            key: (before[key], after[key]) for key in before if before[key] != after[key]
        }
        assert locks(self.repo) == []
        assert [pid for run in self.sandbox.runs() for pid in marked(run)] == []
        assert self.sessions() == []
        if folders:
            assert [path for path in worktrees(self.repo) if path.startswith(str(self.home))] == []
            assert [*self.home.glob("leases/*/*.json"), *self.home.glob("worktrees/*/*")] == []

    def events(self, kind: str) -> list[Json]:
        """The events of that kind so far, of a state root with one run."""
        files = list(self.home.glob("runs/*/events.jsonl"))
        lines = files[0].read_text().splitlines() if files else []
        rows = [cast("Json", json.loads(line)) for line in lines if line.endswith("}")]
        return [row for row in rows if row["kind"] == kind]

    def sessions(self) -> list[Path]:
        """Folders of Ray sessions that a process started here has left."""
        owners = {str(process.pid) for process in self.started}
        found = ray_session.base_dir().glob("*/owner")
        return [path.parent for path in found if path.read_text().split()[0] in owners]

    def commits(self, into: str = "swarm/x", since: str = "main") -> list[str]:
        """The subjects of the commits on the integration branch, oldest first."""
        return git(self.repo, "log", "--reverse", "--format=%s", f"{since}..{into}").splitlines()

    def green(self, command: str = CHECK, into: str = "swarm/x") -> bool:
        """Whether ``command`` passes on a copy of the branch made by git alone."""
        copy = self.place / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        git(
            self.repo,
            "--work-tree",
            str(copy),
            "archive",
            "--format=tar",
            "-o",
            str(self.place / "x.tar"),
            into,
        )
        subprocess.run(["tar", "-xf", self.place / "x.tar", "-C", copy], check=True)
        return subprocess.run(command, shell=True, cwd=copy, capture_output=True, check=False).returncode == 0

    def journal(self, run: str) -> list[Json]:
        """The journal of a run."""
        lines = JsonlLog(self.home / "runs" / run / "journal.jsonl").read()
        return [cast("Json", json.loads(line)) for line in lines]


def make_bench(place: Path, files: Mapping[str, str | bytes | None] = FILES) -> Bench:
    """A repository with one commit and an empty state root, without a model."""
    made = Bench(Sandbox(make_repo(place / "repo", files), place / "home"), place)
    made.sandbox.home.mkdir()
    made.sandbox.env |= {"OPENDEV_SWARM__DISK_FLOOR_MB": "1"}
    return made


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    """Poll until ``condition()``; for processes, which tell nobody."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        signal.sigtimedwait([], 0.02)


def work_once(order: Json) -> None:
    """Run (or resume) one batch in this process, as `opendev swarm` does, with a kill after ``crash_after`` records."""
    from opendev.agents.specs import builtin_specs
    from opendev.cli.batch import BatchOptions, resolve_base, resume_batch, run_batch
    from opendev.cli.project import open_project
    from opendev.cli.wiring import open_keeper
    from opendev.swarm.tickets import load_plan

    project = open_project(Path(order["repo"]))
    options = BatchOptions(
        run_id=order["run"], runtime=order["runtime"], crash_after=order["crash_after"] or None
    )

    async def work() -> RunReport:
        if order["resume"]:
            return (await resume_batch(project, order["run"], options, lambda _: None))[1]
        plan = load_plan(Path(order["tickets"]), agents=builtin_specs())
        keeper = open_keeper(project, project.path, plan.swarm.base)
        base = await resolve_base(keeper, plan, None)
        return await run_batch(project, keeper, plan, base, options, lambda _: None)

    Path(order["out"]).write_text(asyncio.run(work()).to_json())


def serve() -> None:
    """Fork a process for each order; answer with its pid and wait status when it is over."""
    import opendev.cli.main  # noqa: F401  # pyright: ignore[reportUnusedImport]  # once, for all

    running: dict[int, Json] = {}
    for line in sys.stdin:
        order = cast("Json", json.loads(line))
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.environ["OPENDEV_HOME"] = order["home"]  # noqa: TID251
            work_once(order)
            os._exit(0)
        running[pid] = order
        if order["wait"]:
            for _ in list(running):
                ended, status = os.wait()
                row = {"order": running.pop(ended), "pid": ended, "code": os.waitstatus_to_exitcode(status)}
                sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve()
