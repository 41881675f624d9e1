"""A model in this process that plays a list of replies and keeps every request it gets."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opendev.core.chat import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelFailed,
    ModelReply,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
)
from opendev.core.errors import ErrorInfo, ErrorKind

Reply = ModelReply | ModelFailed
Step = Reply | Callable[[ModelRequest], Reply]


class ScriptedModel:
    """Implements ``ports.ModelClient``. A step may be a function of the request; after the last step it fails loudly."""

    def __init__(self, *steps: Step) -> None:
        self.requests: list[ModelRequest] = []
        self._steps = list(steps)

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        self.requests.append(request)
        await asyncio.sleep(0)
        if not self._steps:
            return failed("the script of the model is over", ErrorKind.INTERNAL)
        step = self._steps.pop(0)
        reply = step(request) if callable(step) else step
        if on_delta is not None and isinstance(reply, ModelReply):
            on_delta(reply.message.content)
        return reply

    def add(self, *steps: Step) -> None:
        """More steps at the end."""
        self._steps.extend(steps)


def says(text: str, finish: FinishReason = FinishReason.STOP, tokens: int = 100) -> ModelReply:
    """An answer without calls."""
    return calls(text=text, finish=finish, tokens=tokens)


def calls(
    *given: ToolCall, text: str = "", finish: FinishReason | None = None, tokens: int = 100
) -> ModelReply:
    """An answer with calls; ``tokens`` is the input the provider reports."""
    end = finish or (FinishReason.TOOL_CALLS if given else FinishReason.STOP)
    message = AssistantMessage(content=text, tool_calls=tuple(given))
    return ModelReply(message=message, finish=end, usage=Usage(input=tokens, output=5), model="test/model")


def call(name: str, id: str = "", /, **arguments: Any) -> ToolCall:
    """One call; without ``id`` it has the tool's name as id, so repeated calls share it as some providers do."""
    return ToolCall(id=id or name, name=name, arguments=arguments)


def done(summary: str = "Done.", status: str = "success") -> ModelReply:
    """The call of ``task_complete``."""
    return calls(call("task_complete", status=status, summary=summary))


def failed(message: str, kind: ErrorKind = ErrorKind.MODEL) -> ModelFailed:
    """A request that was given up."""
    return ModelFailed(error=ErrorInfo(kind=kind, message=message))


def pairs_are_whole(requests: Sequence[ModelRequest]) -> list[str]:
    """What a provider would refuse in ``requests``; empty when all is well (M01, M03, M06)."""
    return [f"request {n}: {fault}" for n, request in enumerate(requests) for fault in _faults(request)]


def _faults(request: ModelRequest) -> Iterator[str]:
    open_ids: list[str] = []
    asked: list[str] = []
    for message in request.messages[1:]:
        if isinstance(message, ToolMessage):
            if not open_ids or open_ids.pop(0) != message.call_id:
                yield f"the result of {message.call_id} is out of place"
        elif open_ids:
            yield f"no result for {open_ids}"
            open_ids = []
        if isinstance(message, AssistantMessage):
            open_ids = [item.id for item in message.tool_calls]
            asked += open_ids
        if not _says_something(message):
            yield f"blank {message.role} message"
    if open_ids:
        yield f"no result for {open_ids} at the end"
    if len(set(asked)) < len(asked) or "" in asked:
        yield f"ids are not unique: {asked}"


def _says_something(message: Message) -> bool:
    if isinstance(message, SystemMessage):
        return False  # a second system prompt
    return bool(message.content.strip()) or (
        isinstance(message, AssistantMessage) and bool(message.tool_calls)
    )
