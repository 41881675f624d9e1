"""Hooks as data: the ten events, and the user's and a project's commands for them, as they stand in settings files (HOK-01, HOK-02)."""

import re
from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator

from .model import Frozen


class HookEvent(StrEnum):
    """When a hook runs."""

    SESSION_START = "SessionStart"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    STOP = "Stop"
    PRE_COMPACT = "PreCompact"
    SESSION_END = "SessionEnd"


# These are waited for, and may refuse; all others run beside the work and change nothing (HOK-04, HOK-06).
BLOCKING = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT, HookEvent.SUBAGENT_START})


class Hook(Frozen):
    """One command, with its time-out in seconds (1 to 600, whatever was asked for)."""

    command: str = Field(min_length=1)
    type: Literal["command"] = "command"
    timeout: float = Field(default=60.0, allow_inf_nan=False)

    @field_validator("timeout")
    @classmethod
    def _clamped(cls, value: float) -> float:
        return min(max(value, 1.0), 600.0)


class HookGroup(Frozen):
    """Hooks of the tools, or agent types, in whose name ``matcher``, a regular expression, is found; empty = all (HOK-07)."""

    matcher: str = ""
    hooks: tuple[Hook, ...]

    @field_validator("matcher")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile("" if value == "*" else value)
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        return "" if value == "*" else value


class Hooks(Frozen):
    """Groups by event; names and shape as in other tools' settings files."""

    SessionStart: tuple[HookGroup, ...] = ()
    UserPromptSubmit: tuple[HookGroup, ...] = ()
    PreToolUse: tuple[HookGroup, ...] = ()
    PostToolUse: tuple[HookGroup, ...] = ()
    PostToolUseFailure: tuple[HookGroup, ...] = ()
    SubagentStart: tuple[HookGroup, ...] = ()
    SubagentStop: tuple[HookGroup, ...] = ()
    Stop: tuple[HookGroup, ...] = ()
    PreCompact: tuple[HookGroup, ...] = ()
    SessionEnd: tuple[HookGroup, ...] = ()

    def of(self, event: HookEvent) -> tuple[HookGroup, ...]:
        """The groups of one event, in order."""
        return getattr(self, event.value)

    @property
    def commands(self) -> tuple[str, ...]:
        """Every command, in the order of events."""
        return tuple(hook.command for event in HookEvent for group in self.of(event) for hook in group.hooks)


class HookSet(Frozen):
    """The hooks of a run: the user's own, then the project's. ``digest`` is of what the user agreed to; a project hook whose
    content is another one by now does not run. ``project``: absolute path of its folder."""

    own: Hooks = Hooks()
    projects: Hooks = Hooks()
    project: str = ""
    digest: str = ""
