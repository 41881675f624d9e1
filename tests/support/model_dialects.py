"""What a scripted model answers, and how the OpenAI and Anthropic dialects put it on the wire (MOD-11)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

Json = dict[str, Any]
Dialect = Literal["openai", "anthropic"]
Event = tuple[str, Json]  # SSE event name ("" = none) and data


@dataclass(frozen=True)
class Call:
    """One tool call. ``arguments`` as a string is sent as it is: cut or malformed JSON, for example."""

    name: str
    arguments: Json | str = field(default_factory=dict[str, Any])
    id: str | None = None  # None: a fresh one; "" is sent as "" (a missing id)

    def raw(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Billed:
    """Tokens as a provider would bill them; ``input`` includes ``cached``."""

    input: int
    output: int
    cached: int = 0


@dataclass(frozen=True)
class Reply:
    """One answer. The fields after ``finish`` make it faulty in one declared way."""

    text: str | None = ""
    calls: tuple[Call, ...] = ()
    thinking: tuple[Json, ...] = ()  # Anthropic blocks; OpenAI sends their text as reasoning_content
    finish: str | None = "auto"  # OpenAI's word; "auto": tool_calls when there are calls, else stop
    usage: Billed | Json | Literal["auto"] | None = "auto"  # a dict is sent as it is; None: no usage at all
    cumulative_usage: bool = False  # OpenAI streams: a running usage in every chunk
    chunk: int = 8  # characters in one text or argument delta
    interleave: bool = False  # argument deltas of parallel calls take turns
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    error: str = ""  # message of an error body (status != 200), or of an error event in a 200 stream
    error_type: str = "server_error"
    fail_after: int | None = None  # stream: an error event after that many events
    drop_after: int | None = None  # stream: connection reset after that many events (whole: before any byte)
    eof_after: int | None = None  # stream: a clean end after that many events, without a finish
    stall_after: int | None = None  # stream: silence of ``stall_s`` after that many events
    stall_s: float = 120.0
    latency_s: float | None = None  # before the first byte; None: the server's
    pause_s: float = 0.0  # between events


def text(content: str, **faults: Any) -> Reply:
    """A plain answer."""
    return Reply(text=content, **faults)


def call(name: str, arguments: Json | str | None = None, *, say: str = "", **faults: Any) -> Reply:
    """An answer with one tool call."""
    return Reply(text=say, calls=(Call(name, {} if arguments is None else arguments),), **faults)


def calls(*wanted: Call, say: str = "", **faults: Any) -> Reply:
    """An answer with several tool calls."""
    return Reply(text=say, calls=wanted, **faults)


def failing(
    status: int, message: str = "no", *, retry_after: float | None = None, kind: str = "server_error"
) -> Reply:
    """An HTTP error, with ``Retry-After`` in seconds when given."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Reply(status=status, error=message, error_type=kind, headers=headers)


@dataclass
class Seen:
    """One request as it came in, and what was billed for it (None: nothing)."""

    number: int
    path: str
    dialect: Dialect
    body: Json
    raw: bytes
    headers: dict[str, str]
    billed: Billed | None = None
    status: int = 0

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def messages(self) -> list[Json]:
        return cast("list[Json]", self.body.get("messages", []))

    def says(self, marker: str) -> bool:
        """Whether the system prompt or a message holds ``marker``."""
        return marker in json.dumps([self.body.get("system"), self.messages], ensure_ascii=False)


def bill(seen: Seen, reply: Reply) -> Billed:
    """What the request costs: the reply's figures, or a quarter of the characters."""
    if isinstance(reply.usage, Billed):
        return reply.usage
    written = (reply.text or "") + "".join(c.name + c.raw() for c in reply.calls)
    return Billed(max(1, len(seen.raw) // 4), max(1, len(written) // 4))


def error_body(dialect: Dialect, reply: Reply) -> Json:
    """An error in the dialect's shape."""
    inner = {"type": reply.error_type, "message": reply.error or "the scripted error"}
    return {"type": "error", "error": inner} if dialect == "anthropic" else {"error": {**inner, "code": None}}


def _ids(seen: Seen, reply: Reply) -> list[tuple[str, Call]]:
    return [(f"call_{seen.number}_{k}" if c.id is None else c.id, c) for k, c in enumerate(reply.calls)]


def _pieces(content: str, size: int) -> Iterator[str]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def _openai_usage(reply: Reply, billed: Billed) -> Json | None:
    if reply.usage is None or isinstance(reply.usage, dict):
        return reply.usage
    return {
        "prompt_tokens": billed.input,
        "completion_tokens": billed.output,
        "total_tokens": billed.input + billed.output,
        "prompt_tokens_details": {"cached_tokens": billed.cached},
    }


def _openai_finish(reply: Reply) -> str | None:
    return reply.finish if reply.finish != "auto" else ("tool_calls" if reply.calls else "stop")


def openai_whole(seen: Seen, reply: Reply, billed: Billed) -> Json:
    """A chat completion."""
    message: Json = {"role": "assistant", "content": reply.text or (None if reply.calls else reply.text)}
    if reply.calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": c.name, "arguments": c.raw()}}
            for i, c in _ids(seen, reply)
        ]
    if reply.thinking:
        message["reasoning_content"] = "".join(str(b.get("thinking", "")) for b in reply.thinking)
    choice = {"index": 0, "message": message, "finish_reason": _openai_finish(reply)}
    body: Json = {"id": f"chatcmpl-{seen.number}", "object": "chat.completion", "created": 1}
    body |= {"model": seen.body.get("model", "test"), "choices": [choice]}
    usage = _openai_usage(reply, billed)
    return body if usage is None else {**body, "usage": usage}


def openai_events(seen: Seen, reply: Reply, billed: Billed) -> Iterator[Event]:
    """The chunks of a streamed chat completion, without ``[DONE]``."""
    base: Json = {"id": f"chatcmpl-{seen.number}", "object": "chat.completion.chunk", "created": 1}
    base["model"] = seen.body.get("model", "test")
    usage = _openai_usage(reply, billed)
    running = {"usage": usage} if reply.cumulative_usage and usage else {}

    def chunk(delta: Json, finish: str | None = None) -> Event:
        return "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **running}

    yield chunk({"role": "assistant", "content": ""})
    for block in reply.thinking:
        yield chunk({"reasoning_content": str(block.get("thinking", ""))})
    for piece in _pieces(reply.text or "", reply.chunk):
        yield chunk({"content": piece})
    for delta in _openai_calls(seen, reply):
        yield chunk({"tool_calls": [delta]})
    yield chunk({}, _openai_finish(reply))
    asked = cast("Json", seen.body.get("stream_options") or {}).get("include_usage")
    if asked and usage is not None and not reply.cumulative_usage:
        yield "", {**base, "choices": [], "usage": usage}


def _openai_calls(seen: Seen, reply: Reply) -> Iterator[Json]:
    pending: list[list[Json]] = []
    for index, (call_id, wanted) in enumerate(_ids(seen, reply)):
        head = {"index": index, "id": call_id, "type": "function"}
        deltas: list[Json] = [{**head, "function": {"name": wanted.name, "arguments": ""}}]
        deltas += [{"index": index, "function": {"arguments": p}} for p in _pieces(wanted.raw(), reply.chunk)]
        pending.append(deltas)
    while any(pending):
        for deltas in pending:
            take = 1 if reply.interleave else len(deltas)
            yield from deltas[:take]
            del deltas[:take]


_ANTHROPIC_STOP = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def _anthropic_usage(reply: Reply, billed: Billed) -> Json | None:
    if reply.usage is None or isinstance(reply.usage, dict):
        return reply.usage
    return {
        "input_tokens": billed.input - billed.cached,
        "output_tokens": billed.output,
        "cache_read_input_tokens": billed.cached,
        "cache_creation_input_tokens": 0,
    }


def _anthropic_stop(reply: Reply) -> str | None:
    finish = _openai_finish(reply)
    return None if finish is None else _ANTHROPIC_STOP.get(finish, finish)


def anthropic_whole(seen: Seen, reply: Reply, billed: Billed) -> Json:
    """A message."""
    content: list[Json] = [dict(block) for block in reply.thinking]
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for call_id, wanted in _ids(seen, reply):
        content.append({"type": "tool_use", "id": call_id, "name": wanted.name, "input": wanted.arguments})
    body: Json = {"id": f"msg_{seen.number}", "type": "message", "role": "assistant", "content": content}
    body |= {
        "model": seen.body.get("model", "test"),
        "stop_reason": _anthropic_stop(reply),
        "stop_sequence": None,
    }
    usage = _anthropic_usage(reply, billed)
    return body if usage is None else {**body, "usage": usage}


def anthropic_events(seen: Seen, reply: Reply, billed: Billed) -> Iterator[Event]:
    """The events of a streamed message."""
    usage = _anthropic_usage(reply, billed)
    message: Json = {"id": f"msg_{seen.number}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": seen.body.get("model", "test"), "stop_reason": None, "stop_sequence": None}
    message["usage"] = (
        {"input_tokens": 0, "output_tokens": 0} if usage is None else {**usage, "output_tokens": 1}
    )
    yield "message_start", {"type": "message_start", "message": message}
    for index, (start, deltas) in enumerate(_anthropic_blocks(seen, reply)):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    end: Json = {
        "type": "message_delta",
        "delta": {"stop_reason": _anthropic_stop(reply), "stop_sequence": None},
    }
    end["usage"] = {"output_tokens": 0 if usage is None else usage.get("output_tokens", 0)}
    yield "message_delta", end
    yield "message_stop", {"type": "message_stop"}


def _anthropic_blocks(seen: Seen, reply: Reply) -> Iterator[tuple[Json, list[Json]]]:
    for block in reply.thinking:
        if block.get("type") != "thinking":
            yield dict(block), []
            continue
        deltas = [
            {"type": "thinking_delta", "thinking": p} for p in _pieces(str(block["thinking"]), reply.chunk)
        ]
        deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if reply.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": p} for p in _pieces(reply.text, reply.chunk)],
        )
    for call_id, wanted in _ids(seen, reply):
        start: Json = {"type": "tool_use", "id": call_id, "name": wanted.name, "input": {}}
        yield (
            start,
            [{"type": "input_json_delta", "partial_json": p} for p in _pieces(wanted.raw(), reply.chunk)],
        )


def reply_from_json(value: Json) -> Reply:
    """A reply as written in a script file: the fields of ``Reply``, calls as ``{"name", "arguments", "id"?}``."""
    fields = dict(value)
    fields["calls"] = tuple(Call(**item) for item in fields.get("calls", ()))
    fields["thinking"] = tuple(fields.get("thinking", ()))
    usage = fields.get("usage", "auto")
    if isinstance(usage, dict) and set(cast("Json", usage)) <= {"input", "output", "cached"}:
        fields["usage"] = Billed(**cast("Json", usage))
    return Reply(**fields)
