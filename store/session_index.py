"""``sessions-index.json`` of one project: listing without opening a session; whatever is wrong with it, it is built again (SES-06)."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.session import SessionEntry, SessionMeta
from .atomic import Lock, disk_error, write_atomic
from .session_files import SessionFiles

INDEX = "sessions-index.json"
_SUFFIXES = (".json", ".jsonl")


class _Index(Frozen):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    version: int = 1
    entries: tuple[SessionEntry, ...] = ()


class SessionIndex:
    """The entries of a folder, in the order of the last writes, newest last, whatever the clock says. Blocking."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / INDEX

    def entries(self) -> tuple[SessionEntry, ...]:
        """Every session that has messages, newest first. Missing ones are added, deleted ones dropped, damage is mended.

        An index that cannot be written back is still a list: a read-only state root lists what it has.
        """
        found = self._read()
        mended = self._mended(found)
        if mended != found and (mended or self._folder.is_dir()):
            with contextlib.suppress(OpenDevError), self._lock():
                mended = self._mended(self._read())
                self._write(mended)
        return tuple(reversed(mended))

    def put(self, meta: SessionMeta) -> None:
        """The session was written to: its entry is the newest. Raises ``OpenDevError`` (infra)."""
        entry = entry_of(meta, meta.messages) if meta.messages else self._look(meta.id)
        with self._lock():
            found = self._read()
            rest = [e for e in (self._mended(None) if found is None else found) if e.sessionId != meta.id]
            self._write(rest if entry is None else [*rest, entry])

    def drop(self, id: str) -> None:
        """The session is gone. Raises ``OpenDevError`` (infra)."""
        with self._lock():
            self._write([entry for entry in self._read() or () if entry.sessionId != id])

    def _read(self) -> list[SessionEntry] | None:
        """None when the file is missing, damaged or unreadable."""
        try:
            found = list(_Index.model_validate_json(self._path.read_bytes()).entries)
        except (OSError, ValidationError):
            return None
        return found if len({entry.sessionId for entry in found}) == len(found) else None

    def _write(self, entries: Iterable[SessionEntry]) -> None:
        data = _Index(entries=tuple(entries)).model_dump_json()
        write_atomic(self._path, data.encode(), durable=False)  # it can be built again

    def _mended(self, found: list[SessionEntry] | None) -> list[SessionEntry]:
        """``found`` without sessions that are gone, with those it lacks, by their times; those an index lacks are newer."""
        on_disk = self._ids()
        kept = [entry for entry in found or () if entry.sessionId in on_disk]
        missing = on_disk.difference(entry.sessionId for entry in kept)
        added = [entry for id in sorted(missing) if (entry := self._look(id)) is not None]
        return [*kept, *sorted(added, key=lambda entry: entry.modified)]

    def _ids(self) -> set[str]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - of 10,000 sessions, names alone, at a third of the time
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise disk_error("read", self._folder, error) from error
        return {
            name.rpartition(".")[0]
            for name in names
            if name.endswith(_SUFFIXES) and name != INDEX and not name.startswith(".")
        }

    def _look(self, id: str) -> SessionEntry | None:
        """The entry of a session by its files; None when it is empty, or another file of the folder."""
        files = SessionFiles(self._folder, id)
        meta = files.meta() or SessionMeta(id=id)
        try:
            count = meta.messages or len(files.read())
        except OpenDevError:
            return None
        return entry_of(meta, count) if count else None

    def _lock(self) -> Lock:
        return Lock(self._path.with_suffix(".lock"))


def entry_of(meta: SessionMeta, count: int) -> SessionEntry:
    """The line of the index for a session of ``count`` messages."""
    return SessionEntry(
        sessionId=meta.id,
        title=meta.title,
        messageCount=count,
        created=meta.created_at,
        modified=meta.updated_at,
    )
