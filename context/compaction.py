"""Staged compaction of the request *view*; the transcript keeps every original (CMP-01..14, C-39, T-03, T-05)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ..core.chat import Message, MessageClass, SystemMessage, ToolMessage, ToolSchema, UserMessage
from ..core.errors import ErrorInfo, OpenDevError
from ..store.atomic import write_atomic
from .artifacts import artifact_index
from .pressure import DEFAULT_THRESHOLDS, Stage, StageLadder, TokenMeter, Trend, estimate, message_tokens
from .reminders import get_reminder
from .summaries import archived, bounded, condensed, is_summary, pruned_summary, user_words
from .view import SHORT_CHARS, RequestView, anchor

_KEEP_MASK = 6
_KEEP_TIGHTEN = 3
_RECENCY_SHARE = 0.25  # of the window: results this recent survive pruning
_SMALL_SHARE = 0.20  # of a small window: what full results may weigh; with the prompt that is where quality begins to fall (RET-09)
_FADE_TO = 0.5  # of that room: then it fills again, and the prefixes of the requests stay the same meanwhile
_KEEP_MESSAGES = (3, 10)
_KEEP_SHARE = 0.10  # of the window: what the kept tail may weigh beyond its minimum
_USER_SHARE = 0.05  # of the window: what the user said before the tail, verbatim
_SQUEEZE_TO = 0.90
_SQUEEZE_PREVIEWS = (2_000, 0)  # characters shown of a squeezed result; the second round shows none
_USELESS = 0.10  # a summary that saves less than this share was useless
_MAX_USELESS = 2
_MAX_RESERVE_SHARE = 0.25
_LEAST_WINDOW = 4_096  # a provider that refuses less refuses for another reason
_SUMMARY_S = 180.0
NOTES = "notes.md"  # in the scratch folder; the system prompt names it too
_NOTES_BYTES = 2_000
_ROSTER_S = 5.0


class Compactor(Protocol):
    """Summarises messages with the compact model; a failure is a value."""

    async def summarise(self, messages: tuple[Message, ...], artifacts: str) -> str | ErrorInfo: ...


Roster = Callable[[], Awaitable[str]]


async def no_children() -> str:
    """The roster of an agent that can have no sub-agents."""
    return ""


@dataclass(frozen=True, slots=True)
class Window:
    """The model's window and what of it is spoken for, in tokens. ``limit`` 0 = the model has no window (recipes).

    A window of at most ``small`` tokens is small: its results fade by weight, before the first threshold.
    """

    limit: int
    reserve: int = 4_096
    thresholds: tuple[float, ...] = DEFAULT_THRESHOLDS
    small: int = 0

    def pressure(self, tokens: int) -> float:
        """The share of the window in use, the answer's room included (T-03)."""
        reserve = min(self.reserve, int(self.limit * _MAX_RESERVE_SHARE))
        return (tokens + reserve) / self.limit


@dataclass(frozen=True, slots=True)
class Step:
    """What one check did; tokens of the request before and after. ``notice`` is for a person, ``trend`` tells the growth."""

    stage: Stage
    before: int
    after: int
    notice: str = ""
    trend: str = ""


@dataclass(frozen=True, slots=True)
class _Request:
    """What is measured: the conversation, and what is sent with it in any case."""

    messages: Sequence[Message]
    system: SystemMessage
    tools: Sequence[ToolSchema]
    state: str


class Compaction:
    """The view of one agent's conversation and the stages that shrink it; one stage at a time (C03).

    ``roster`` tells, when a summary is made, which sub-agents run and which have ended.
    """

    def __init__(
        self, window: Window, compactor: Compactor, scratch: Path, roster: Roster = no_children
    ) -> None:
        self._window = window
        self._compactor = compactor
        self._roster = roster
        self._ladder = StageLadder(window.thresholds)
        self._view = RequestView(scratch)
        self._trend = Trend()
        self._useless = 0
        self._requested = False
        self.before_summary: Callable[[str], None] = lambda _trigger: (
            None
        )  # is told "auto" or "manual" (CMP-15)
        self._lock = asyncio.Lock()
        self.meter = TokenMeter()

    @property
    def shown(self) -> RequestView:
        """The view itself, for inspection."""
        return self._view

    def view(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """``messages`` as they are sent."""
        return self._view.messages(messages)

    def request(self) -> None:
        """Summarise at the next check, whatever the pressure (``/compact``, CMP-15)."""
        self._requested = True

    async def check(
        self, messages: Sequence[Message], system: SystemMessage, tools: Sequence[ToolSchema], state: str = ""
    ) -> Step | None:
        """Run the one stage that is due, if any; ``state`` (todos, plan) is put into a summary.

        Raises ``OpenDevError`` when the disk fails. A check that is cancelled leaves the view as it was, or with some
        results masked: both are valid.
        """
        if self._window.limit <= 0:
            return None
        async with self._lock:
            request = _Request(messages, system, tools, state)
            before = self._tokens(request)
            stage = self._ladder.step(self._window.pressure(before))
            self._trend.note(before, stage)
            trigger = "manual" if self._requested else "auto"
            if self._requested:
                self._requested, stage, self._useless = False, Stage.SUMMARISE, 0
            if stage < Stage.MASK and await self._fade(request):
                return Step(Stage.MASK, before, self._tokens(request))
            if stage is Stage.NONE:
                return None
            if stage is Stage.SUMMARISE and self._useless >= _MAX_USELESS:
                return await self._last_resort(request, before)
            return await self._run(stage, before, request, trigger)

    async def force(
        self, messages: Sequence[Message], system: SystemMessage, tools: Sequence[ToolSchema], state: str = ""
    ) -> Step:
        """Summarise now: the provider refused the request as too long, so its window is smaller than we believed."""
        request = _Request(messages, system, tools, state)
        refused = self._tokens(request)
        async with self._lock:
            before = self._tokens(request)
            if before < refused:  # another check has just made it smaller (C03)
                return Step(Stage.SUMMARISE, refused, before)
            limit = min(self._window.limit or refused, refused)
            self._window = replace(self._window, limit=max(limit, _LEAST_WINDOW))
            return await self._run(Stage.SUMMARISE, before, request)

    def _tokens(self, request: _Request) -> int:
        view = self._view.messages(request.messages)
        return self.meter.tokens(estimate((request.system, *view), request.tools))

    async def _run(self, stage: Stage, before: int, request: _Request, trigger: str = "auto") -> Step:
        live = request.messages[self._view.upto :]
        if stage is Stage.MASK:
            await self._view.mask(live, _KEEP_MASK)
        elif stage is Stage.PRUNE:
            self._view.prune(live, int(self._window.limit * _RECENCY_SHARE))
        elif stage is Stage.TIGHTEN:
            await self._view.mask(live, _KEEP_TIGHTEN)
        elif stage is Stage.SUMMARISE:
            self.before_summary(trigger)
            await self._summarise(request)
            await self._squeeze(request)
        after = self._tokens(request)
        notice = self._verdict(before, after, request) if stage is Stage.SUMMARISE else ""
        return Step(stage, before, after, notice, self._trend.sentence())

    async def _fade(self, request: _Request) -> bool:
        """In a small window: mask the oldest results once those shown in full outweigh their room. Whether anything changed."""
        room = int(self._window.limit * _SMALL_SHARE)
        live = request.messages[self._view.upto :]
        if self._window.limit > self._window.small or self._view.weight(live) <= room:
            return False
        return await self._view.fade(live, int(room * _FADE_TO), _KEEP_TIGHTEN)

    async def _last_resort(self, request: _Request, before: int) -> Step | None:
        """After two useless summaries no more are made (C01); results too large for the window still go to files."""
        await self._squeeze(request)
        after = self._tokens(request)
        return Step(Stage.TIGHTEN, before, after) if after < before else None

    def _verdict(self, before: int, after: int, request: _Request) -> str:
        """Count useless summaries; the sentence to show when there is no use in more (C01)."""
        if before - after >= _USELESS * before:
            self._useless = 0
            return ""
        self._useless += 1
        fixed = estimate((request.system,), request.tools)
        what = (
            "the system prompt and the tools alone"
            if 2 * fixed > after
            else "what the user said and the newest messages"
        )
        return (
            f"Compaction could not make the request smaller ({before} → {after} tokens of {self._window.limit}):"
            f" {what} nearly fill it. Use a model with a larger window."
        )

    async def _summarise(self, request: _Request) -> None:
        """Replace the middle by a summary. The view changes in one step at the end: a failure before it changes nothing."""
        messages, first, upto = request.messages, anchor(request.messages), self._cut(request.messages)
        middle = messages[max(first, self._view.upto) : upto]
        if not middle:
            return
        archive = self._view.scratch / "archive" / f"conversation-{len(messages)}.md"
        await asyncio.to_thread(write_atomic, archive, archived(messages).encode("utf-8", "replace"))
        earlier: tuple[Message, ...] = (self._view.summary,) if self._view.summary else ()
        artifacts = artifact_index(messages)
        answer = await self._ask((*earlier, *condensed(middle)), artifacts)
        text = bounded(answer) if answer else pruned_summary(messages[first:upto])
        room = int(self._window.limit * _USER_SHARE)
        parts = (
            get_reminder("compaction_summary", archive=archive),
            text,
            _titled("Files touched", artifacts),
            request.state,
            await asyncio.to_thread(_notes, self._view.scratch / NOTES),
            _titled("Sub-agents", await self._children()),
            _titled("What the user said, newest last", user_words(messages[first:upto], room)),
        )
        body = "\n\n".join(part for part in parts if part)
        self._view.summary = UserMessage(
            content=f"<system-reminder>\n{body}\n</system-reminder>", msg_class=MessageClass.INTERNAL
        )
        self._view.upto = upto

    async def _ask(self, messages: tuple[Message, ...], artifacts: str) -> str:
        """The compactor's summary; empty when it failed, died, hung or answered no summary: then a rule makes one (ACT-13)."""
        try:
            async with asyncio.timeout(_SUMMARY_S):
                answer = await self._compactor.summarise(messages, artifacts)
        except (OpenDevError, TimeoutError):
            return ""
        return "" if isinstance(answer, ErrorInfo) or not is_summary(answer) else answer

    async def _children(self) -> str:
        try:
            async with asyncio.timeout(_ROSTER_S):
                return await self._roster()
        except (OpenDevError, TimeoutError):
            return ""

    def _cut(self, messages: Sequence[Message]) -> int:
        """Where the verbatim tail begins: 3 to 10 messages by weight, never between a call and its result."""
        least, most = _KEEP_MESSAGES
        room = int(self._window.limit * _KEEP_SHARE)
        kept, weight = 0, 0
        for message in reversed(messages):
            weight += message_tokens(self._view.shown(message))
            if kept >= most or (kept >= least and weight > room):
                break
            kept += 1
        cut = len(messages) - kept
        while cut > 0 and isinstance(messages[cut], ToolMessage):
            cut -= 1
        return max(cut, self._view.upto, anchor(messages))

    async def _squeeze(self, request: _Request) -> None:
        """Offload results of the tail, oldest first, until the request fits: one turn may be larger than the window (C09)."""
        for preview in _SQUEEZE_PREVIEWS:
            for result in request.messages[self._view.upto :]:
                if self._window.pressure(self._tokens(request)) < _SQUEEZE_TO:
                    return
                shown = self._view.shown(result)
                if isinstance(shown, ToolMessage) and len(shown.content) > max(preview + 100, SHORT_CHARS):
                    await self._view.offload(shown, preview)


def _notes(path: Path) -> str:
    """The newest of the agent's own notes, which are read again from the file and not from the summary (BLG-12)."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _NOTES_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    cut = "[…]\n" if size > _NOTES_BYTES else ""
    return _titled(f"Your notes (the whole of them: {path})", f"{cut}{text.strip()}")


def _titled(title: str, text: str) -> str:
    return f"## {title}\n{text}" if text.strip() else ""
