"""The sessions of one project: start, list, resume, hold, delete (SES-01..11). Records and transcripts lie in the project's folder."""

import contextlib
import re
import secrets
import shutil
import string
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.approval import Mode
from ..core.errors import ErrorKind, OpenDevError
from ..core.session import SCHEMA, SessionEntry, SessionMeta, Spent
from .atomic import Lock
from .layout import Layout
from .session_files import SessionFiles, newer
from .session_index import SessionIndex

_ALPHABET = string.ascii_letters + string.digits  # 62 characters (SES-02)
_LENGTH = 8
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class OpenSession:
    """A session that this process holds. ``files`` is written to; ``fresh`` = it has no messages yet.

    ``carried`` is what runs cost whose ledger is gone or was another implementation's.
    """

    id: str
    files: SessionFiles
    fresh: bool
    carried: Spent = field(default_factory=Spent)

    def meta(self) -> SessionMeta:
        """The record as it is now."""
        return self.files.meta() or SessionMeta(id=self.id)

    def mode(self) -> Mode:
        """The mode the session was in when its last run ended."""
        mode = self.meta().mode
        return Mode(mode) if mode in tuple(Mode) else Mode.NORMAL

    def save_cost(self, total: Spent) -> None:
        """Write what the session has cost by its ledger (MOD-07). Raises ``OpenDevError`` (infra)."""
        whole = (self.carried + total).model_dump()

        def change(meta: SessionMeta | None) -> SessionMeta:
            return (meta or SessionMeta(id=self.id)).with_metadata(cost_tracking=whole)

        if not self.fresh or self.files.record.exists():
            self.files.update(change)


class SessionStore:
    """Blocking; call it in a thread. Raises ``OpenDevError``: infra when the disk fails, usage for an id there is not."""

    def __init__(self, layout: Layout, project: Path, folder: Path | None = None) -> None:
        """``folder``: where the sessions lie when ``project`` is not known."""
        self._layout, self._project = layout, project
        self.folder = folder or layout.project_path(project)
        self.index = SessionIndex(self.folder)

    def files(self, id: str) -> SessionFiles:
        """The files of a session; what is written goes into the index."""
        return SessionFiles(self.folder, id, self.index.put)

    def entries(self) -> tuple[SessionEntry, ...]:
        """All sessions of the project, newest first."""
        return self.index.entries()

    def newest(self) -> str:
        """The session that was written to last (SES-08). Raises ``OpenDevError`` (usage) when there is none."""
        here = str(self._project)
        for entry in self.entries():
            folder = (self.files(entry.sessionId).meta() or SessionMeta(id="")).working_directory
            if folder in (here, ""):  # two projects may share a folder: /a-b/c and /a/b-c
                return entry.sessionId
        raise OpenDevError(
            ErrorKind.USAGE,
            f"There is no session of {here} to continue.",
            'Start one: opendev -p "…"; `opendev sessions list --all` shows those of other projects.',
        )

    def find(self, id: str) -> SessionFiles:
        """The files of a session that exists. Raises ``OpenDevError`` (usage) otherwise."""
        if _NAME.fullmatch(id):
            files = self.files(id)
            if files.transcript.exists() or files.record.exists():
                return files
        raise OpenDevError(
            ErrorKind.USAGE,
            f"There is no session `{id}` of {self._project}.",
            "`opendev sessions list` shows the sessions of this project, with --all those of every project.",
        )

    @contextlib.contextmanager
    def start(self) -> Generator[OpenSession]:
        """A new session, held until the block is left; nothing is written until it has a message."""
        with contextlib.ExitStack() as stack:
            id = self._new_id()
            stack.enter_context(self._hold(id))
            yield OpenSession(id, self.files(id), fresh=True)

    @contextlib.contextmanager
    def resume(self, id: str = "") -> Generator[OpenSession]:
        """A session that exists (empty: the newest), held until the block is left.

        Raises:
            OpenDevError: usage when there is none or another process holds it; config when a newer version wrote it.
        """
        files = self.find(id or self.newest())
        with self._hold(files.id):
            meta = files.meta()
            if meta is not None and meta.schema_version > SCHEMA:
                raise newer(files.id)
            yield OpenSession(files.id, files, fresh=False, carried=self._carried(meta, files))

    def delete(self, id: str) -> None:
        """Remove a session with its sub-agents' and everything kept for it. Raises ``OpenDevError`` (usage) when it is in use."""
        files = self.find(id)
        with self._hold(files.id):
            files.delete()
            layout, children = self._layout, self._layout.transcripts(files.id)
            agents = (f"main-{files.id}", *{path.stem for path in children.glob("*.json*")})
            for folder in (layout.run_path(files.id), children, *map(layout.scratch, agents)):
                shutil.rmtree(folder, ignore_errors=True)
            self.index.drop(files.id)

    def _carried(self, meta: SessionMeta | None, files: SessionFiles) -> Spent:
        """What the record knows and no ledger does: once the ledger is gone, the record's totals are carried on."""
        if meta is None:
            return Spent()
        if "cost_carried" in meta.metadata:
            return Spent.read(meta.metadata["cost_carried"])
        if self._layout.ledger(files.id).exists() or meta.spent == Spent():
            return Spent()
        carried = meta.spent
        files.update(lambda now: (now or meta).with_metadata(cost_carried=carried.model_dump()))
        return carried

    @contextlib.contextmanager
    def _hold(self, id: str) -> Generator[None]:
        lock = Lock(self.folder / f"{id}.held", 0.0)
        try:
            lock.__enter__()
        except OpenDevError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            raise OpenDevError(
                ErrorKind.USAGE,
                f"Session {id} is in use by another process.",
                "Wait for it to end, or start a new session without --continue or --resume.",
            ) from error
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _new_id(self) -> str:
        while True:
            id = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
            files = self.files(id)
            places = (self._layout.run_path(id), files.record, files.transcript)
            if not any(place.exists() for place in places):
                return id


def every_store(layout: Layout) -> tuple[SessionStore, ...]:
    """A store for each project that has state."""
    return tuple(SessionStore(layout, folder, folder) for folder in layout.projects())


def read_meta(path: Path) -> SessionMeta | None:
    """The record in a file; None when there is none or it cannot be read: the transcript stands by itself. Blocking."""
    return SessionFiles(path.parent, path.stem).meta()
