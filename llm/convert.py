"""Our conversation types as the OpenAI-style dictionaries that litellm wants; provider differences stand here (MOD-09)."""

import json
from collections.abc import Sequence

from ..core.chat import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSchema,
    UserMessage,
    canonical,
)
from ..core.model import JsonObject

NO_OUTPUT = "(no output)"


def provider_of(model: str) -> str:
    """``provider`` of ``provider/NAME``; empty when there is none."""
    return model.partition("/")[0] if "/" in model else ""


def to_messages(messages: Sequence[Message], *, anthropic: bool) -> list[JsonObject]:
    """The request's messages. The caller has validated them; empty contents become ``(no output)`` or are left out."""
    return [_message(message, anthropic=anthropic) for message in messages if not _is_empty(message)]


def to_tools(schemas: Sequence[ToolSchema]) -> list[JsonObject]:
    """Tool schemas as native functions, one per name (the first wins), in the given order."""
    named: dict[str, JsonObject] = {}
    for schema in schemas:
        named.setdefault(
            schema.name,
            {"name": schema.name, "description": schema.description, "parameters": schema.parameters},
        )
    return [{"type": "function", "function": function} for function in named.values()]


def _is_empty(message: Message) -> bool:
    """An empty block is refused by some providers for ever after; a message without any content says nothing."""
    match message:
        case SystemMessage():
            return not (message.stable.strip() or message.dynamic.strip())
        case UserMessage():
            return not (message.content.strip() or message.images)
        case AssistantMessage():
            return not (message.content.strip() or message.tool_calls or message.thinking)
        case ToolMessage():
            return False


def _message(message: Message, *, anthropic: bool) -> JsonObject:
    match message:
        case SystemMessage():
            return {"role": "system", "content": _system(message, anthropic=anthropic)}
        case UserMessage():
            return {"role": "user", "content": _user(message)}
        case AssistantMessage():
            return _assistant(message, anthropic=anthropic)
        case ToolMessage():
            content = message.content if message.content.strip() else NO_OUTPUT
            return {"role": "tool", "tool_call_id": message.call_id, "name": message.name, "content": content}


def _user(message: UserMessage) -> str | list[JsonObject]:
    """Plain text; with pictures a block for each part, which litellm translates for providers of another form (VIS-02)."""
    if not message.images:
        return message.content
    blocks: list[JsonObject] = [
        {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
        for image in message.images
    ]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    return blocks


def _system(message: SystemMessage, *, anthropic: bool) -> str | list[JsonObject]:
    """Two blocks for Anthropic, the stable one cacheable; one string with the same text for the others (PRM-09)."""
    parts = [part for part in (message.stable, message.dynamic) if part.strip()]
    if not anthropic:
        return "\n\n".join(parts)
    blocks: list[JsonObject] = [{"type": "text", "text": part} for part in parts]
    if message.stable.strip():
        blocks[0]["cache_control"] = {"type": "ephemeral"}
    return blocks


def _assistant(message: AssistantMessage, *, anthropic: bool) -> JsonObject:
    result: JsonObject = {"role": "assistant", "content": message.content or None}
    if message.tool_calls:
        result["tool_calls"] = [_call(call) for call in message.tool_calls]
    if anthropic and message.thinking:
        # Sent back byte-identical (M21); another provider would refuse them, so they are dropped as a whole.
        result["thinking_blocks"] = [dict(block) for block in message.thinking]
    return result


def _call(call: ToolCall) -> JsonObject:
    """History always replays with valid JSON arguments, also after an unreadable call (M08)."""
    arguments = canonical(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def parse_call(call_id: str, name: str, raw: str) -> ToolCall:
    """A call from its raw arguments. Unreadable or cut JSON gives ``problem``, never guessed arguments (M08)."""
    if not raw.strip():
        return ToolCall(id=call_id, name=name)  # no arguments is how several providers spell {}
    try:
        value: object = json.loads(raw, parse_constant=_refuse_constant)
        canonical(
            value
        ).encode()  # a lone half of a character can be escaped, but neither sent nor written to a file
    except ValueError as error:
        tail = raw[-60:]
        problem = f"The arguments are not valid JSON ({error}); they end with: {tail!r}."
        return ToolCall(id=call_id, name=name, problem=problem)
    if not isinstance(value, dict):
        problem = f"The arguments must be a JSON object, not {type(value).__name__}: {raw[:60]!r}."
        return ToolCall(id=call_id, name=name, problem=problem)
    return ToolCall.model_validate({"id": call_id, "name": name, "arguments": value})


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")
