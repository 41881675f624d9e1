"""One model call of an agent: the request it makes of its view, and what the answer costs."""

from ..context.pressure import estimate
from ..core.chat import ModelFailed, ModelReply, ModelRequest, ToolSchema
from ..core.errors import ErrorKind
from ..core.events import TextDelta
from ..core.ids import new_id
from .iteration import IterationContext


async def ask_model(ctx: IterationContext, tools: tuple[ToolSchema, ...]) -> ModelReply | ModelFailed | None:
    """The model's answer to the conversation so far; None when interrupted. Usage is booked, failed tries included."""
    await ctx.flush()
    view = (ctx.system, *ctx.compaction.view(ctx.messages.snapshot()))
    request = ModelRequest(
        id=new_id(),
        agent_id=ctx.task.id,
        model=ctx.model,
        messages=view,
        tools=tools,
        temperature=ctx.settings.temperature,
        max_tokens=ctx.settings.max_tokens,
        stream=ctx.task.stream,
        scopes=ctx.task.scopes,
    )
    pieces: list[str] = []

    def on_delta(text: str) -> None:
        pieces.append(text)
        ctx.emit(TextDelta(text=text))

    try:
        reply = await ctx.unless_interrupted(ctx.call_llm(request, on_delta if ctx.task.stream else None))
    finally:
        if partial := "".join(pieces).strip():
            ctx.said = partial
    if reply is None:
        return None
    ctx.usage += reply.usage
    refused = isinstance(reply, ModelFailed) and reply.error.kind is ErrorKind.BUDGET
    ctx.model_calls += 0 if refused else 1  # a call the budget refused was never made
    if isinstance(reply, ModelReply):  # also when only its price is a guess (CMP-02)
        ctx.compaction.meter.calibrate(reply.usage.input, estimate(view, tools))
    return reply
