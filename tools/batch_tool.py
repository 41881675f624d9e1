"""batch_tool: several tool calls in one, at the same time or one after the other, each through every gate (T30, BAT-01 to BAT-03)."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from ..core.chat import ToolCall, ToolMessage
from ..core.errors import ErrorInfo, ErrorKind
from ..core.model import Frozen, JsonObject
from ..core.tool import ALL_EFFECTS, Tool, ToolContext, ToolResult

NAME = "batch_tool"
MOST = 20  # inner calls
_ALIASES = {"invocations": "calls", "tool_calls": "calls"}


class Invocation(Frozen):
    """One inner call."""

    tool: str = Field(min_length=1, max_length=100)
    arguments: JsonObject = Field(default_factory=dict)


class Args(Frozen):
    """``on_failure`` counts in serial mode only."""

    calls: Annotated[tuple[Invocation, ...], Field(min_length=1, max_length=MOST)]
    mode: Literal["parallel", "serial"] = "parallel"
    on_failure: Literal["continue", "stop"] = Field(default="continue", description="In serial mode.")


def inner_id(call_id: str, index: int) -> str:
    """The id of an inner call."""
    return f"{call_id}.{index + 1}"


def unfolded(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """``calls`` with the inner calls in the place of each batch: what guards against repetition look at (BAT-02)."""
    found: list[ToolCall] = []
    for call in calls:
        given = (call.arguments.get(name) for name in ("calls", *_ALIASES)) if call.name == NAME else ()
        listed = next((value for value in given if value is not None), None)
        if not isinstance(listed, list):
            found.append(call)
            continue
        for index, item in enumerate(cast("list[Any]", listed)[:MOST]):
            one = cast("JsonObject", item) if isinstance(item, dict) else {}
            arguments = one.get("arguments")
            inner = cast("JsonObject", arguments) if isinstance(arguments, dict) else {}
            found.append(ToolCall(id=inner_id(call.id, index), name=str(one.get("tool")), arguments=inner))
    return tuple(found)


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    """``ok`` when every inner call was. ``data``: ``{"results": [{"tool", "ok"}]}``, in order."""
    if ctx.inner is None:
        return ToolResult.failure("A batch cannot hold another batch.", "List its calls directly.")
    calls = [
        ToolCall(id=inner_id(ctx.call_id, i), name=item.tool, arguments=item.arguments)
        for i, item in enumerate(args.calls)
    ]
    serial = args.mode == "serial"
    results = await ctx.inner(calls, parallel=not serial, stop=serial and args.on_failure == "stop")
    failed = [result for result in results if result.is_error]
    total = len(results)
    return ToolResult(
        ok=not failed,
        text="\n\n".join(_section(i, total, result) for i, result in enumerate(results, 1)),
        summary=f"✓ {total} calls, all succeeded",
        data={"results": [{"tool": result.name, "ok": not result.is_error} for result in results]},
        error=_failure(failed, total),
    )


def _section(number: int, total: int, result: ToolMessage) -> str:
    return f"--- {number} of {total}: {result.name}, {'failed' if result.is_error else 'ok'} ---\n{result.content}"


def _failure(failed: list[ToolMessage], total: int) -> ErrorInfo | None:
    if not failed:
        return None
    first = failed[0].content.removeprefix("Error: ")[:300]
    message = f"{len(failed)} of {total} calls failed, first {failed[0].name}: {first}"
    return ErrorInfo(kind=ErrorKind.TOOL, message=message)


TOOL = Tool(
    name=NAME,
    category="Batch",
    args=Args,
    run=_run,
    effects=ALL_EFFECTS,
    aliases=_ALIASES,
)
