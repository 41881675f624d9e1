"""Sessions: clear, resume, export, cost, compact, undo, exit (SES-08, SES-09, REPL-04, C-24)."""

import asyncio
from pathlib import Path
from typing import ClassVar

from ....core.errors import ErrorKind, OpenDevError
from ....core.ops import COMPACT
from ....core.session import SessionEntry, Spent
from ....store.atomic import write_atomic
from ....ui.repl.ports import Command, CommandResult
from ....ui.session_export import Format, export
from .. import undoing
from ..base import Handler, Run, choose, need, run, split, told
from ..recall import recalled

_LISTED = 15
_FORMATS: dict[str, Format] = {"md": "md", "json": "json", "html": "html"}


class SessionHandler(Handler):
    """The conversation itself."""

    commands: ClassVar = (
        Command(name="clear", usage="", summary="save this session and begin a new one"),
        Command(name="compact", usage="", summary="sum up what was said so far, to make room"),
        Command(name="cost", usage="", summary="what this session has cost, over all its runs"),
        Command(name="exit", usage="", summary="save and leave; what runs is ended"),
        Command(
            name="export",
            usage="[md|json|html] [FILE]",
            summary="write this session to a file, without secrets",
        ),
        Command(name="resume", usage="[ID]", summary="go on with another session of this project"),
        Command(name="sessions", usage="[list|delete ID]", summary="the sessions of this project"),
        *undoing.COMMANDS,
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        name, rest = split(args)
        steps = undoing.Undoing(self.repl)
        ways: dict[str, Run] = {
            "clear": self._clear,
            "compact": self._compact,
            "cost": self._cost,
            "diff": steps.diff,
            "exit": self._exit,
            "export": self._export,
            "redo": steps.redo,
            "resume": self._resume,
            "sessions": self._sessions,
            "undo": steps.undo,
        }
        return await run(ways[name], rest)

    async def _clear(self, _rest: str) -> CommandResult:
        before = self.repl.sessions.held
        ended, kept = self._ended(), before.files.transcript.exists()
        await self.repl.switch(None)
        saved = f"The session {before.id} is saved: /resume {before.id}. " if kept else ""
        return told(f"{ended}{saved}This is a new session.", clear=True)

    def _compact(self, _rest: str) -> CommandResult:
        if not self.repl.sessions.held.files.history():
            return told("There is nothing to sum up yet.")
        return CommandResult(success=True, prompt=COMPACT)

    async def _cost(self, _rest: str) -> CommandResult:
        room = self.repl.room
        if not self.repl.turns.busy:
            await room.settle()
        usage, calls = room.figures.usage, room.figures.calls
        return told(
            f"Session {room.held.id}: ${usage.cost_usd:.4f} in {calls} model calls.\n"
            f"{usage.input:,} tokens in ({usage.cached:,} of them cached), {usage.output:,} out.",
            cost_usd=usage.cost_usd,
            model_calls=calls,
        )

    def _exit(self, _rest: str) -> CommandResult:
        return CommandResult(success=True, message=self._ended().strip(), leave=True)

    def _ended(self) -> str:
        """What leaving the session ends."""
        running = len(self.repl.room.figures.running)
        return f"{running} background task{'s are' if running > 1 else ' is'} ended. " if running else ""

    async def _export(self, rest: str) -> CommandResult:
        return await asyncio.to_thread(self._write, rest, await self.repl.room.settle())

    def _write(self, rest: str, spent: Spent) -> CommandResult:
        first, name = split(rest)
        if first and first not in _FORMATS:
            first, name = Path(rest).suffix.lstrip("."), rest
        kind = _FORMATS.get(first or "md")
        if kind is None:
            raise OpenDevError(ErrorKind.USAGE, f"{rest} names no format.", f"One of: {', '.join(_FORMATS)}.")
        held, project = self.repl.sessions.held, self.repl.config.project
        target = project.path / Path(name or f"opendev-session-{held.id}.{kind}").expanduser()
        if target.exists():
            raise OpenDevError(ErrorKind.USAGE, f"{target} exists and is left alone.", "Name another file.")
        lines = held.files.read()
        if not lines:
            return told("There is nothing to export yet.")
        meta = held.meta().with_metadata(cost_tracking=spent.model_dump())
        text = export(meta, lines, kind, project.environment.secret_values())
        write_atomic(target, text.encode("utf-8", "replace"))
        return told(f"Written to {target}.", file=str(target))

    async def _resume(self, rest: str) -> CommandResult:
        if not rest:
            return await run(self._list, "")
        id = self._meant(rest)
        if id == self.repl.sessions.held.id:
            return told("That is the session you are in.")
        await self.repl.switch(id)
        return told(await asyncio.to_thread(recalled, self.repl.sessions.held), clear=True)

    async def _sessions(self, rest: str) -> CommandResult:
        return await choose(rest, {"list": self._list, "delete": self._delete}, "list")

    def _list(self, _rest: str) -> CommandResult:
        entries = self.repl.sessions.store.entries()
        if not entries:
            return told("No sessions are kept of this project yet.")
        rows = [self._row(entry) for entry in entries[:_LISTED]]
        more = (
            f"\n… and {len(entries) - _LISTED} more: opendev sessions list" if len(entries) > _LISTED else ""
        )
        return told("\n".join(rows) + more + "\nTo go on with one: /resume ID")

    def _delete(self, rest: str) -> CommandResult:
        id = self._meant(need(rest, "which session: /sessions delete ID"))
        if id == self.repl.sessions.held.id:
            raise OpenDevError(ErrorKind.USAGE, "You are in that session.", "/clear begins a new one.")
        self.repl.sessions.store.delete(id)
        return told(f"Deleted {id}.")

    def _row(self, entry: SessionEntry) -> str:
        mark = "*" if entry.sessionId == self.repl.sessions.held.id else " "
        when = entry.modified[:16].replace("T", " ")
        return f"{mark} {entry.sessionId:10}{when:18}{entry.messageCount:>5}  {entry.title}"

    def _meant(self, given: str) -> str:
        """The session, by its id or the beginning of it that no other has."""
        found = [e.sessionId for e in self.repl.sessions.store.entries() if e.sessionId.startswith(given)]
        return found[0] if len(found) == 1 else given
