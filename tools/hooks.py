"""The one hook engine: asks the hooks of a blocking event in turn, runs those of the others beside the work (HOK-03 to HOK-09)."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.events import Notice
from ..core.hooks import HookEvent, HookSet
from ..core.model import JsonObject, well_formed_json
from ..core.ports import EventSink
from ..policy.hooks import Ended, Matchers, Planned, Said, interpret
from ..policy.redact import redact
from .hook_process import run_hook
from .hook_trust import digest_of

AT_ONCE = 2  # events whose hooks run beside the work at the same time
WAITING = 100  # such events at most; of more the hooks do not run, and a notice says so
FINISH_S = 10.0  # how long hooks beside the work may go on after the end
INPUT = "tool_input"
PROJECT_DIR = "OPENDEV_PROJECT_DIR"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the hooks of one event said together. ``refused`` and ``question`` are reasons, empty = no. ``input`` is the new
    input, None = as it was; ``allowed`` counts for exactly this input."""

    refused: str = ""
    question: str = ""
    allowed: bool = False
    input: JsonObject | None = None
    contexts: tuple[str, ...] = ()


@dataclass(slots=True)
class _Round:
    """The state while the hooks of one event are asked one after the other."""

    event: HookEvent
    facts: JsonObject
    cwd: str
    passed: list[Planned] = field(default_factory=list[Planned])
    changed: bool = False
    allowed: bool = False
    question: str = ""
    contexts: list[str] = field(default_factory=list[str])


class HookEngine:
    """The hooks of one agent, or of a run. ``env`` holds no keys; ``emit`` tells of hooks that failed."""

    def __init__(self, hooks: HookSet, *, session: str, env: Mapping[str, str], emit: EventSink) -> None:
        self._hooks, self._session, self._emit = hooks, session, emit
        self._env = {**env, PROJECT_DIR: hooks.project}
        self._matchers = Matchers(hooks)
        self._beside: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    def concerns(self, event: HookEvent, subject: str = "") -> bool:
        """Whether any hook would run."""
        return bool(self._matchers.of(event, subject))

    async def ask(self, event: HookEvent, subject: str, facts: JsonObject, cwd: str) -> Answer:
        """Run the hooks of a blocking event, one after the other, until one refuses. Each sees the input as the one before
        left it. After a change the hooks before it are asked again, so that none can smuggle past another; of this
        second answer only a refusal or a question counts."""
        now = _Round(event, facts, cwd)
        for plan in self._matchers.of(event, subject):
            refused = await self._step(now, plan)
            if refused:
                return Answer(refused=f"{refused} (`{_shown(plan)}`)", contexts=tuple(now.contexts))
            now.passed.append(plan)
        given = now.facts[INPUT] if now.changed else None
        return Answer("", now.question, now.allowed, given, tuple(now.contexts))

    def tell(self, event: HookEvent, subject: str, facts: JsonObject, cwd: str) -> None:
        """Start the hooks of any other event beside the work; they can neither delay nor fail it (HOK-06)."""
        plans = self._matchers.of(event, subject)
        if not plans or self._closed:
            return
        if len(self._beside) >= WAITING:
            self._emit(Notice(level="warning", text=f"The {event} hooks did not run: {WAITING} events wait."))
            return
        task = asyncio.get_running_loop().create_task(self._all(event, plans, facts, cwd))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self, wait_s: float = FINISH_S) -> None:
        """Wait for the hooks beside the work, then end those that still run. Nothing is started afterwards."""
        self._closed = True
        if not self._beside:
            return
        _, late = await asyncio.wait(self._beside, timeout=max(0.0, wait_s))
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
            text = f"Hooks of {len(late)} events did not end within {wait_s:g} s and were ended."
            self._emit(Notice(level="warning", text=text))

    def hurry(self) -> None:
        """End what ``close`` waits for."""
        for task in self._beside if self._closed else ():
            task.cancel()

    async def _step(self, now: _Round, plan: Planned) -> str:
        """Ask one hook and take its answer in. The reason when it, or one before it, refuses."""
        said = await self._one(now.event, plan, now.facts, now.cwd)
        if said.refused:
            return said.refused
        if said.context:
            now.contexts.append(said.context)
        now.question = now.question or said.question
        update = said.update if now.event is HookEvent.PRE_TOOL_USE else None
        new = {**now.facts[INPUT], **update} if update is not None else None
        if new is not None and new != now.facts[INPUT]:
            now.facts, now.changed, now.allowed = {**now.facts, INPUT: new}, True, False
            for guard in now.passed:
                again = await self._one(now.event, guard, now.facts, now.cwd)
                if again.refused:
                    return f"after another hook changed the input: {again.refused}"
                now.question = now.question or again.question
        now.allowed = now.allowed or (said.allowed and not plan.foreign)
        return ""

    async def _all(self, event: HookEvent, plans: tuple[Planned, ...], facts: JsonObject, cwd: str) -> None:
        async with self._slots:
            for plan in plans:
                await self._one(event, plan, facts, cwd)

    async def _one(self, event: HookEvent, plan: Planned, facts: JsonObject, cwd: str) -> Said:
        said = interpret(event, await self._run(event, plan, facts, cwd))
        if said.trouble:
            how = "failed, and counts as a refusal" if said.refused else "failed and was passed over"
            text = f"A {event} hook {how}: `{_shown(plan)}`: {said.trouble}"
            self._emit(Notice(level="warning", text=text))
        return said

    async def _run(self, event: HookEvent, plan: Planned, facts: JsonObject, cwd: str) -> Ended:
        letter = {"session_id": self._session, "cwd": cwd, "hook_event_name": event.value, **facts}
        if plan.foreign:
            # where the files are that the user agreed to; an agent's copy of them may be another one
            cwd = self._hooks.project
            if await asyncio.to_thread(digest_of, self._hooks.projects, cwd) != self._hooks.digest:
                return Ended(None, trouble="what it runs was changed since you agreed to it")
        line = json.dumps(well_formed_json(letter)) + "\n"
        return await run_hook(plan.hook, line.encode(), env=self._env, cwd=cwd)


def _shown(plan: Planned) -> str:
    return redact(plan.hook.command)[:200]
