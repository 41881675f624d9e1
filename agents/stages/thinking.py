"""Stage 2: thoughts about the next step, by a separate call without tools, when a level is set (LOOP-05, LOOP-06)."""

from functools import cache

from ...context.composer import create_thinking_composer, standalone
from ...context.sections import PromptContext
from ...core.chat import ModelReply, Role, ThinkingLevel
from ...core.errors import OpenDevError
from ...core.events import Notice
from ..calling import ask_thought
from ..iteration import IterationContext

DIRECT = "DIRECT"  # the thinking model's word for "nothing to think about"
LENGTHS = {
    ThinkingLevel.LOW: (60, 400),
    ThinkingLevel.MEDIUM: (100, 800),
    ThinkingLevel.HIGH: (100, 1_200),
}  # words asked for (K39: at most 100), tokens allowed: some models reason before they write
TRACE_CHARS = 2_000


async def thinking(ctx: IterationContext) -> None:
    """Fill ``ctx.trace``. A thinking model that fails costs the thought, never the step."""
    ctx.trace = ""
    if ctx.thinking is ThinkingLevel.OFF:
        return
    length, tokens = length_of(ctx.thinking)
    todos = ctx.open_todos()
    name = "thinking_prompt_with_todos" if todos else "thinking_prompt"
    ask = ctx.reminders.text(name, todo_list=todos, length=length)
    text = f"{ctx.thinks.render(ctx.messages.snapshot())}\n\n---\n{ask}"
    ctx.trace = await thought(ctx, Role.THINKING, text, tokens)


def length_of(level: ThinkingLevel) -> tuple[str, int]:
    """The sentence that asks for a length, and the cap in tokens."""
    words, tokens = LENGTHS[level]
    return f"At most {words} words.", tokens


async def thought(ctx: IterationContext, role: Role, text: str, max_tokens: int) -> str:
    """One answer, bounded; empty when the model failed, when it said nothing, or on an interrupt. Said once per run."""
    try:
        reply = await ask_thought(ctx, role, _system(role), text, max_tokens)
    except OpenDevError as error:
        reply, why = None, error.info.sentence()
    else:
        why = "" if reply is None or isinstance(reply, ModelReply) else reply.error.sentence()
    if why and ctx.nudge(f"{role.value}_failed", 1):
        ctx.emit(
            Notice(level="warning", text=f"The {role.value} model failed: {why} The agent goes on without.")
        )
    found = reply.message.content.strip() if isinstance(reply, ModelReply) else ""
    return found if len(found) <= TRACE_CHARS else f"{found[:TRACE_CHARS]} […]"


@cache
def _system(role: Role) -> str:
    """The prompt of the thinking and of the critique model: no tool guidance, no code rules (PRM-05)."""
    if role is Role.CRITIQUE:
        return standalone("critique")
    return create_thinking_composer().compose(PromptContext(tools=frozenset()))
