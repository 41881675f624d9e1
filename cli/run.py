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
from ..actors.spending import Spending
from ..core.agent import AgentReport, AgentStatus, AgentTask
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError, exit_of
from ..core.events import Event, Notice, RunFinished, RunStarted
from ..core.exits import Exit
from ..core.ids import new_id
from ..core.ops import Interrupt
from ..policy.visible import visible
from ..store.sessions import OpenSession
from ..tools.shell.sandbox import choose
from ..ui.headless import JsonLines
from ..ui.terminal import PromptLines
from .border import border
from .catalogue import keep_current
from .held import held_session, writable
from .project import Project, open_project
from .stdio import deliver, own_stdio
from .task import PromptOptions, check_start, chosen_models, exit_of_report, foreground_task
from .wiring import keeper_if_repository, open_hub


@dataclass(frozen=True)
class _Done:
    """How it ended; the report's usage and model calls are those of the whole tree of agents."""

    report: AgentReport
    code: Exit
    notes: tuple[str, ...] = ()


def run_prompt(working_dir: Path | None, overrides: Mapping[str, Any], options: PromptOptions) -> int:
    """Run it, print the result, and return the exit code. Errors before the start are printed in the chosen form too."""
    session = new_id(8)
    with own_stdio() as stdio:
        stream = JsonLines(stdio.out)
        draw = stream if options.output == "stream-json" else PromptLines(stdio.err)
        try:
            with border():
                project = writable(open_project(working_dir, overrides))
                models = chosen_models(project, options)
                check_start(project, options, models)
                if options.replay is None:
                    keep_current(project, models.values())
                with held_session(project, options.resume) as held:
                    session = held.id
                    with stdio.diverted(project.layout.run(session) / "runtime.log"):
                        task = foreground_task(project, held, options, models)
                        done = asyncio.run(_run(project, held, task, options, draw))
        except OpenDevError as error:
            done = _Done(
                _unstarted(session, options, AgentStatus.FAILED, error.info), exit_of(error.info.kind)
            )
        except asyncio.CancelledError:
            info = ErrorInfo(kind=ErrorKind.CANCELLED, message="Interrupted before the agent started.")
            done = _Done(_unstarted(session, options, AgentStatus.CANCELLED, info), Exit.INTERRUPTED)
        if options.output == "stream-json":
            stream.result(session, _result(session, done))
    if done.report.error:
        sys.stderr.write(f"opendev: {visible(done.report.error.sentence())}\n")
    return deliver(_shown(session, done, options.output), int(done.code), stream.lost)


def _shown(session: str, done: _Done, output: str) -> str:
    """What goes to standard output at the end."""
    if output == "json":
        return json.dumps(_result(session, done)) + "\n"
    return visible(done.report.text.rstrip()) + "\n" if output == "text" and done.report.text else ""


def _unstarted(session: str, options: PromptOptions, status: AgentStatus, error: ErrorInfo) -> AgentReport:
    return AgentReport(id=session, agent=options.agent, status=status, error=error)


async def _run(
    project: Project,
    held: OpenSession,
    task: AgentTask,
    options: PromptOptions,
    draw: Callable[[Event], None],
) -> _Done:
    with _interruptible() as stop:
        async with open_hub(
            project,
            task.run_id,
            options.runtime,
            desk=lambda: keeper_if_repository(project),
            record=options.record,
            replay=options.replay,
            startup="startup" if held.fresh else "resume",
        ) as hub:
            drawing = asyncio.create_task(_draw(hub, draw))
            await asyncio.sleep(0)  # it subscribes now: also the events of the shortest run are drawn
            spending = await Spending.begin(hub, task.scopes[0], options.max_cost_usd)
            hub.emit(RunStarted(what="prompt", detail={"prompt": task.prompt, "root": task.root}))
            stop.hub = hub
            report = await hub.run_agent(task)
            await spending.refresh()
            await _keep_cost(hub, held, spending)
            # A replay spends nothing by the ledger: its numbers are those of the recording.
            usage, calls = spending.run if options.replay is None else hub.total
            code = exit_of_report(report)
            hub.emit(RunFinished(status=report.status, exit_code=code))
        await drawing
    whole = report.model_copy(update={"usage": usage, "model_calls": calls})
    confined = choose(project.config.sandbox)
    return _Done(whole, code, (confined.why,) if confined.kind == "none" else ())


async def _keep_cost(hub: Hub, held: OpenSession, spending: Spending) -> None:
    """The totals of the whole tree of agents into the session's record; the ledger has them even when that fails."""
    try:
        await asyncio.to_thread(held.save_cost, spending.total)
    except OpenDevError as error:
        hub.emit(Notice(level="warning", text=error.info.sentence()))


async def _draw(hub: Hub, draw: Callable[[Event], None]) -> None:
    async for event in hub.subscribe(hub.began):  # a session that goes on has shown the others
        draw(event)


class _Stop:
    """What a signal does: before the hub runs it ends the command, then it stops all agents and hooks, if there are any."""

    def __init__(self) -> None:
        self.hub: Hub | None = None
        self._command = asyncio.current_task()
        self._stopping: set[asyncio.Task[None]] = set()

    def __call__(self) -> None:
        if self.hub is None and self._command is not None:
            self._command.cancel()
        elif self.hub is not None:
            self._stopping.add(asyncio.ensure_future(self.hub.submit(Interrupt())))


@contextlib.contextmanager
def _interruptible() -> Generator[_Stop]:
    """Ctrl-C, SIGTERM and SIGHUP stop every agent and wait until it is dead; they are put back afterwards."""
    loop = asyncio.get_running_loop()
    stop = _Stop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _result(session: str, done: _Done) -> dict[str, Any]:
    report = done.report
    return {
        "schema": 1,
        "session_id": session,
        "status": report.status.value,
        "exit_code": int(done.code),
        "text": report.text,
        "turns": report.turns,
        "tool_calls": report.tool_calls,
        "model_calls": report.model_calls,
        "tokens": {"input": report.usage.input, "output": report.usage.output, "cached": report.usage.cached},
        "cost_usd": report.usage.cost_usd,
        "wall_s": report.wall_s,
        "files_changed": list(report.files_changed),
        "error": report.error.model_dump(mode="json") if report.error else None,
        **({"notes": list(done.notes)} if done.notes else {}),
    }
