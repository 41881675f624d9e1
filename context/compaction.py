"""Staged compaction of the request *view*; the transcript keeps every original (CMP-01..14, C-39, T-03, T-05)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..core.chat import MESSAGES, Message, MessageClass, SystemMessage, ToolMessage, ToolSchema, UserMessage
from ..core.errors import ErrorInfo
from ..store.atomic import write_atomic
from .artifacts import artifact_index
from .pressure import DEFAULT_THRESHOLDS, Stage, StageLadder, TokenMeter, estimate, message_tokens
from .reminders import get_reminder
from .summaries import bounded, condensed, pruned_summary

PRUNED = "[pruned]"
_KEEP_MASK = 6
_KEEP_TIGHTEN = 3
_RECENCY_SHARE = 0.25  # of the window: results this recent survive pruning
_KEEP_MESSAGES = (3, 10)
_KEEP_SHARE = 0.10  # of the window: what the kept tail may weigh beyond its minimum
_SQUEEZE_TO = 0.90
_SHORT_CHARS = 160  # a result no longer than its pointer stays
_USELESS = 0.10  # a summary that saves less than this share was useless
_MAX_USELESS = 2
_MAX_RESERVE_SHARE = 0.25
_USER_MESSAGES = 3
_USER_CHARS = 4_000


class Compactor(Protocol):
    """Summarises messages with the compact model; a failure is a value."""

    async def summarise(self, messages: tuple[Message, ...], artifacts: str) -> str | ErrorInfo: ...


@dataclass(frozen=True, slots=True)
class Window:
    """The model's window and what of it is spoken for, in tokens. ``limit`` 0 = the model has no window (recipes)."""

    limit: int
    reserve: int = 4_096
    thresholds: tuple[float, ...] = DEFAULT_THRESHOLDS

    def pressure(self, tokens: int) -> float:
        """The share of the window in use, the answer's room included (T-03)."""
        reserve = min(self.reserve, int(self.limit * _MAX_RESERVE_SHARE))
        return (tokens + reserve) / self.limit


@dataclass(frozen=True, slots=True)
class Step:
    """What one check did; tokens of the request before and after. ``notice`` is for a person."""

    stage: Stage
    before: int
    after: int
    notice: str = ""


@dataclass(slots=True)
class _View:
    """Replacements by call id, and a summary that stands for the messages before ``upto``."""

    replaced: dict[str, str] = field(default_factory=dict[str, str])
    summary: UserMessage | None = None
    upto: int = 0


class Compaction:
    """The view of one agent's conversation and the stages that shrink it."""

    def __init__(self, window: Window, compactor: Compactor, scratch: Path) -> None:
        self._window = window
        self._compactor = compactor
        self._scratch = scratch
        self._ladder = StageLadder(window.thresholds)
        self._view = _View()
        self._useless = 0
        self._files = 0
        self.meter = TokenMeter()

    def view(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """``messages`` as they are sent. Call/result pairs stay whole, since only contents are replaced or whole turns left out."""
        if self._view.summary is None:
            return tuple(self._shown(message) for message in messages)
        first = messages[: _anchor(messages)]
        rest = (self._shown(message) for message in messages[self._view.upto :])
        return (*first, self._view.summary, *rest)

    async def check(
        self, messages: Sequence[Message], system: SystemMessage, tools: Sequence[ToolSchema], state: str = ""
    ) -> Step | None:
        """Run the stage that is due, if any; ``state`` (open todos) is put into a summary. Raises ``OpenDevError`` when the disk fails."""
        if self._window.limit <= 0:
            return None
        before = self._tokens(messages, system, tools)
        stage = self._ladder.step(self._window.pressure(before))
        if stage is Stage.NONE or (stage is Stage.SUMMARISE and self._useless >= _MAX_USELESS):
            return None
        return await self._run(stage, before, messages, system, tools, state)

    async def force(
        self, messages: Sequence[Message], system: SystemMessage, tools: Sequence[ToolSchema], state: str = ""
    ) -> Step:
        """Summarise now: the provider refused the request as too long."""
        before = self._tokens(messages, system, tools)
        return await self._run(Stage.SUMMARISE, before, messages, system, tools, state)

    def _tokens(self, messages: Sequence[Message], system: SystemMessage, tools: Sequence[ToolSchema]) -> int:
        return self.meter.tokens(estimate((system, *self.view(messages)), tools))

    async def _run(
        self,
        stage: Stage,
        before: int,
        messages: Sequence[Message],
        system: SystemMessage,
        tools: Sequence[ToolSchema],
        state: str,
    ) -> Step:
        live = messages[self._view.upto :]
        if stage is Stage.MASK:
            await self._mask(live, _KEEP_MASK)
        elif stage is Stage.PRUNE:
            self._prune(live)
        elif stage is Stage.TIGHTEN:
            await self._mask(live, _KEEP_TIGHTEN)
        elif stage is Stage.SUMMARISE:
            await self._summarise(messages, state)
            await self._squeeze(messages, system, tools)
        after = self._tokens(messages, system, tools)
        notice = self._verdict(before, after) if stage is Stage.SUMMARISE else ""
        return Step(stage, before, after, notice)

    def _verdict(self, before: int, after: int) -> str:
        """Count useless summaries; the sentence to show when there is no use in more (C01)."""
        if before - after >= _USELESS * before:
            self._useless = 0
            return ""
        self._useless += 1
        fixed = "the system prompt and the tools alone nearly fill it"
        return (
            f"Compaction could not make the request smaller ({before} → {after} tokens of {self._window.limit}): {fixed}. "
            "Use a model with a larger window."
        )

    def _shown(self, message: Message) -> Message:
        if isinstance(message, ToolMessage) and message.call_id in self._view.replaced:
            return message.model_copy(update={"content": self._view.replaced[message.call_id]})
        return message

    def _maskable(self, messages: Sequence[Message], keep: int) -> list[ToolMessage]:
        """Results older than the ``keep`` newest; the newest error stays: it may be under repair (CMP-14)."""
        results = [message for message in messages if isinstance(message, ToolMessage)]
        error = next((result.call_id for result in reversed(results) if result.is_error), None)
        older = results[: max(0, len(results) - keep)]
        return [r for r in older if r.call_id != error and len(r.content) > _SHORT_CHARS]

    async def _mask(self, messages: Sequence[Message], keep: int) -> None:
        """Replace older results by a pointer to a file that really holds them (T-05)."""
        for result in self._maskable(messages, keep):
            if result.call_id not in self._view.replaced:
                await self._offload(result)

    async def _offload(self, result: ToolMessage) -> None:
        self._files += 1
        path = self._scratch / "masked" / f"{self._files:04d}.txt"
        await asyncio.to_thread(write_atomic, path, result.content.encode())
        self._view.replaced[result.call_id] = f"[output offloaded to scratch file: {path}]"

    def _prune(self, messages: Sequence[Message]) -> None:
        budget = int(self._window.limit * _RECENCY_SHARE)
        for result in reversed(self._maskable(messages, 0)):
            budget -= message_tokens(self._shown(result))
            if budget < 0:
                self._view.replaced[result.call_id] = PRUNED

    async def _summarise(self, messages: Sequence[Message], state: str) -> None:
        first, upto = _anchor(messages), self._cut(messages)
        middle = messages[max(first, self._view.upto) : upto]
        if not middle:
            return
        archive = self._scratch / "archive" / f"conversation-{len(messages)}.json"
        await asyncio.to_thread(write_atomic, archive, MESSAGES.dump_json(tuple(messages), indent=1))
        earlier: tuple[Message, ...] = (self._view.summary,) if self._view.summary else ()
        artifacts = artifact_index(messages)
        answer = await self._compactor.summarise((*earlier, *condensed(middle)), artifacts)
        failed = isinstance(answer, ErrorInfo) or not answer.strip()
        text = pruned_summary(messages[first:upto]) if failed else bounded(str(answer))
        content = get_reminder("compaction_summary", archive=archive)
        parts = (
            text,
            _titled("Files touched", artifacts),
            _titled("Todos", state),
            _said(messages[first:upto]),
        )
        body = "\n\n".join(part for part in (content, *parts) if part)
        self._view.summary = UserMessage(
            content=f"<system-reminder>\n{body}\n</system-reminder>", msg_class=MessageClass.INTERNAL
        )
        self._view.upto = upto

    def _cut(self, messages: Sequence[Message]) -> int:
        """Where the verbatim tail begins: 3 to 10 messages by weight, never between a call and its result."""
        least, most = _KEEP_MESSAGES
        room = int(self._window.limit * _KEEP_SHARE)
        kept, weight = 0, 0
        for message in reversed(messages):
            weight += message_tokens(self._shown(message))
            if kept >= most or (kept >= least and weight > room):
                break
            kept += 1
        cut = len(messages) - kept
        while cut > 0 and isinstance(messages[cut], ToolMessage):
            cut -= 1
        return max(cut, self._view.upto, _anchor(messages))

    async def _squeeze(
        self, messages: Sequence[Message], system: SystemMessage, tools: Sequence[ToolSchema]
    ) -> None:
        """Offload results of the tail, oldest first, until the request fits: one turn may be larger than the window (C09)."""
        for result in messages[self._view.upto :]:
            if self._window.pressure(self._tokens(messages, system, tools)) < _SQUEEZE_TO:
                return
            if not isinstance(result, ToolMessage) or result.call_id in self._view.replaced:
                continue
            if len(result.content) > _SHORT_CHARS:
                await self._offload(result)


def _anchor(messages: Sequence[Message]) -> int:
    """1 when the conversation begins with the task, which is always sent verbatim."""
    return int(bool(messages) and isinstance(messages[0], UserMessage))


def _titled(title: str, text: str) -> str:
    return f"## {title}\n{text}" if text.strip() else ""


def _said(messages: Sequence[Message]) -> str:
    """The newest user messages that the summary stands for, verbatim (CMP-13, C07)."""
    said = [m.content for m in messages if isinstance(m, UserMessage) and m.msg_class is MessageClass.USER]
    return _titled(
        "What the user said, newest last",
        "\n---\n".join(text[:_USER_CHARS] for text in said[-_USER_MESSAGES:]),
    )
