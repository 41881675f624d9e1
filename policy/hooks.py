"""Which hooks an event concerns, and what their answers mean; nothing is run here (HOK-04, HOK-05, HOK-07, C-11)."""

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from ..core.hooks import BLOCKING, Hook, HookEvent, HookSet
from ..core.model import JsonObject
from .redact import redact
from .verdict import Verdict, allow, ask, join

BLOCK = 2  # the exit code that refuses
_UNUSABLE = (126, 127)  # what a shell says of a command that cannot be run, or is not there
_TEXT = 20_000  # characters of what a hook adds for the agent
_REASON = 1_000
_ANSWERABLE = frozenset({"level", "rules"})  # questions that a hook of the user's may answer in their place


class Planned(NamedTuple):
    """A hook to run. ``foreign``: it came with the project, so that it may narrow and never widen."""

    hook: Hook
    foreign: bool


class Ended(NamedTuple):
    """How a hook's process ended. ``code`` None = it did not end by itself, or never began; ``trouble`` says why. ``cut``: its
    output was longer than what is kept."""

    code: int | None
    out: str = ""
    err: str = ""
    trouble: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What one hook said. ``refused`` and ``question`` are reasons, empty = no; ``trouble`` = it failed, in words for a person."""

    refused: str = ""
    question: str = ""
    allowed: bool = False
    update: JsonObject | None = None
    context: str = ""
    trouble: str = ""


class Matchers:
    """The matchers of a run, compiled once."""

    def __init__(self, hooks: HookSet) -> None:
        self._groups = {
            event: [
                (re.compile(group.matcher), [Planned(hook, foreign) for hook in group.hooks])
                for mine, foreign in ((hooks.own, False), (hooks.projects, True))
                for group in mine.of(event)
            ]
            for event in HookEvent
        }

    def of(self, event: HookEvent, subject: str) -> tuple[Planned, ...]:
        """The hooks of ``event`` for a tool or an agent type, the user's first (HOK-02)."""
        return tuple(hook for found, hooks in self._groups[event] if found.search(subject) for hook in hooks)


def interpret(event: HookEvent, ended: Ended) -> Said:
    """What a hook's end means.

    Exit code 2 refuses, 0 lets the answer on standard output count, any other is a failure that is told and passed over
    (HOK-09). A hook that gave no answer at all (missing, ended by a signal or its time-out, half an answer) refuses at a
    blocking event: a safety layer that fails is a denial. At the other events nothing is decided.
    """
    if event not in BLOCKING:
        return Said(trouble=_trouble(ended) if ended.code not in (0, BLOCK) else "")
    if ended.code is None or ended.code < 0 or ended.code in _UNUSABLE:
        trouble = _trouble(ended)
        return Said(refused=f"it gave no answer ({trouble})", trouble=trouble)
    if ended.code not in (0, BLOCK):
        return Said(trouble=_trouble(ended))
    answer = _answer(ended)
    reason = _text(answer, "reason", "permissionDecisionReason", "stopReason") if answer else ""
    if ended.code == BLOCK:
        return Said(refused=_short(reason or ended.err.strip() or "Blocked by hook"))
    if answer is None:
        return Said(
            refused="its answer is no JSON, or too long", trouble="its answer is no JSON, or too long"
        )
    return _meaning(answer, _short(reason))


def answered(verdict: Verdict) -> Verdict:
    """One layer's verdict on a call that a hook of the user's allowed: the hook answers what the approval level or a rule of
    the user's asks. A denial stays, and so does what must be confirmed at every level (C-11)."""
    if verdict.decision == "ask" and verdict.layer in _ANSWERABLE and not verdict.edit:
        return allow("hook", f"A hook of the user allowed it. {verdict.reason}")
    return verdict


def questioned(verdict: Verdict, question: str) -> Verdict:
    """The gate's verdict with the question of a hook, empty = none, on top."""
    return join([verdict, ask("hook", question)]) if question else verdict


def _meaning(answer: JsonObject, reason: str) -> Said:
    words = [str(word) for name in ("permissionDecision", "decision") if (word := answer.get(name))]
    if "deny" in words or "block" in words or answer.get("continue") is False:
        return Said(refused=reason or "Blocked by hook")
    update = answer.get("updatedInput", answer.get("tool_input"))
    if update is not None and not isinstance(update, dict):
        return Said(refused="its new input is no JSON object", trouble="its new input is no JSON object")
    allowed = bool(words) and all(word in ("allow", "approve") for word in words)
    return Said(
        question="" if allowed or not words else reason or "A hook wants a person to decide.",
        allowed=allowed,
        update=cast("JsonObject | None", update),
        context=redact(_text(answer, "additionalContext"))[:_TEXT],
    )


def _answer(ended: Ended) -> JsonObject | None:
    """The JSON object on standard output, with what other tools nest in ``hookSpecificOutput`` on top; empty for plain words;
    None when it began as an object and is none."""
    text = ended.out.strip()
    if not text.startswith("{"):
        return {}
    try:
        value: Any = None if ended.cut else json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    answer = cast("JsonObject", value)
    nested = answer.get("hookSpecificOutput")
    return {**answer, **cast("JsonObject", nested)} if isinstance(nested, dict) else answer


def _text(answer: JsonObject, *names: str) -> str:
    return next(
        (text.strip() for name in names if isinstance(text := answer.get(name), str) and text.strip()), ""
    )


def _short(reason: str) -> str:
    return redact(reason)[:_REASON]


def _trouble(ended: Ended) -> str:
    if ended.trouble:
        return ended.trouble
    how = f"signal {-ended.code}" if ended.code is not None and ended.code < 0 else f"exit code {ended.code}"
    said = redact(ended.err.strip())[:500]
    return f"{how}; {said}" if said else how
