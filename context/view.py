"""The request view of one conversation: which results are shown, masked or pruned, and the summary before them (CMP-04, C-39)."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ..core.chat import AssistantMessage, Message, MessageClass, ToolMessage, UserMessage
from ..store.atomic import write_atomic
from .pressure import message_tokens

PRUNED = "[pruned]"
SHORT_CHARS = 160  # a result no longer than its pointer stays
_POINTER = "[output offloaded to scratch file {name}]"  # about 15 tokens; the scratch folder stands in the system prompt
_OFFLOADED = re.compile(r"^\[Output offloaded: [^\n]* → ([^\n]+)\]$", re.M)  # what tools/offload leaves


class Life(StrEnum):
    """How far an observation has gone (CMP-09)."""

    ACTIVE = "active"  # sent in full
    FADED = "faded"  # sent as a pointer to a file that holds it
    ARCHIVED = "archived"  # not sent: pruned or summarised; the transcript and the archive hold it


@dataclass(slots=True)
class RequestView:
    """Replacements by call id, and a summary that stands for the messages before ``upto``. ``scratch`` gets the masked texts.

    Only contents are replaced and only whole turns left out, so that calls and results stay paired (CMP-14). Files that
    are written are named in the order of masking. Raises ``OpenDevError`` when the disk fails.
    """

    scratch: Path
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    summary: UserMessage | None = None
    upto: int = 0
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """``messages`` as they are sent."""
        if self.summary is None:
            return tuple(self.shown(message) for message in messages)
        rest = (self.shown(message) for message in messages[self.upto :])
        return (*task_of(messages), self.summary, *rest)

    def shown(self, message: Message) -> Message:
        """One message as it is sent."""
        if isinstance(message, ToolMessage) and message.call_id in self.replaced:
            return message.model_copy(update={"content": self.replaced[message.call_id]})
        return message

    def life(self, messages: Sequence[Message], call_id: str) -> Life:
        """The state of the result of ``call_id``."""
        place = next(
            (n for n, m in enumerate(messages) if isinstance(m, ToolMessage) and m.call_id == call_id), None
        )
        shown = self.replaced.get(call_id)
        if shown == PRUNED or (self.summary is not None and place is not None and place < self.upto):
            return Life.ARCHIVED
        return Life.ACTIVE if shown is None else Life.FADED

    async def mask(self, messages: Sequence[Message], keep: int) -> None:
        """Replace results older than the ``keep`` newest by a pointer to a file that really holds them (T-05)."""
        for result in self._replaceable(messages, keep):
            await self.offload(result)

    def prune(self, messages: Sequence[Message], budget: int) -> None:
        """Walk backwards; full results beyond ``budget`` tokens are dropped. Pointers stay: they cost nothing."""
        for result in reversed(self._replaceable(messages, 0)):
            budget -= message_tokens(result)
            if budget < 0:
                self.replaced[result.call_id] = PRUNED

    def weight(self, messages: Sequence[Message]) -> int:
        """Tokens of the results that are shown in full and could be masked."""
        return sum(message_tokens(result) for result in self._replaceable(messages, 0))

    async def fade(self, messages: Sequence[Message], budget: int, keep: int) -> bool:
        """Mask the oldest results until the others weigh ``budget`` tokens; the ``keep`` newest and those that the model has not
        seen yet stay whatever they weigh. Whether one was masked."""
        unseen = 0
        for message in reversed(messages):
            if isinstance(message, AssistantMessage):
                break
            unseen += isinstance(message, ToolMessage)
        spare = self.weight(messages) - budget
        masked = False
        for result in self._replaceable(messages, max(keep, unseen)):
            if spare <= 0:
                break
            spare -= message_tokens(result)
            await self.offload(result)
            masked = True
        return masked

    async def offload(self, result: ToolMessage, preview: int = 0) -> None:
        """Show ``result`` as a pointer, behind its first ``preview`` characters. One file a result."""
        name = self._names.get(result.call_id) or await asyncio.to_thread(self._earlier_file, result.content)
        if not name:
            name = f"masked/{len(self._names) + 1:04d}.txt"
            await asyncio.to_thread(
                write_atomic, self.scratch / name, result.content.encode("utf-8", "replace")
            )
        self._names[result.call_id] = name
        pointer = _POINTER.format(name=name)
        shown = f"{result.content[:preview]}\n[…]\n{pointer}" if preview else pointer
        self.replaced[result.call_id] = shown

    def _earlier_file(self, content: str) -> str:
        """The file in the scratch folder that the tool itself wrote the whole output to, if it did."""
        found = _OFFLOADED.findall(content)
        path = Path(found[-1]) if found else None
        inside = path is not None and path.is_file() and path.resolve().is_relative_to(self.scratch.resolve())
        return path.resolve().relative_to(self.scratch.resolve()).as_posix() if path and inside else ""

    def _replaceable(self, messages: Sequence[Message], keep: int) -> list[ToolMessage]:
        """Full results older than the ``keep`` newest; the newest error stays: it may be under repair (CMP-14)."""
        results = [message for message in messages if isinstance(message, ToolMessage)]
        error = next((result.call_id for result in reversed(results) if result.is_error), None)
        return [
            result
            for result in results[: max(0, len(results) - keep)]
            if result.call_id != error
            and result.call_id not in self.replaced
            and len(result.content) > SHORT_CHARS
        ]


def anchor(messages: Sequence[Message]) -> int:
    """How many messages the opening has: up to the first one of the user, the task. 0 when the conversation begins otherwise."""
    for count, message in enumerate(messages, 1):
        if not isinstance(message, UserMessage):
            break
        if message.msg_class is MessageClass.USER:
            return count
    return 0


def task_of(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The task, always sent verbatim; references put in front of it go with a summary, their files can be read again."""
    return tuple(messages[: anchor(messages)][-1:])
