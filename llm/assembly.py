"""One answer put together from a whole response or from stream chunks: text, calls by index, opaque thinking, finish, usage."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from ..core.chat import AssistantMessage, FinishReason, ToolCall
from ..core.ids import new_id
from ..core.model import JsonObject, well_formed
from .convert import parse_call
from .cost import Counts

_FINISH = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTERED,
}


@dataclass
class _Fragments:
    id: str = ""
    name: str = ""
    raw: str = ""


@dataclass
class Assembly:
    """Takes the pieces of one answer. Objects of litellm come as ``Any``: only attributes are read, none is trusted."""

    text: str = ""
    finish: str = ""
    counts: Counts | None = None
    _calls: dict[int, _Fragments] = field(default_factory=dict[int, _Fragments])
    _thinking: dict[int, JsonObject] = field(default_factory=dict[int, JsonObject])

    def add_chunk(self, chunk: Any) -> str:
        """Take one chunk; the text it adds. A chunk without choices only carries usage."""
        self._add_usage(getattr(chunk, "usage", None))
        added = ""
        for choice in getattr(chunk, "choices", None) or ():
            self.finish = getattr(choice, "finish_reason", None) or self.finish
            delta = getattr(choice, "delta", None)
            if delta is not None:
                added += self._add_delta(delta)
        return added

    def add_whole(self, response: Any) -> None:
        """Take a response that was not streamed."""
        self._add_usage(getattr(response, "usage", None))
        for choice in (getattr(response, "choices", None) or ())[:1]:
            self.finish = getattr(choice, "finish_reason", None) or ""
            message = getattr(choice, "message", None)
            if message is not None:
                self._add_message(message)

    def message(self) -> AssistantMessage:
        """The answer; call ids are unique and never empty, in the order of the calls."""
        return AssistantMessage(
            content=well_formed(self.text),
            tool_calls=tuple(self._unique_calls()),
            thinking=tuple(_sound(self._thinking[index]) for index in sorted(self._thinking)),
        )

    def reason(self) -> FinishReason:
        """Why it stopped. Calls with an odd reason count as calls; an unknown reason without calls as a stop."""
        known = _FINISH.get(self.finish)
        if known is FinishReason.LENGTH or known is FinishReason.FILTERED:
            return known
        return FinishReason.TOOL_CALLS if self._calls else FinishReason.STOP

    @property
    def written(self) -> str:
        """All that the model wrote, for an estimate of its tokens."""
        calls = "".join(part.name + part.raw for part in self._calls.values())
        return (
            self.text + calls + "".join(str(block.get("thinking", "")) for block in self._thinking.values())
        )

    def _add_delta(self, delta: Any) -> str:
        for position, part in enumerate(getattr(delta, "tool_calls", None) or ()):
            index = getattr(part, "index", None)
            self._add_fragment(position if index is None else index, part)
        for block in _blocks(getattr(delta, "thinking_blocks", None)):
            self._add_thinking(block)
        content = getattr(delta, "content", None)
        piece = content if isinstance(content, str) else ""
        self.text += piece
        return well_formed(piece)

    def _add_message(self, message: Any) -> None:
        content = getattr(message, "content", None)
        self.text = content if isinstance(content, str) else ""
        for position, part in enumerate(getattr(message, "tool_calls", None) or ()):
            self._add_fragment(position, part)
        for position, block in enumerate(_blocks(getattr(message, "thinking_blocks", None))):
            self._thinking[position] = block

    def _add_fragment(self, index: int, part: Any) -> None:
        """Joined by index, never by the last seen id: fragments of parallel calls interleave (M18)."""
        call = self._calls.setdefault(index, _Fragments())
        function = getattr(part, "function", None)
        call.id = call.id or getattr(part, "id", None) or ""
        call.name = call.name or getattr(function, "name", None) or ""
        call.raw += getattr(function, "arguments", None) or ""

    def _add_thinking(self, block: JsonObject) -> None:
        index = int(block.pop("index", len(self._thinking)))
        held = self._thinking.setdefault(index, {})
        for key, value in block.items():
            joins = key in ("thinking", "signature") and isinstance(value, str)
            held[key] = str(held.get(key, "")) + value if joins else value

    def _add_usage(self, usage: Any) -> None:
        """The last report counts: running totals are not summed (M27)."""
        if usage is None:
            return
        details = getattr(usage, "prompt_tokens_details", None)
        self.counts = Counts(
            input=_number(getattr(usage, "prompt_tokens", None)),
            output=_number(getattr(usage, "completion_tokens", None)),
            cached=_number(getattr(details, "cached_tokens", None)),
            written=_number(getattr(usage, "cache_creation_input_tokens", None)),
        )

    def _unique_calls(self) -> Iterable[ToolCall]:
        taken: set[str] = set()
        for index in sorted(self._calls):
            part = self._calls[index]
            own = well_formed(part.id)
            call_id = own if own and own not in taken else f"call_{new_id()}"
            taken.add(call_id)
            yield parse_call(call_id, well_formed(part.name), well_formed(part.raw))


def _sound(block: JsonObject) -> JsonObject:
    return {key: well_formed(value) if isinstance(value, str) else value for key, value in block.items()}


def _blocks(value: Any) -> list[JsonObject]:
    return [dict(cast("JsonObject", block)) for block in value or () if isinstance(block, dict)]


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
