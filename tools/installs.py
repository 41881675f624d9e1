"""Offers to install a missing program at its first use: ask a person, install, try once more (ARC-07)."""

import re
import sys
from dataclasses import replace
from typing import Any

from ..core.approval import ApprovalRequest, Mode
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.tool import Tool, ToolContext, ToolResult

# What is written in words ("install the Swift toolchain") is no command that could be run.
_INSTALLERS = frozenset({"pip", "npm", "rustup", "go", "gem", "dotnet", "ghcup", "cs", "apt"})
_OWN = f"{sys.executable} -m "  # a package of our own environment that fetches what it drives
_HINT = re.compile(r"Install one: `([^`]+)`\.")
IDLE_S, TOTAL_S = 300.0, 900.0


def install_hint(how: str) -> str:
    """The hint of an error about a missing program; ``offering`` finds the command in it again."""
    return f"Install one: `{how}`."


def offering(tool: Tool[Any]) -> Tool[Any]:
    """``tool``, which offers to install what it misses. Without a yes its error stays as it is: it names the command."""

    async def run(args: Any, ctx: ToolContext) -> ToolResult:
        try:
            return await tool.run(args, ctx)
        except OpenDevError as error:
            if not await offer(tool.name, error, ctx):
                raise
        return await tool.run(args, ctx)

    return replace(tool, run=run)


async def offer(tool: str, error: OpenDevError, ctx: ToolContext) -> bool:
    """Whether what ``error`` says is missing was installed, after a yes. Raises ``OpenDevError`` when that failed."""
    command = _command(error)
    if not command or not await _agreed(tool, command, error, ctx):
        return False
    await _install(command, error, ctx)
    return True


def _command(error: OpenDevError) -> str:
    found = _HINT.fullmatch(error.info.hint) if error.info.kind is ErrorKind.NOT_FOUND else None
    known = found and (found[1].split()[0] in _INSTALLERS or found[1].startswith(_OWN))
    return found[1] if found and known else ""


async def _agreed(tool: str, command: str, error: OpenDevError, ctx: ToolContext) -> bool:
    """A person's yes to exactly this command, at every approval level; asked once per agent."""
    if ctx.mode is Mode.PLAN or command in ctx.memo.offered:
        return False
    ctx.memo.offered.add(command)
    request = ApprovalRequest(
        id=new_id(),
        agent_id=ctx.agent_id,
        agent="",
        tool="install",
        arguments={"command": command},
        reason=f"{tool} needs it: {error.info.message}",
        card=f"Install from the network: {command}",
    )
    answer = await ctx.ask.approve(request)
    return answer.allowed and answer.digest == request.digest


async def _install(command: str, error: OpenDevError, ctx: ToolContext) -> None:
    done = await ctx.shell.run(command, cwd=ctx.scratch, env=ctx.env, idle_s=IDLE_S, total_s=TOTAL_S)
    if done.exit_code == 0:
        return
    last = next(iter(done.text.strip().splitlines()[-1:]), "it said nothing")
    raise OpenDevError(
        ErrorKind.NOT_FOUND,
        f"{error.info.message} Installing it by `{command}` failed: {last[:300]}",
        "Go on without it: `search` finds text where symbols cannot be looked up.",
    ) from error
