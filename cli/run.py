"""`opendev -p`: one prompt, run to its end, with an honest exit code."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..actors.hub import Hub
from ..agents.specs import builtin_specs
from ..core.agent import AgentReport, AgentStatus, AgentTask, Budget
from ..core.approval import Mode
from ..core.chat import Role
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError, exit_of
from ..core.events import Event
from ..core.exits import Exit
from ..core.ids import new_id
from ..core.ops import Interrupt
from ..ui.headless import JsonLines
from ..ui.terminal import PromptLines
from .project import Project, open_project
from .wiring import RuntimeKind, keeper_if_repository, open_hub

_EXITS = {
    AgentStatus.DONE: Exit.DONE,
    AgentStatus.FAILED: Exit.FAILED,
    AgentStatus.EMPTY: Exit.FAILED,
    AgentStatus.ITERATION_CAP: Exit.FAILED,
    AgentStatus.TIMEOUT: Exit.FAILED,
    AgentStatus.VERIFY_FAILED: Exit.VERIFY,
    AgentStatus.BUDGET: Exit.BUDGET,
    AgentStatus.INFRA: Exit.INFRA,
    AgentStatus.UNANSWERED: Exit.UNANSWERED,
    AgentStatus.CANCELLED: Exit.INTERRUPTED,
}


@dataclass(frozen=True)
class PromptOptions:
    """The options of `-p`."""

    prompt: str
    output: str
    agent: str
    mode: Mode
    verify: str
    max_iterations: int | None
    max_cost_usd: float | None
    runtime: RuntimeKind
    record: Path | None
    replay: Path | None


def run_prompt(working_dir: Path | None, overrides: Mapping[str, Any], options: PromptOptions) -> int:
    """Run it, print the result, and return the exit code. Errors before the start are printed in the chosen form too."""
    session = new_id(8)
    try:
        project = open_project(working_dir, overrides)
        _check(project, options)
        report = asyncio.run(_run(project, session, options))
    except OpenDevError as error:
        if options.output == "text":
            raise
        report = AgentReport(id=session, agent=options.agent, status=AgentStatus.FAILED, error=error.info)
        code = exit_of(error.info.kind)
    else:
        code = _exit(report)
    if options.output == "text":
        if report.text:
            sys.stdout.write(report.text.rstrip() + "\n")
        if report.error:
            sys.stderr.write(f"opendev: {report.error.sentence()}\n")
    else:
        sys.stdout.write(json.dumps(_result(session, report, code, options.output)) + "\n")
    return int(code)


def _exit(report: AgentReport) -> Exit:
    if (
        report.status is AgentStatus.FAILED
        and report.error
        and report.error.kind in (ErrorKind.CONFIG, ErrorKind.USAGE)
    ):
        return Exit.USAGE
    return _EXITS[report.status]


def _check(project: Project, options: PromptOptions) -> None:
    project.layout.check_writable()
    if not options.prompt.strip():
        raise OpenDevError(
            ErrorKind.USAGE, "The prompt is empty.", 'Say what to do: opendev -p "Fix the failing test".'
        )
    if options.agent not in builtin_specs():
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no agent type `{options.agent}`.", "`opendev agents list` shows them."
        )
    if not project.config.models().get(Role.ACTION) and options.replay is None:
        raise OpenDevError(
            ErrorKind.CONFIG,
            "No model is configured.",
            "Set OPENDEV_MODEL=provider/NAME and the provider's key (for example OPENAI_API_KEY), or give --model.",
        )


async def _run(project: Project, session: str, options: PromptOptions) -> AgentReport:
    desk = await asyncio.to_thread(keeper_if_repository, project)
    async with open_hub(
        project, session, options.runtime, desk=desk, record=options.record, replay=options.replay
    ) as hub:
        scope = f"run:{session}"
        await hub.model.ask("open_scope", scope, options.max_cost_usd, None)
        drawing = asyncio.create_task(_draw(hub, _drawer(options.output)))
        with _interruptible(hub):
            report = await hub.run_agent(_task(project, session, options, scope))
        await asyncio.sleep(0)
    await drawing
    return report


def _task(project: Project, session: str, options: PromptOptions, scope: str) -> AgentTask:
    spec = builtin_specs()[options.agent]
    return AgentTask(
        id=f"main-{session}",
        run_id=session,
        spec=spec,
        prompt=options.prompt,
        root=str(project.path),
        mode=options.mode,
        approve=project.config.approval_level,
        models=project.config.models(),
        budget=Budget(max_cost_usd=options.max_cost_usd, max_iterations=options.max_iterations),
        scopes=(scope,),
        verify=options.verify,
        stream=True,
    )


def _drawer(output: str) -> Callable[[Event], None]:
    if output == "stream-json":
        return JsonLines(sys.stdout)
    return PromptLines(sys.stderr)


async def _draw(hub: Hub, draw: Callable[[Event], None]) -> None:
    async for event in hub.subscribe():
        draw(event)


@contextlib.contextmanager
def _interruptible(hub: Hub) -> Generator[None]:
    """Ctrl-C, SIGTERM and SIGHUP stop every agent and wait until it is dead; they are put back afterwards."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def interrupt() -> None:
        tasks.add(asyncio.ensure_future(hub.submit(Interrupt())))

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _result(session: str, report: AgentReport, code: Exit, output: str) -> dict[str, Any]:
    error: ErrorInfo | None = report.error
    head = {"kind": "report"} if output == "stream-json" else {}
    return {
        "schema": 1,
        **head,
        "session_id": session,
        "status": report.status.value,
        "exit_code": int(code),
        "text": report.text,
        "turns": report.turns,
        "tool_calls": report.tool_calls,
        "model_calls": report.model_calls,
        "tokens": {"input": report.usage.input, "output": report.usage.output, "cached": report.usage.cached},
        "cost_usd": report.usage.cost_usd,
        "wall_s": report.wall_s,
        "files_changed": list(report.files_changed),
        "error": error.model_dump(mode="json") if error else None,
    }
