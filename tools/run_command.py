"""The tool ``run_command`` (T06): one shell command in the working folder, its output and how it ended, or a background task (SHL-01 to SHL-10)."""

import asyncio
import contextlib
import re
import signal as signals
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from pydantic import Field

from ..core.approval import ApprovalLevel
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import ToolOutput
from ..core.model import Frozen
from ..core.ports import CommandResult, Processes, ProcessState
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from ..policy.paths import confine
from ..policy.redact import redact
from ..policy.rules import judge_command
from .promotion import LOOK_S, POLL_S, in_background, in_front, nowhere, start_up
from .shell.servers import is_server

# A package manager that asks "Ok to proceed? (y)" and nothing else on the line (SHL-03).
_ASKS = re.compile(r"\s*(?:npm\s+init|npx|npm\s+create|pnpm\s+dlx)\b[^|&;<>\n`$]*$")


class Args(Frozen):
    """``timeout_s`` can shorten the limit of the whole run, never lengthen it; ``cwd`` is relative to the root."""

    command: str = Field(min_length=1, description="Run by bash.")
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds; default and maximum 600.")
    cwd: str = Field(default="", description="Relative to the project root (default).")
    background: bool = Field(
        default=False, description="Start it and go on: for servers, watchers and long work."
    )


async def run(args: Args, ctx: ToolContext) -> ToolResult:
    """Run it. ``data``: exit_code, signal, ended (exit|idle|total), log (path of the whole output), survivors (pids)."""
    cwd = confine(args.cwd, ctx.root, (ctx.scratch,)) if args.cwd else ctx.root
    if not await asyncio.to_thread(cwd.is_dir):
        return ToolResult.failure(
            f"The folder {args.cwd or cwd} does not exist (any more); the command was not run.",
            "Leave out cwd to run in the project root." if args.cwd else "The working folder itself is gone.",
            ErrorKind.NOT_FOUND,
        )
    if (refusal := _rewritten(args, ctx, cwd)) is not None:
        return refusal
    promoted = is_server(args.command)
    if args.background or promoted:
        if ctx.processes is not None:
            return await _in_background(args, cwd, ctx, ctx.processes, promoted=promoted)
        if args.background:
            return nowhere()
    total = min(args.timeout_s or ctx.limits.command_total_s, ctx.limits.command_total_s)
    result = await _unless_interrupted(
        ctx.shell.run(
            prepare(args.command),
            cwd=cwd,
            env=ctx.env,
            idle_s=ctx.limits.command_idle_s,
            total_s=total,
            on_output=lambda text: ctx.emit(
                ToolOutput(agent=ctx.agent_id, call_id=ctx.call_id, text=redact(text))
            ),
        ),
        ctx,
    )
    if result is None:
        return _interrupted(ctx)
    return await asyncio.to_thread(_report, args, result, cwd)


def _rewritten(args: Args, ctx: ToolContext, cwd: Path) -> ToolResult | None:
    """The rules saw the command as it was written; one that preparation changed passes the block list once more (SHL-02)."""
    command = prepare(args.command)
    if command == args.command:
        return None
    verdict = judge_command(command, ApprovalLevel.AUTO, (ctx.root, ctx.scratch), cwd=cwd)
    if verdict.decision != "deny":
        return None
    return ToolResult.failure(f"run_command was refused by a rule: {verdict.reason}", kind=ErrorKind.DENIED)


async def _in_background(
    args: Args, cwd: Path, ctx: ToolContext, processes: Processes, *, promoted: bool
) -> ToolResult:
    """A task that ends while it starts up is reported as if it had run in front (T-06)."""
    seconds = LOOK_S if args.background else min(ctx.limits.startup_s, args.timeout_s or ctx.limits.startup_s)
    info = await start_up(prepare(args.command), cwd, ctx, processes, seconds)
    if info is None:
        return _interrupted(ctx)
    if info.state is ProcessState.RUNNING:
        return in_background(info, ctx, processes, promoted=promoted and not args.background)
    return await asyncio.to_thread(_report, args, in_front(info, processes), cwd)


def _interrupted(ctx: ToolContext) -> ToolResult:
    return ToolResult.failure(
        f"The command was interrupted ({ctx.interrupt.reason}) and all its processes were ended.",
        kind=ErrorKind.CANCELLED,
    )


def prepare(command: str) -> str:
    """The command as it is run: one that asks whether to install a package is answered with ``yes`` (SHL-03)."""
    return f"yes | {command}" if _ASKS.match(command) else command


async def _unless_interrupted(
    work: Coroutine[Any, Any, CommandResult], ctx: ToolContext
) -> CommandResult | None:
    """The result, or None when the user interrupted; then the whole process group is dead."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait((task,), timeout=POLL_S))[0]:
            if ctx.interrupt.is_set:
                return None
        return task.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OpenDevError):
            await task


def _report(args: Args, result: CommandResult, cwd: Path) -> ToolResult:
    how = _how_it_ended(args, result)
    notes = [how]
    if result.survivors:
        pids = ", ".join(map(str, result.survivors))
        notes.append(f"Still running in the background: pid {pids}. `kill` it when it is no longer needed.")
    if result.log:
        notes.append(f"Whole output: {result.log}")
    if not cwd.is_dir():
        notes.append(f"The folder {cwd} was removed; the next command runs in the project root.")
    body = result.text.rstrip("\n")
    text = (f"{body}\n" if body else "(no output)\n") + "\n".join(f"[{note}]" for note in notes)
    ok = result.ended == "exit" and result.exit_code == 0
    kind = ErrorKind.TOOL if result.ended == "exit" else ErrorKind.TIMEOUT
    return ToolResult(
        ok=ok,
        text=text,
        summary=f"{_short(args.command)}: {how}"[:200],
        data=result.model_dump(include={"exit_code", "signal", "ended", "log", "survivors"}, mode="json"),
        error=None if ok else ErrorInfo(kind=kind, message=f"`{_short(args.command)}`: {how}"),
    )


def _how_it_ended(args: Args, result: CommandResult) -> str:
    """Only what is known: a pipe's code is that of its last part, and a code above 128 need not be a signal."""
    took = f"after {result.wall_s:.1f} s"
    if result.ended == "idle":
        return (
            f"timed out: no output for too long, ended with all its processes {took}; there is no exit code"
        )
    if result.ended == "total":
        return f"timed out {took} and was ended with all its processes; there is no exit code"
    if result.ended == "cancelled" or result.exit_code is None:
        return f"cancelled {took}; there is no exit code"
    if result.signal is not None:
        return f"killed by {_signal_name(result.signal)} {took}, exit code {result.exit_code}"
    told = f"exit code {result.exit_code} {took}"
    if re.search(r"(?<!\|)\|(?!\|)", args.command):
        told += ", of the last command of the pipe; the other parts' codes are not known"
    elif re.search(r"[;&|\n]", args.command):
        told += ", of the last command that ran"
    if 128 < result.exit_code <= 192:
        told += f" (if a signal ended it, {_signal_name(result.exit_code - 128)})"
    return told


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signals.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 80 else f"{line[:77]}..."


TOOL = Tool(
    name="run_command",
    category="Process",
    args=Args,
    run=run,
    effects=frozenset({Effect.READ, Effect.WRITE, Effect.EXEC, Effect.NET}),
    resources=lambda _args: ("*",),  # a command may touch anything: it runs alone
    aliases={
        "cmd": "command",
        "timeout": "timeout_s",
        "workdir": "cwd",
        "working_directory": "cwd",
        "run_in_background": "background",
        "is_background": "background",
    },
)
