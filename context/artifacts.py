"""The artifact index: which files a conversation touched, and how (CMP-10)."""

from collections.abc import Iterable

from ..core.chat import AssistantMessage, Message, ToolMessage

MAX_ARTIFACTS = 200
_OPERATIONS = {
    "read_file": "read",
    "write_file": "created",
    "edit_file": "modified",
    "rename_symbol": "modified",
    "replace_symbol_body": "modified",
    "insert_before_symbol": "modified",
    "insert_after_symbol": "modified",
    "delete_file": "deleted",
    "move_file": "moved",
}
_PATH_KEYS = ("file_path", "path", "source")


def artifact_index(messages: Iterable[Message]) -> str:
    """One line per file, ``path: operations``, newest files last; the oldest go beyond ``MAX_ARTIFACTS``. Failed calls do not count."""
    wanted: dict[str, tuple[str, str]] = {}
    found: dict[str, list[str]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                path = next((call.arguments[key] for key in _PATH_KEYS if call.arguments.get(key)), None)
                if call.name in _OPERATIONS and isinstance(path, str):
                    wanted[call.id] = (path, _OPERATIONS[call.name])
        elif isinstance(message, ToolMessage) and not message.is_error and message.call_id in wanted:
            path, operation = wanted.pop(message.call_id)
            operations = found.pop(path, [])
            if operation == "created" and operations:
                operation = "modified"  # it was there already: read or written before
            found[path] = operations if operation in operations else [*operations, operation]
    lines = [f"{path}: {', '.join(operations)}" for path, operations in found.items()]
    return "\n".join(lines[-MAX_ARTIFACTS:])
