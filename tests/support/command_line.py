"""The command line in a sandbox: as a real process of the installed `opendev`, or in this process where a process is no part of the test."""

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from opendev.cli.main import run
from opendev.tools.shell.reap import PROC

from .model_server import ModelServer, Seen
from .waiting import until

OPENDEV = Path(sys.executable).with_name("opendev")  # of the same installation as the tests
FIELDS = (  # of `-p --output json`, in the order of cli.md
    *("schema", "session_id", "status", "exit_code", "text", "turns", "tool_calls", "model_calls", "tokens"),
    *("cost_usd", "wall_s", "files_changed", "error"),
)
Json = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> Json:
        """The one JSON object that standard output is, with exactly the fields of cli.md."""
        assert self.stdout.endswith("}\n"), self
        assert self.stdout.count("\n") == 1, self
        found = cast("Json", json.loads(self.stdout))
        assert tuple(found) == FIELDS, found
        assert found["exit_code"] == self.code
        return found

    @property
    def events(self) -> list[Json]:
        """The lines of ``stream-json``: every one an object with the envelope, the durable ones numbered without a gap."""
        rows = cast("list[Json]", [json.loads(line) for line in self.stdout.splitlines()])
        assert all({"schema", "seq", "at", "run", "agent", "kind"} <= row.keys() for row in rows), rows
        durable = [row["seq"] for row in rows if row["kind"] not in ("text_delta", "tool_output")]
        assert durable == list(range(1, len(durable) + 1))
        assert rows[-1]["kind"] == "report"
        assert rows[-1]["exit_code"] == self.code
        assert set(FIELDS) <= rows[-1].keys()
        return rows


@dataclass
class Sandbox:
    """A project folder, a state root, and the model that answers (None: none is configured)."""

    project: Path
    home: Path
    server: ModelServer | None = None
    model: str = "openai/gpt-4o-mini"
    env: dict[str, str] = field(default_factory=dict[str, str])
    started: "list[subprocess.Popen[str]]" = field(default_factory=list["subprocess.Popen[str]"])

    def environment(self) -> dict[str, str]:
        """A clean environment: nothing of the test run gets in, retries are quick."""
        found = {
            "PATH": f"{OPENDEV.parent}{os.pathsep}/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "OPENDEV_HOME": str(self.home / "opendev"),
            "OPENDEV_RETRY__BASE_S": "0.01",
            "OPENDEV_DISABLE_REMOTE_MODELS": "1",  # no test leaves the machine
        }
        if self.server is not None:
            found |= {"OPENDEV_MODEL": self.model, **self.server.env()}
        return found | self.env

    def run(self, *arguments: str, stdin: str = "") -> Outcome:
        """Run the installed command to its end."""
        process = self.start(*arguments, stdin=subprocess.PIPE)
        stdout, stderr = process.communicate(stdin, timeout=100)
        return Outcome(process.returncode, stdout, stderr)

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        """Start the installed command in a session of its own."""
        process = subprocess.Popen(
            [OPENDEV, *arguments],
            cwd=self.project,
            env=self.environment(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def close(self) -> None:
        """End what a failed test left running."""
        for process in self.started:
            if process.poll() is None:
                end(process, signal.SIGKILL)

    def shell(self, script: str) -> Outcome:
        """Run a line of shell that calls ``opendev``."""
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def here(self, *arguments: str, stdin: str = "") -> Outcome:
        """Run the command line in this process: the same code behind the same border, without the start of an interpreter."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with _environment(self.environment()) as patch:
            patch.chdir(self.project)
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                code = run(list(arguments))
        return Outcome(code, stdout.getvalue(), stderr.getvalue())

    def runs(self) -> list[str]:
        """Ids of the runs of this state root."""
        folder = self.home / "opendev" / "runs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Generator[pytest.MonkeyPatch]:
    before = dict(os.environ)  # noqa: TID251  # what a process is started with is replaced as a whole
    with pytest.MonkeyPatch.context() as patch:
        try:
            for name in before.keys() - values.keys():
                patch.delenv(name)
            for name, value in values.items():
                patch.setenv(name, value)
            yield patch
        finally:
            os.environ.clear()  # noqa: TID251
            os.environ.update(before)  # noqa: TID251


def marked(run_id: str) -> list[int]:
    """Processes that carry the mark of a run in their environment."""
    mark = os.fsencode(f"OPENDEV_RUN={run_id}")
    found: list[int] = []
    for entry in PROC.iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def while_running(process: "subprocess.Popen[str]", sign: Callable[[], bool]) -> None:
    """Wait for a sign of the process; it must still run then."""
    asyncio.run(until(lambda: sign() or process.poll() is not None))
    assert process.poll() is None, process.communicate()


def end(process: "subprocess.Popen[str]", number: signal.Signals) -> Outcome:
    """Signal the process and wait for its end."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    return Outcome(process.returncode, stdout, stderr)


def paired(seen: Seen) -> bool:
    """Whether every tool call of the conversation has exactly one result, and every result a call."""
    rows = seen.messages
    if seen.dialect == "openai":
        asked = [str(call["id"]) for row in rows for call in row.get("tool_calls") or ()]
        given = [str(row["tool_call_id"]) for row in rows if row["role"] == "tool"]
    else:
        blocks = [
            block
            for row in rows
            if isinstance(row["content"], list)
            for block in cast("list[Json]", row["content"])
        ]
        asked = [str(block["id"]) for block in blocks if block["type"] == "tool_use"]
        given = [str(block["tool_use_id"]) for block in blocks if block["type"] == "tool_result"]
    return asked == given and len(set(asked)) == len(asked)
