"""Pages of tools looked through before the SDK sees them, so that one bad entry costs only itself (X10)."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from ...core.model import JsonObject

RAW = "opendev/inputSchema"  # in a tool's ``_meta``: its schema as it came


@asynccontextmanager
async def sifted(transport: Any, on_closed: Callable[[], None]) -> AsyncGenerator[Any]:
    """A transport of the SDK whose answers are looked through first."""
    async with transport as (read, write):
        yield _Sifted(read, on_closed), write


class _Sifted:
    """A read stream; keeps what ``keep_schemas`` keeps, drops what is no message."""

    def __init__(self, inner: Any, on_closed: Callable[[], None]) -> None:
        self._inner, self._on_closed = inner, on_closed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> "_Sifted":
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._inner.__anext__()
        except StopAsyncIteration:
            self._on_closed()
            raise
        if not isinstance(item, Exception):
            keep_schemas(getattr(item.message, "result", None))
        return item

    async def receive(self) -> Any:
        """The next item, as by iteration."""
        return await self.__anext__()

    async def __aenter__(self) -> "_Sifted":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> Any:
        return await self._inner.__aexit__(*reason)


def keep_schemas(result: Any) -> None:
    """In a page of tools: each tool's schema as it came goes into its ``_meta``; where it is none, an empty one takes its place.

    One bad entry would cost the whole page in the SDK (X10). Output schemas are dropped: a server that breaks its own would
    cost the answer, and nothing here reads them.
    """
    page = cast("JsonObject", result) if isinstance(result, dict) else {}
    listed: Any = page.get("tools")
    if not isinstance(listed, list) or "content" in page:
        return
    kept: list[JsonObject] = []
    for item in cast("list[Any]", listed):
        entry = cast("JsonObject", item) if isinstance(item, dict) else {}
        if not isinstance(entry.get("name"), str):
            continue
        raw = entry.get("inputSchema")
        tool: JsonObject = {"name": entry["name"], "inputSchema": raw if _sound(raw) else {"type": "object"}}
        if isinstance(entry.get("description"), str):
            tool["description"] = entry["description"]
        kept.append({**tool, "_meta": {RAW: raw}})
    page["tools"] = kept


def _sound(raw: Any) -> bool:
    schema = cast("JsonObject", raw) if isinstance(raw, dict) else {}
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(value, dict) for value in cast("JsonObject", properties).values())
        and isinstance(required, list)
        and all(isinstance(name, str) for name in cast("list[Any]", required))
    )
