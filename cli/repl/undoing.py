"""Undo, redo and diff of a conversation's steps, between two turns (UND-07, C-24)."""

import asyncio
from typing import Literal

from ...agents.undo import Undo
from ...core.errors import ErrorKind, OpenDevError
from ...ui.repl.ports import Command, CommandResult
from ..undo import lines, open_undo
from .base import Repl, told

COMMANDS = (
    Command(
        name="diff", usage="[STEP]", summary="what changed since the last step began, your own edits too"
    ),
    Command(name="redo", usage="[STEP]", summary="bring back what /undo reversed"),
    Command(name="undo", usage="[list|STEP]", summary="reverse the last step that changed something"),
)


class Undoing:
    """A step is a turn that changed something; what the user changed since is never overwritten."""

    def __init__(self, repl: Repl) -> None:
        self._repl = repl

    async def undo(self, rest: str) -> CommandResult:
        """Reverse the last step, or a named one with all later ones; the diff stands in front of what was done."""
        return await self._turn_back("undo", rest)

    async def redo(self, rest: str) -> CommandResult:
        """Bring back what the last undo reversed."""
        return await self._turn_back("redo", rest)

    async def diff(self, rest: str) -> CommandResult:
        """What is different from before a step."""
        changed = await asyncio.to_thread(self._open().changed, rest)
        return told(changed or "Nothing has changed.")

    async def _turn_back(self, kind: Literal["undo", "redo"], rest: str) -> CommandResult:
        undo = self._open()
        if rest == "list":
            steps = await asyncio.to_thread(undo.steps)
            return told("\n".join(lines(steps)) or "No step has changed anything yet.")
        return await asyncio.to_thread(_carry_out, undo, kind, rest)

    def _open(self) -> Undo:
        """Raises ``OpenDevError`` (usage) while the agent works: its files are in its hands."""
        if self._repl.turns.busy:
            raise OpenDevError(
                ErrorKind.USAGE, "The agent works.", "Interrupt it first, or wait until it is done."
            )
        return open_undo(self._repl.config.project, self._repl.sessions.held.id)


def _carry_out(undo: Undo, kind: Literal["undo", "redo"], to: str) -> CommandResult:
    prepared = undo.prepare(kind, to)
    diff = undo.diff(prepared)
    done = undo.carry_out(prepared)
    return told("\n".join((diff.rstrip(), done)).strip(), files=list(prepared.files))
