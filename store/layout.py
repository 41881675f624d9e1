"""Where everything lives under the state root ``OPENDEV_HOME`` (default ``~/.opendev``, CFG-07)."""

import hashlib
import os
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from .atomic import make_private

_NAME_BYTES = 200  # of a folder's name; file systems take 255


class Layout:
    """Paths of the state root; folders are made 0700 when first asked for (else ``OpenDevError``, infra)."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def project(self, path: Path) -> Path:
        """State of one project (CFG-07)."""
        return self._folder(self.project_path(path))

    def project_path(self, path: Path) -> Path:
        """The same without making it: the absolute path with the separators replaced by hyphens; its end by a digest where the
        name would be too long for a file system."""
        name = str(path.resolve()).replace("/", "-")
        if len(os.fsencode(name)) > _NAME_BYTES:
            digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
            name = f"{os.fsencode(name)[: _NAME_BYTES - 17].decode(errors='ignore')}-{digest}"
        return self.home / "projects" / name

    def projects(self) -> tuple[Path, ...]:
        """The folders of all projects there are, by name."""
        try:
            return tuple(sorted(path for path in (self.home / "projects").iterdir() if path.is_dir()))
        except OSError:
            return ()

    def reminders(self, project: Path) -> tuple[Path, Path]:
        """Folders of the user's own reminder texts: for all projects, and over them for this one (ERR-05). They need not exist."""
        return self.home / "reminders", self.project_path(project) / "reminders"

    def runs(self) -> Path:
        """The folder of all runs."""
        return self._folder(self.home / "runs")

    def run(self, run_id: str) -> Path:
        """Journal, logs and report of one run."""
        return self._folder(self.run_path(run_id))

    def run_path(self, run_id: str) -> Path:
        """The same without making it."""
        return self.home / "runs" / run_id

    def ledger(self, run_id: str) -> Path:
        """The journal of a run's model calls, tokens and dollars (it need not exist)."""
        return self.run_path(run_id) / "ledger.jsonl"

    def transcripts(self, run_id: str) -> Path:
        """Records and transcripts of a run's agents; the foreground agent's are its session's (it need not exist)."""
        return self.home / "transcripts" / run_id

    def scratch(self, agent_id: str) -> Path:
        """Files an agent keeps for itself (it need not exist)."""
        return self.home / "scratch" / agent_id

    def cache(self) -> Path:
        """What can be fetched or built again: one catalogue file a provider, repository maps (it need not exist)."""
        return self.home / "cache"

    def settings(self) -> Path:
        """The user's settings file (it need not exist)."""
        return self.home / "settings.json"

    def check_writable(self) -> None:
        """Raise ``OpenDevError`` (infra) when state cannot be written, before any work starts."""
        probe = self._folder(self.home) / f".probe-{os.getpid()}"
        try:
            probe.write_bytes(b"x" * 4096)
            probe.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def _folder(self, path: Path) -> Path:
        try:
            make_private(path)
            path.mkdir(exist_ok=True)  # a file that is in its place is told
        except OSError as error:
            raise self._unwritable(error) from error
        return path

    def _unwritable(self, error: OSError) -> OpenDevError:
        return OpenDevError(
            ErrorKind.INFRA,
            f"The state folder {self.home} cannot be written: {error.strerror or error}.",
            "Free disk space, or set OPENDEV_HOME to a folder you can write to.",
        )
