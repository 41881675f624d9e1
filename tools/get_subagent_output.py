"""get_subagent_output: the result of a background sub-agent, or that it still runs (T32, SUB-09)."""

import asyncio

from pydantic import Field

from ..core.errors import ErrorInfo
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .subagent_result import render


class Args(Frozen):
    """Arguments of get_subagent_output."""

    agent_id: str = Field(min_length=1, max_length=100, description="The id that spawn_subagent gave.")
    wait_s: float = Field(default=0.0, ge=0, le=600, description="Seconds to wait for its end.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    answer = await ctx.spawner.output(args.agent_id, args.wait_s)
    if isinstance(answer, ErrorInfo):
        return ToolResult.failure(answer.message, answer.hint, answer.kind)
    if isinstance(answer, str):
        return ToolResult(
            ok=True,
            text=f"The sub-agent {answer} is still running; it has no result yet.",
            summary=f"✓ {answer} is running",
            data={"agent_id": answer, "status": "running"},
        )
    return await asyncio.to_thread(render, answer, ctx)


TOOL = Tool(
    name="get_subagent_output",
    category="sub-agent",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    aliases={"task_id": "agent_id", "id": "agent_id", "timeout": "wait_s", "wait": "wait_s"},
    poller=True,
    reports=True,
)
