"""spawn_subagent: give a task to a sub-agent with a fresh context; several calls of one turn run at once (T31, SUB-06)."""

import asyncio

from pydantic import Field

from ..core.agent import SpawnRequest
from ..core.errors import ErrorInfo
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .subagent_result import render


class Args(Frozen):
    """Arguments of spawn_subagent."""

    agent: str = Field(min_length=1, max_length=100, description="Type of the agent.")
    prompt: str = Field(min_length=1, max_length=200_000, description="The whole task.")
    background: bool = Field(default=False, description="Go on at once.")
    resume: str = Field(
        default="", max_length=100, description="Id of an earlier sub-agent to continue with."
    )
    model: str = Field(
        default="", max_length=200, description="A model, or haiku, sonnet, opus; empty: the usual one."
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    answer = await ctx.spawner.spawn(
        SpawnRequest(
            call_id=ctx.call_id,
            agent=args.agent,
            prompt=args.prompt,
            background=args.background,
            resume=args.resume,
            model=args.model,
            mode=ctx.mode,
        )
    )
    if isinstance(answer, ErrorInfo):
        return ToolResult.failure(f"No sub-agent was started: {answer.message}", answer.hint, answer.kind)
    if isinstance(answer, str):
        return ToolResult(
            ok=True,
            text=f"Started {args.agent} in the background, id {answer}. It has no result yet; "
            f'collect it by get_subagent_output(agent_id="{answer}").',
            summary=f"✓ Started {args.agent} {answer} in the background",
            data={"agent_id": answer, "status": "running", "call_id": ctx.call_id},
        )
    result = await asyncio.to_thread(render, answer, ctx)
    return result.model_copy(update={"data": {**(result.data or {}), "call_id": ctx.call_id}})


TOOL = Tool(
    name="spawn_subagent",
    category="sub-agent",
    args=Args,
    run=_run,
    effects=frozenset({Effect.SPAWN}),
    aliases={
        "task": "prompt",
        "agent_type": "agent",
        "subagent_type": "agent",
        "type": "agent",
        "run_in_background": "background",
    },
    reports=True,
)
