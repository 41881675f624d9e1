"""What hooks mean inside of an agent: before and after each tool call, and before a compaction (HOK-01, HOK-05, HOK-08)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import OpenDevError
from ..core.hooks import HookEvent
from ..core.model import Frozen, JsonObject
from ..core.tool import Tool, ToolResult
from .hooks import INPUT, HookEngine
from .schema import parse_args

_TEXT = 20_000  # characters of a result that a hook is told


@dataclass(frozen=True, slots=True)
class Before:
    """What came of the hooks before a call: the arguments that the gate judges and the tool gets, and notes for the agent."""

    args: Frozen
    refused: str = ""
    question: str = ""
    allowed: bool = False
    notes: tuple[str, ...] = ()


class AgentHooks:
    """The hooks of one agent that works in ``root``."""

    def __init__(self, engine: HookEngine, root: Path) -> None:
        self._engine, self._cwd = engine, str(root)

    async def before(self, tool: Tool[Any], args: Frozen) -> Before:
        """Ask the hooks of PreToolUse. New input is parsed like the model's; what cannot be parsed is a refusal."""
        if not self._engine.concerns(HookEvent.PRE_TOOL_USE, tool.name):
            return Before(args)
        answer = await self._engine.ask(HookEvent.PRE_TOOL_USE, tool.name, _call(tool, args), self._cwd)
        notes = tuple(f"[A hook of the user adds: {text}]" for text in answer.contexts)
        if answer.refused:
            return Before(args, refused=f"A hook of the user refused it: {answer.refused}", notes=notes)
        if answer.input is not None:
            try:
                args = parse_args(tool, answer.input)
            except OpenDevError as error:
                return Before(args, refused=f"A hook of the user changed its input, and not well: {error}")
            notes = ("[A hook of the user changed the input of this call.]", *notes)
        return Before(args, "", answer.question, answer.allowed, notes)

    def after(self, tool: Tool[Any], args: Frozen, result: ToolResult, text: str) -> None:
        """Start the hooks of PostToolUse, or of PostToolUseFailure. ``text``: the result without secrets."""
        event = HookEvent.POST_TOOL_USE if result.ok else HookEvent.POST_TOOL_USE_FAILURE
        if not self._engine.concerns(event, tool.name):
            return
        response: JsonObject = {"ok": result.ok, "text": text[:_TEXT], "changed": list(result.changed)}
        if result.error is not None:
            response["error"] = result.error.model_dump(mode="json")
        self._engine.tell(event, tool.name, {**_call(tool, args), "tool_response": response}, self._cwd)

    def compacting(self, trigger: str) -> None:
        """Start the hooks of PreCompact; ``trigger`` is "auto" or "manual" (CMP-15)."""
        self._engine.tell(HookEvent.PRE_COMPACT, trigger, {"trigger": trigger}, self._cwd)


def _call(tool: Tool[Any], args: Frozen) -> JsonObject:
    """What was given, as it was understood: hooks see the value that runs (M10)."""
    given = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {"tool_name": tool.name, INPUT: given}
