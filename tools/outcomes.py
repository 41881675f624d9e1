"""How a call that went wrong, and the arguments of any call, are told."""

from ..core.errors import ErrorInfo, ErrorKind
from ..core.model import JsonObject
from ..core.tool import ToolResult
from ..policy.redact import redact

_EVENT_TEXT = 4_000  # characters of one argument in an event


def failed(info: ErrorInfo) -> ToolResult:
    """The result of a call that failed for a known reason."""
    return ToolResult(ok=False, text=f"Error: {info.sentence()}", error=info)


def crashed(name: str, error: Exception) -> ToolResult:
    """The result of a call whose tool raised something else than ``OpenDevError``."""
    kinds: dict[type[Exception], ErrorKind] = {
        TimeoutError: ErrorKind.TIMEOUT,
        FileNotFoundError: ErrorKind.NOT_FOUND,
    }
    kind = kinds.get(type(error), ErrorKind.TOOL if isinstance(error, OSError) else ErrorKind.INTERNAL)
    return ToolResult.failure(f"{name} failed: {type(error).__name__}: {error}"[:2_000], kind=kind)


def for_event(arguments: JsonObject) -> JsonObject:
    """Arguments for the log: long text cut, secrets out."""
    shown: JsonObject = {}
    for name, value in arguments.items():
        if isinstance(value, str):
            cut = len(value) - _EVENT_TEXT
            value = redact(value) if cut <= 0 else f"{redact(value[:_EVENT_TEXT])}… ({cut:,} more characters)"
        shown[name] = value
    return shown
