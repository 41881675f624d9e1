"""OpenDev as an MCP server: swarm runs for other agents, each a process of its own that ends with this one."""

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any, cast

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..swarm.control import read_report, status_of
from ..swarm.report import render
from ..tools.mcp.client import ServedTool, serve_stdio
from .project import Project

MAX_RUNS = 4  # at once
START_S = 120.0  # until a run has told its id
END_S = 30.0  # for a run to save its work when this process ends
_COMMAND = "import sys; from opendev.cli.entry import main; sys.exit(main())"
_TEXT = 20_000  # characters of an error
_RUN: JsonObject = {"type": "object", "properties": {"run": {"type": "string", "description": "The id of a run."}},
                    "required": ["run"], "additionalProperties": False}  # fmt: skip
_START: JsonObject = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "description": "Ticket file (TOML, YAML, JSON), relative to the project."},
        "concurrency": {"type": "integer", "minimum": 1},
        "model": {"type": "string", "description": "provider/NAME for tickets without a recipe."},
        "max_cost_usd": {"type": "number", "minimum": 0},
        "runtime": {"enum": ["ray", "local"], "description": "ray: a process for each agent (default)."},
    },
    "required": ["file"],
    "additionalProperties": False,
}


class SwarmServer:
    """The three tools. Runs are kept by id while they work."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._runs: dict[str, Process] = {}
        self._drains: set[asyncio.Task[None]] = set()

    def tools(self) -> tuple[ServedTool, ...]:
        """What is offered."""
        return (
            ServedTool(
                name="swarm_run",
                description="Start a batch of tickets: parallel agents, landed on a branch that is always green. Gives the run's id at once.",
                parameters=_START,
                run=self.start,
            ),
            ServedTool(
                name="swarm_status",
                description="Where a run stands, as JSON.",
                parameters=_RUN,
                run=self.status,
            ),
            ServedTool(
                name="swarm_report",
                description="The report of a run that has ended.",
                parameters=_RUN,
                run=self.report,
            ),
        )

    async def start(self, given: JsonObject) -> str:
        """Start a run. Raises ``OpenDevError``: usage, infra, or what the run itself says when it does not begin."""
        if sum(run.returncode is None for run in self._runs.values()) >= MAX_RUNS:
            raise OpenDevError(
                ErrorKind.USAGE, f"{MAX_RUNS} runs are at work already.", "Wait for one of them."
            )
        argv = ["swarm", "run", self._file(given), "--output", "stream-json"]
        for key, option in (
            ("concurrency", "--concurrency"),
            ("model", "--model"),
            ("max_cost_usd", "--max-cost-usd"),
            ("runtime", "--runtime"),
        ):
            if given.get(key) is not None:
                argv += [option, str(given[key])]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", _COMMAND, "--working-dir", str(self._project.path), *argv,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=dict(self._project.environment.items()),
            limit=16_000_000,
        )  # fmt: skip
        run_id = ""
        try:
            async with asyncio.timeout(START_S):
                run_id = await _run_id(process)
        finally:
            if not run_id:
                await _end(process)
        self._runs[run_id] = process
        task = asyncio.ensure_future(_drain(process))
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)
        return json.dumps({"run": run_id})

    async def status(self, given: JsonObject) -> str:
        """Status as JSON. Raises ``OpenDevError`` for an unknown run."""
        folder = self._folder(given)
        return (await asyncio.to_thread(status_of, folder)).to_json()

    async def report(self, given: JsonObject) -> str:
        """The report as text. Raises ``OpenDevError`` for an unknown run, and for one that has none yet."""
        folder = self._folder(given)
        return render(await asyncio.to_thread(read_report, folder), "text")

    async def close(self) -> None:
        """Stop what still runs; the work of its agents is kept."""
        await asyncio.gather(*(_end(run) for run in self._runs.values()))

    def _file(self, given: JsonObject) -> str:
        name = given.get("file")
        if not isinstance(name, str) or not name:
            raise OpenDevError(ErrorKind.USAGE, "`file` is missing.", "Name a ticket file.")
        path = self._project.path / name
        if not path.is_file():
            raise OpenDevError(ErrorKind.NOT_FOUND, f"There is no ticket file {path}.")
        return str(path)

    def _folder(self, given: JsonObject) -> Path:
        name = given.get("run")
        folder = self._project.layout.runs() / str(name)
        if not isinstance(name, str) or "/" in name or not name.strip(".") or not folder.is_dir():
            raise OpenDevError(ErrorKind.NOT_FOUND, f"There is no run {str(name)[:80]}.")
        return folder


async def serve_swarm(project: Project) -> None:
    """Serve until the input ends."""
    server = SwarmServer(project)
    try:
        await serve_stdio(server.tools(), "Runs batches of coding tickets in the project by parallel agents.")
    finally:
        await server.close()


async def _run_id(process: Process) -> str:
    """From the first event that carries it. Raises ``OpenDevError`` with the run's own words when it ends before."""
    stdout = cast("asyncio.StreamReader", process.stdout)
    while line := await stdout.readline():
        with contextlib.suppress(ValueError):
            event: Any = json.loads(line)
            if (
                isinstance(event, dict)
                and isinstance(found := cast("JsonObject", event).get("run"), str)
                and found
            ):
                return found
    words = await cast("asyncio.StreamReader", process.stderr).read(_TEXT)
    raise OpenDevError(ErrorKind.TOOL, f"The run did not start: {words.decode('utf-8', 'replace').strip()}")


async def _drain(process: Process) -> None:
    """Its events are in its journal; here they are only read, so that it never waits."""

    async def read(stream: asyncio.StreamReader | None) -> None:
        while stream is not None and await stream.read(65_536):
            pass

    await asyncio.gather(read(process.stdout), read(process.stderr))
    await process.wait()


async def _end(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
