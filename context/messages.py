"""A message list that a provider accepts at every moment: calls and results paired, ids unique, nothing blank (RET-05)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..core.chat import (
    AssistantMessage,
    Message,
    MessageClass,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

NO_OUTPUT = "(no output)"
LOST_BEGINNING = "(The beginning of this conversation is lost.)"
INTERRUPTED = "Error: this call was interrupted before it had a result. Call it again if it is still needed."


class ValidatedMessageList:
    """The conversation of one agent without its system prompt. ``on_append`` sees every message before it counts."""

    def __init__(
        self, messages: Iterable[Message] = (), on_append: Callable[[Message], None] | None = None
    ) -> None:
        self.on_append = on_append
        self._messages: list[Message] = []
        self._ids: set[str] = set()
        for message in repair(messages):
            self._store(message)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def snapshot(self) -> tuple[Message, ...]:
        """All messages, as they may be sent."""
        return tuple(self._messages)

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last answer that have no result yet, in call order."""
        done: set[str] = set()
        for message in reversed(self._messages):
            if isinstance(message, ToolMessage):
                done.add(message.call_id)
            elif isinstance(message, AssistantMessage):
                return tuple(call for call in message.tool_calls if call.id not in done)
            else:
                break
        return ()

    def close_open_calls(self, why: str = INTERRUPTED) -> None:
        """Give every call without a result an error result (T-18)."""
        for call in self.open_calls():
            self._store(_missing(call, why))

    def add_user(self, message: UserMessage) -> None:
        """Append; a blank text is left out. Open calls are closed first."""
        if message.content.strip():
            self.close_open_calls()
            self._store(message)

    def add_assistant(self, message: AssistantMessage) -> AssistantMessage | None:
        """Append with unique call ids; returns what was stored, None when the answer is blank (M29)."""
        self.close_open_calls()
        stored = _unique(message, self._ids)
        if not stored.content.strip() and not stored.tool_calls:
            return None
        self._store(stored)
        return stored

    def add_results(self, results: Sequence[ToolMessage]) -> None:
        """Append results of the open calls, in call order; an unknown or second result is left out."""
        by_id: dict[str, ToolMessage] = {}
        for result in results:
            by_id.setdefault(result.call_id, result)
        for call in self.open_calls():
            self._store(_filled(by_id.get(call.id) or _missing(call, INTERRUPTED)))

    def _store(self, message: Message) -> None:
        if self.on_append is not None:
            self.on_append(message)
        if isinstance(message, AssistantMessage):
            self._ids.update(call.id for call in message.tool_calls)
        self._messages.append(message)


def repair(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Any conversation as one that can be sent (M01, M03, M06).

    Results stand right behind their answer in call order: what is missing is filled in, what came late, behind a message of
    the user, is moved there. Results without a call and blank messages go, double ids are told apart or, inside one
    answer, merged in favour of the completed result.
    """
    given = [message for message in messages if not isinstance(message, SystemMessage)]
    repaired: list[Message] = []
    used: set[str] = set()
    position = 0
    while position < len(given):
        message = given[position]
        position += 1
        if isinstance(message, AssistantMessage):
            results: list[ToolMessage] = []
            between: list[Message] = []
            while position < len(given) and not isinstance(later := given[position], AssistantMessage):
                if isinstance(later, ToolMessage):
                    results.append(later)
                elif later.content.strip():
                    between.append(later)
                position += 1
            repaired.extend((*_group(message, results, used), *between))
        elif isinstance(message, UserMessage) and message.content.strip():
            repaired.append(message)
    return tuple(repaired)


def loaded(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A conversation from disk, repaired, and begun by the user: providers refuse another first turn."""
    found = repair(messages)
    if not found or isinstance(found[0], UserMessage):
        return found
    return (UserMessage(content=LOST_BEGINNING, msg_class=MessageClass.INTERNAL), *found)


def _group(message: AssistantMessage, results: list[ToolMessage], used: set[str]) -> list[Message]:
    """One answer with exactly one result per call."""
    calls = {call.id: call for call in reversed(message.tool_calls)}
    kept = message.model_copy(
        update={"tool_calls": tuple(call for call in message.tool_calls if calls.pop(call.id, None) == call)}
    )
    stored = _unique(kept, used)
    if not stored.content.strip() and not stored.tool_calls:
        return []
    used.update(call.id for call in stored.tool_calls)
    group: list[Message] = [stored]
    for old, new in zip(kept.tool_calls, stored.tool_calls, strict=True):
        found = [result for result in results if result.call_id == old.id]
        best = next((result for result in found if not result.is_error), found[0] if found else None)
        filled = _filled(best) if best is not None else _missing(new, INTERRUPTED)
        group.append(filled.model_copy(update={"call_id": new.id}))
    return group


def _unique(message: AssistantMessage, used: set[str]) -> AssistantMessage:
    """``message`` with call ids that occur nowhere else; unchanged when they do not already."""
    taken = set(used)
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        base = call.id.strip() or "call"
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name)
        calls.append(call if name == call.id else call.model_copy(update={"id": name}))
    return message.model_copy(update={"tool_calls": tuple(calls)})


def _filled(result: ToolMessage) -> ToolMessage:
    return result if result.content.strip() else result.model_copy(update={"content": NO_OUTPUT})


def _missing(call: ToolCall, why: str) -> ToolMessage:
    return ToolMessage(
        call_id=call.id, name=call.name, content=why, is_error=True, summary="Error: interrupted"
    )
