"""One model call of an agent: the request it makes of its view or of a thought, and what the answer costs."""

from collections.abc import Callable

from ..context.pressure import estimate
from ..context.summaries import unseen
from ..core.chat import (
    ImagePart,
    Message,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    ToolSchema,
    UserMessage,
)
from ..core.errors import ErrorKind
from ..core.events import TextDelta
from ..core.ids import new_id
from ..llm.roles import model_for
from .iteration import IterationContext


async def ask_model(ctx: IterationContext, tools: tuple[ToolSchema, ...]) -> ModelReply | ModelFailed | None:
    """The model's answer to the conversation so far; None when interrupted. Usage is booked, failed tries included."""
    await ctx.flush()
    seen = ctx.compaction.view(ctx.messages.snapshot())
    view = ctx.picker.request(ctx.system, seen, tools, ctx.compaction.meter.tokens)
    if ctx.model not in ctx.settings.seeing:  # the conversation may be an older one, of a model that saw
        view = tuple(map(unseen, view))
    request = _request(ctx, ctx.model, view, Role.ACTION)
    request = request.model_copy(update={"tools": tools, "stream": ctx.task.stream})
    pieces: list[str] = []

    def on_delta(text: str) -> None:
        pieces.append(text)
        ctx.emit(TextDelta(text=text))

    try:
        reply = await _call(ctx, request, on_delta if ctx.task.stream else None)
    finally:
        if partial := "".join(pieces).strip():
            ctx.said = partial
    if isinstance(reply, ModelReply):  # also when only its price is a guess (CMP-02)
        ctx.compaction.meter.calibrate(reply.usage.input, estimate(view, tools))
    return reply


async def ask_thought(
    ctx: IterationContext, role: Role, system: str, text: str, max_tokens: int
) -> ModelReply | ModelFailed | None:
    """The answer of the thinking or the critique model to one bounded text. The request carries no tools (LOOP-05).

    Raises ``OpenDevError`` (config) when the role has no model.
    """
    await ctx.flush()
    model = model_for(role, ctx.models, lambda _model: False)
    messages = (SystemMessage(stable=system), UserMessage(content=text))
    request = _request(ctx, model, messages, role)
    limit = min(max_tokens, ctx.settings.max_tokens or max_tokens)
    return await _call(ctx, request.model_copy(update={"max_tokens": limit}), None)


async def ask_about_image(
    ctx: IterationContext, question: str, image: ImagePart
) -> ModelReply | ModelFailed | None:
    """The vision model's answer about one picture; None when interrupted. The conversation is not sent along.

    Raises ``OpenDevError`` (config) when no configured model sees.
    """
    model = model_for(Role.VISION, ctx.models, lambda name: name in ctx.settings.seeing)
    messages = (UserMessage(content=question, images=(image,)),)
    return await _call(ctx, _request(ctx, model, messages, Role.VISION), None)


def _request(ctx: IterationContext, model: str, messages: tuple[Message, ...], role: Role) -> ModelRequest:
    return ModelRequest(
        id=new_id(),
        agent_id=ctx.task.id,
        model=model,
        messages=messages,
        role=role,
        temperature=ctx.settings.temperature,
        max_tokens=ctx.settings.max_tokens,
        scopes=ctx.task.scopes,
    )


async def _call(
    ctx: IterationContext, request: ModelRequest, on_delta: Callable[[str], None] | None
) -> ModelReply | ModelFailed | None:
    reply = await ctx.unless_interrupted(ctx.call_llm(request, on_delta))
    if reply is None:
        return None
    ctx.usage += reply.usage
    refused = isinstance(reply, ModelFailed) and reply.error.kind is ErrorKind.BUDGET
    ctx.model_calls += 0 if refused else 1  # a call the budget refused was never made
    return reply
