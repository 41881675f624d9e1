"""The two files of one session, record and transcript, under one lock: append only, temp + rename, torn tails kept aside (SES-01, SES-03, SES-05)."""

import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ..core.chat import Message, SystemMessage
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..core.session import SCHEMA, SessionMeta
from .atomic import Lock, append_bytes, disk_error, write_atomic
from .records import TranscriptLine, messages_of, objects_in, read_lines

LOCK_S = 10.0  # K35
_BLOCK = 65_536
_TORN_LINES = 20  # looked at from the end


class SessionFiles:
    """``<id>.json``, ``<id>.jsonl`` and ``<id>.lock`` in ``folder``. Blocking; raises ``OpenDevError`` (infra) when the disk fails.

    ``on_meta`` is told each record that was written (the index of a project). Every message is written alone, so that
    several processes may add to one session.
    """

    def __init__(
        self,
        folder: Path,
        id: str,
        on_meta: Callable[[SessionMeta], None] | None = None,
        *,
        lock_s: float = LOCK_S,
    ) -> None:
        self.id = id
        self.record = folder / f"{id}.json"
        self.transcript = folder / f"{id}.jsonl"
        self._on_meta = on_meta
        self._lock_s = lock_s
        self._checked = False

    def append(self, lines: Sequence[str]) -> None:
        """Add whole lines, each by one write; the last waits for the disk. Before the first, a torn tail is set aside.

        When the disk refuses one, none of them is in the file.
        """
        with self._lock:
            try:
                fd = os.open(self.transcript, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    self._end_cleanly(fd)
                    self._write(fd, lines)
                finally:
                    os.close(fd)
            except OSError as error:
                raise disk_error("append to", self.transcript, error) from error

    def read(self) -> tuple[TranscriptLine, ...]:
        """Every message that can be read, oldest first: of the transcript, else those inside an old record (SES-10)."""
        try:
            with self.transcript.open("rb") as file:
                return tuple(read_lines(file))
        except FileNotFoundError:
            rows = _inline(_raw(self.record))
        except OSError as error:
            raise disk_error("read", self.transcript, error) from error
        return tuple(line for row in rows for line in messages_of(row))

    def history(self) -> tuple[Message, ...]:
        """The conversation without system prompts, as ``AgentTask.history`` takes it."""
        return tuple(line.message for line in self.read() if not isinstance(line.message, SystemMessage))

    def meta(self) -> SessionMeta | None:
        """The record; None when there is none or it cannot be read: the transcript stands by itself."""
        raw = _raw(self.record)
        return None if raw is None else lenient_meta(raw, self.id)

    def update(self, change: Callable[[SessionMeta | None], SessionMeta]) -> SessionMeta:
        """Read the record, change it and write it back, all under the lock; keys of other versions stay.

        Raises:
            OpenDevError: infra; failed when a newer version of OpenDev wrote it: such a session is only read (D09).
        """
        with self._lock:
            raw = _raw(self.record)
            before = None if raw is None else lenient_meta(raw, self.id)
            if before is not None and before.schema_version > SCHEMA:
                raise newer(self.id)
            if raw is None or "schema" not in raw:
                self._bring_over(raw)
            after = change(before)
            write_atomic(self.record, (after.to_json() + "\n").encode())
        if self._on_meta is not None:
            self._on_meta(after)
        return after

    def delete(self) -> None:
        """Remove what belongs to the session, backups too."""
        try:
            for path in self.record.parent.glob(f"{self.id}.*"):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error("delete", self.record, error) from error

    def _write(self, fd: int, lines: Sequence[str]) -> None:
        size = os.fstat(fd).st_size
        try:
            for number, line in enumerate(lines, 1):
                append_bytes(fd, line.encode() + b"\n", durable=number == len(lines))
        except OSError:
            os.ftruncate(fd, size)  # under the lock: nobody else has appended
            raise

    @cached_property
    def _lock(self) -> Lock:
        return Lock(self.record.with_suffix(".lock"), self._lock_s)

    def _bring_over(self, raw: JsonObject | None) -> None:
        """Keep the original of an old or unreadable record as ``.json.bak``; its inline messages become the transcript (SES-10)."""
        if not self.record.exists():
            return
        backup = self.record.with_name(f"{self.record.name}.bak")
        try:
            original = self.record.read_bytes()
        except OSError as error:  # it may be whole: nothing is written over what cannot be read
            raise disk_error("read", self.record, error) from error
        if not backup.exists():
            write_atomic(backup, original)
        rows = _inline(raw)
        if rows and not self.transcript.exists():
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            write_atomic(self.transcript, lines.encode())

    def _end_cleanly(self, fd: int) -> None:
        """Cut what a crash left of a record and keep it in ``.jsonl.bak``; end a whole record without a line break by one."""
        size = os.fstat(fd).st_size
        if not size or (self._checked and os.pread(fd, 1, size - 1) == b"\n"):
            self._checked = True
            return
        keep = _whole_until(fd, size)
        if keep < size and (torn := os.pread(fd, size - keep, keep)).strip(b"\0\r\n \t"):
            _keep_aside(self.transcript.with_name(f"{self.transcript.name}.bak"), torn)
        if keep < size:
            os.ftruncate(fd, keep)
        if keep and os.pread(fd, 1, keep - 1) != b"\n":
            append_bytes(fd, b"\n", durable=False)
        self._checked = True


def lenient_meta(raw: JsonObject, id: str) -> SessionMeta:
    """A record of any version: a field of another type gets its default, and every key stays (D09)."""
    plain = {
        key: value for key, value in raw.items() if value is not None or key not in SessionMeta.model_fields
    }
    plain["id"] = id  # the file's name is the truth
    for _ in range(len(SessionMeta.model_fields)):
        try:
            return SessionMeta.model_validate(
                {key: value for key, value in plain.items() if key != "messages"}
            )
        except ValidationError as error:
            for wrong in error.errors():
                plain.pop(str(wrong["loc"][0]), None)
    return SessionMeta(id=id)


def newer(id: str) -> OpenDevError:
    """The refusal to write to a session of a newer version."""
    return OpenDevError(
        ErrorKind.CONFIG,
        f"Session {id} was written by a newer version of OpenDev, so this one only reads it.",
        f"Update OpenDev, or read it with `opendev sessions show {id}`.",
    )


def _raw(path: Path) -> JsonObject | None:
    try:
        value: Any = json.loads(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _inline(raw: JsonObject | None) -> list[JsonObject]:
    rows: object = (raw or {}).get("messages")
    found = cast("list[object]", rows) if isinstance(rows, list) else []
    return [cast("JsonObject", row) for row in found if isinstance(row, dict)]


def _whole_until(fd: int, size: int) -> int:
    """Where the last record of the file ends, which may go over several lines; what follows is torn."""
    keep, tail = size, b""
    for _ in range(_TORN_LINES):
        if not keep:
            break
        start, line = _last_line(fd, keep)
        if _objects(line):
            break
        tail = line + tail
        if _objects(tail):
            return size
        keep = start
    return keep


def _objects(line: bytes) -> bool:
    return bool(objects_in(line.replace(b"\0", b"").decode("utf-8", "replace").strip())[0])


def _last_line(fd: int, end: int) -> tuple[int, bytes]:
    """Where the last line before ``end`` starts, and its bytes with the line break."""
    start, found = end, b""
    while start > 0:
        block = os.pread(fd, min(_BLOCK, start), start - min(_BLOCK, start))
        start -= len(block)
        found = block + found
        place = found.rfind(b"\n", 0, len(found) - 1)
        if place >= 0:
            return start + place + 1, found[place + 1 :]
    return 0, found


def _keep_aside(path: Path, torn: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        append_bytes(fd, torn.rstrip(b"\n") + b"\n", durable=False)
    finally:
        os.close(fd)
