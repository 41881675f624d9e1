"""invoke_skill: bring the text of one skill into the conversation, once a session (T33, SKL-03, SKL-04)."""

import asyncio

from pydantic import Field

from ..core.errors import ErrorKind
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .skills import body_of


class Args(Frozen):
    """Arguments of invoke_skill."""

    name: str = Field(min_length=1, max_length=64, description="A skill of the list in your instructions.")
    arguments: str = Field(default="", max_length=4_000, description="What the skill's $ARGUMENTS stand for.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    skill = ctx.skills.get(args.name)
    if skill is None:
        known = ", ".join(sorted(ctx.skills)) or "none"
        return ToolResult.failure(
            f"There is no skill {args.name}.", f"Known skills: {known}.", ErrorKind.NOT_FOUND
        )
    if args.name in ctx.memo.skills:
        return ToolResult(
            ok=True,
            text=f"The skill {args.name} is already loaded: its text is above in this conversation.",
            summary=f"✓ Skill {args.name} is already loaded",
        )
    text = await asyncio.to_thread(body_of, skill, args.arguments)
    ctx.memo.skills.add(args.name)
    return ToolResult(ok=True, text=text, summary=f"✓ Loaded skill {args.name} ({len(text):,} characters)")


TOOL = Tool(
    name="invoke_skill",
    category="Skill",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    resources=lambda args: (f"skill:{args.name}",),
    aliases={"skill": "name", "skill_name": "name", "args": "arguments"},
)
