"""A command that runs in the background: started, watched while it starts up, then left to itself (SHL-04, SHL-10, T-06)."""

import asyncio
import contextlib
from pathlib import Path

from ..core.errors import OpenDevError
from ..core.events import ToolOutput
from ..core.ports import CommandResult, Processes, ProcessInfo, ProcessState
from ..core.tool import ToolContext, ToolResult
from ..policy.redact import redact

_TOOLS = frozenset({"list_processes", "get_process_output", "kill_process"})
POLL_S = 0.1  # SHL-08
LOOK_S = (
    1.0  # a command that was sent to the background on purpose is watched this long: most slips show at once
)


async def start_up(
    command: str, cwd: Path, ctx: ToolContext, processes: Processes, seconds: float
) -> ProcessInfo | None:
    """Start ``command`` and watch it until it ends, at most ``seconds``. None when interrupted; then its group is dead.

    Raises:
        OpenDevError: it could not be started.
    """
    info = await processes.start(command, cwd=cwd, env=ctx.env)
    until = ctx.clock.monotonic() + seconds
    try:
        while info.state is ProcessState.RUNNING and ctx.clock.monotonic() < until:
            info = await processes.wait(info.id, POLL_S)
            if text := processes.live(info.id):
                ctx.emit(ToolOutput(agent=ctx.agent_id, call_id=ctx.call_id, text=redact(text)))
            if ctx.interrupt.is_set:
                await processes.kill(info.id)
                return None
    except asyncio.CancelledError:
        with contextlib.suppress(OpenDevError):
            await processes.kill(info.id)
        raise
    return info


def in_front(info: ProcessInfo, processes: Processes) -> CommandResult:
    """An ended task as the result of a command in front. The agent knows its end by that."""
    processes.told(info.id)
    text, omitted = processes.first_output(info.id)
    return CommandResult(
        exit_code=info.exit_code,
        signal=info.signal,
        text=text,
        omitted_bytes=omitted,
        log=info.output if omitted or info.survivors else "",
        ended="exit",
        survivors=info.survivors,
        wall_s=info.wall_s,
    )


def in_background(info: ProcessInfo, ctx: ToolContext, processes: Processes, *, promoted: bool) -> ToolResult:
    """What the model is told of a task that goes on. ``data``: process_id, pid, state, output (path)."""
    ctx.memo.activated.update(_TOOLS & ctx.offers)  # the model needs them from now on (REG-08)
    text, _ = processes.first_output(info.id)
    body = text.rstrip("\n") or "(no output so far)"
    why = "It looks like a server, so it" if promoted else "It"
    notes = (
        f"{why} runs in the background as task {info.id}, pid {info.pid}; you are told when it ends.",
        f"{_what_next(info, ctx.offers)} It ends with your run. Output: {info.output}",
    )
    return ToolResult(
        ok=True,
        text="\n".join((body, *(f"[{note}]" for note in notes))),
        summary=f"✓ Runs in the background as task {info.id}",
        data=details(info),
    )


def _what_next(info: ProcessInfo, offers: frozenset[str]) -> str:
    if {"get_process_output", "kill_process"} <= offers:
        return "get_process_output shows its last lines, kill_process ends it."
    return f"`tail` its output file to see how it goes on; `kill -- -{info.pid}` ends it."


def details(info: ProcessInfo) -> dict[str, object]:
    """A task as data: process_id, command, pid, state, exit_code, signal, wall_s, output."""
    shown = info.model_dump(mode="json", exclude={"id", "started"})
    return {"process_id": info.id, **shown, "wall_s": round(info.wall_s, 1)}


def how_it_is(info: ProcessInfo) -> str:
    """One line: state, exit code and signal, run time."""
    parts = [info.state.value]
    if info.exit_code is not None:
        signal = f" (signal {info.signal})" if info.signal else ""
        parts.append(f"exit code {info.exit_code}{signal}")
    if info.survivors:
        parts.append(f"left running: pid {', '.join(map(str, info.survivors))}")
    return f"{', '.join(parts)}, {info.wall_s:.1f} s"


def nowhere() -> ToolResult:
    """The answer of the tools about tasks where nothing can run in the background."""
    return ToolResult.failure("There are no background tasks here.", "Run commands in front.")
