"""The built-in model offline/recipes: turns a deterministic plan into tool calls, one a turn; a pure function of the messages (MOD-11)."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..core.chat import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelFailed,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..core.ticket import Delete, Insert, Move, RecipeStep, RenameSymbol, Replace, Rewrite, Run, Write

MODEL = "offline/recipes"
_STEPS: TypeAdapter[tuple[RecipeStep, ...]] = TypeAdapter(tuple[RecipeStep, ...])
_FENCE = re.compile(r"^```recipe\n(?P<json>\[.*\])\n```$", re.MULTILINE)
_CALL_ID = re.compile(r"recipe_(?P<step>\d+)_(?P<phase>find|read|do)")
_PLACES = (  # how find_symbol names a place; bodies are indented and never match
    re.compile(r"^\S[^\n]*? (?P<name>\S+) at (?P<path>[^\n]+):\d+:\d+[ \t]*$", re.MULTILINE),
    re.compile(r"^(?P<path>\S[^\n]*?):\d+:\d+[ \t]{2,}\S+[ \t]{2,}(?P<name>\S+)[ \t]*$", re.MULTILINE),
)
_REASON_CHARS = 600
_END_TRIES = 2


def fence(steps: Sequence[RecipeStep]) -> str:
    """The plan as the fenced block that travels in the first user message. Its JSON is one line of ASCII, so that no text in it ends it."""
    rows = [step.model_dump(by_alias=True) for step in steps]
    return f"```recipe\n{json.dumps(rows)}\n```"


def parse(text: str) -> tuple[RecipeStep, ...]:
    """The steps of the last recipe block in ``text``. Raises ``OpenDevError`` (usage)."""
    blocks = list(_FENCE.finditer(text))
    if not blocks:
        raise OpenDevError(
            ErrorKind.USAGE,
            f"The model {MODEL} only plays recipes, and this task has none.",
            "Give the ticket a recipe, or configure a model: OPENDEV_MODEL=provider/NAME and the provider's API key.",
        )
    try:
        return _STEPS.validate_json(blocks[-1]["json"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise OpenDevError(
            ErrorKind.USAGE,
            f"The recipe cannot be read: {where}: {first['msg']}.",
            "Correct the ticket's recipe.",
        ) from error


class RecipeModel:
    """Answers like a model, with no tokens and no cost."""

    async def complete(self, request: ModelRequest) -> ModelReply | ModelFailed:
        """The next tool call of the plan, or the call that ends the task."""
        try:
            message = next_message(request)
        except OpenDevError as error:
            return ModelFailed(error=error.info)
        finish = FinishReason.TOOL_CALLS if message.tool_calls else FinishReason.STOP
        return ModelReply(message=message, finish=finish, usage=Usage(), model=MODEL)


def next_message(request: ModelRequest) -> AssistantMessage:
    """What the recipe says next. Raises ``OpenDevError`` (usage) when there is no readable plan."""
    first = next((m for m in request.messages if isinstance(m, UserMessage)), None)
    steps = parse(first.content if first else "")
    results = [m for m in request.messages if isinstance(m, ToolMessage)]
    refused = [m for m in results if m.name == "task_complete" and m.is_error]
    if refused:
        return _after_refusal(refused)
    done = 0
    for result in results:
        known = _CALL_ID.fullmatch(result.call_id)
        if known is None:
            continue
        step = int(known["step"])
        if result.is_error:
            return _end("failure", _failure(steps, step, result.content))
        if known["phase"] == "do":
            done = step + 1
    if done >= len(steps):
        return _end("success", _success(steps))
    return _work(steps, done, request)


def _work(steps: Sequence[RecipeStep], index: int, request: ModelRequest) -> AssistantMessage:
    """The call of step ``index``: a look first where one is needed, then the deed."""
    step = steps[index]
    if isinstance(step, RenameSymbol) and not step.path:
        found = _result(request.messages, f"recipe_{index}_find")
        if found is None:
            return _say(steps, index, "find", "find_symbol", {"symbol_name": step.symbol})
        place = _definition(step.symbol, found)
        if isinstance(place, ErrorInfo):
            return _end("failure", _failure(steps, index, place.sentence()))
        step = step.model_copy(update={"path": place})
    unread = isinstance(step, Insert) and _result(request.messages, f"recipe_{index}_read") is None
    if isinstance(step, Insert) and unread and _offers(request, "read_file"):
        # The edit tool checks against what the agent has read (FIL-04).
        return _say(steps, index, "read", "read_file", {"file_path": step.path})
    name, arguments = tool_call(step)
    return _say(steps, index, "do", name, arguments)


def tool_call(step: RecipeStep) -> tuple[str, JsonObject]:
    """The tool and arguments that perform a step."""
    name: str
    arguments: JsonObject
    match step:
        case RenameSymbol():
            name = "rename_symbol"
            arguments = {"symbol_name": step.symbol, "file_path": step.path, "new_name": step.to}
        case Replace():
            name, arguments = "replace_text", step.model_dump(exclude={"step"})
        case Rewrite():
            name, arguments = "rewrite_code", step.model_dump(exclude={"step"})
        case Write():
            name = "write_file"
            arguments = {"file_path": step.path, "content": step.content, "create_dirs": True}
        case Insert():
            name = "edit_file"
            anchor = step.after or step.before
            new = anchor + step.content if step.after else step.content + anchor
            arguments = {"file_path": step.path, "old_content": anchor, "new_content": new}
        case Delete():
            name, arguments = "delete_file", {"file_path": step.path}
        case Move():
            name, arguments = "move_file", {"source": step.source, "destination": step.to}
        case Run():
            name, arguments = "run_command", {"command": step.command}
    return name, arguments


def _definition(symbol: str, listing: str) -> str | ErrorInfo:
    """The file that defines ``symbol``, from find_symbol's lines ``kind name_path at path:line:col`` (or the columns in another order)."""
    wanted = symbol.replace(".", "/").strip("/")
    rows = [row for pattern in _PLACES for row in pattern.finditer(listing)]
    places = [(row["path"].strip(), row["name"].replace(".", "/").strip("/")) for row in rows]
    exact = list(dict.fromkeys(place for place in places if place[1] == wanted))
    loose = list(dict.fromkeys(place for place in places if place[1].endswith(f"/{wanted}")))
    found = exact or loose
    if len(found) == 1:
        return found[0][0]
    if not found:
        return ErrorInfo(
            kind=ErrorKind.NOT_FOUND,
            message=f"No definition of the symbol {symbol} was found.",
            hint="Name the file in the step's `path`.",
        )
    shown = ", ".join(f"{path} ({name})" for path, name in found[:10])
    return ErrorInfo(
        kind=ErrorKind.NOT_FOUND,
        message=f"The symbol {symbol} is defined {len(found)} times: {shown}.",
        hint="Name the file in the step's `path`.",
    )


def _result(messages: Sequence[Message], call_id: str) -> str | None:
    found = [m.content for m in messages if isinstance(m, ToolMessage) and m.call_id == call_id]
    return found[0] if found else None


def _offers(request: ModelRequest, tool: str) -> bool:
    return any(schema.name == tool for schema in request.tools)


def _say(
    steps: Sequence[RecipeStep], index: int, phase: str, tool: str, arguments: JsonObject
) -> AssistantMessage:
    text = f"Step {index + 1} of {len(steps)}: {describe(steps[index])}."
    call = ToolCall(id=f"recipe_{index}_{phase}", name=tool, arguments=arguments)
    return AssistantMessage(content=text, tool_calls=(call,))


def describe(step: RecipeStep) -> str:
    """One step in a few words."""
    fields = step.model_dump(by_alias=True, exclude={"step", "content"})
    shown = ", ".join(f"{name}={_short(value)}" for name, value in fields.items() if value not in ("", False))
    return f"{step.step} ({shown})"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + '..."'


def _failure(steps: Sequence[RecipeStep], index: int, reason: str) -> str:
    what = describe(steps[index]) if index < len(steps) else "unknown"
    return f"Step {index + 1} of {len(steps)} failed, {what}: {reason.strip()[:_REASON_CHARS]}"


def _success(steps: Sequence[RecipeStep]) -> str:
    kinds = ", ".join(dict.fromkeys(step.step for step in steps))
    return (
        f"All {len(steps)} steps of the recipe are done: {kinds}."
        if steps
        else "The recipe is empty: nothing to do."
    )


def _end(status: str, summary: str, number: int = 0) -> AssistantMessage:
    arguments = {"status": status, "summary": summary}
    call = ToolCall(id=f"recipe_end_{number}", name="task_complete", arguments=arguments)
    return AssistantMessage(content=summary, tool_calls=(call,))


def _after_refusal(refused: Sequence[ToolMessage]) -> AssistantMessage:
    """A recipe cannot mend what a refused completion complains of: it ends as a failure, at last in plain words."""
    reason = refused[-1].content.strip()[:_REASON_CHARS]
    summary = f"The recipe ran, but the task could not be completed: {reason}"
    if len(refused) >= _END_TRIES:
        return AssistantMessage(content=summary)
    return _end("failure", summary, len(refused))
