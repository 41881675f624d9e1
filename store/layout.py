"""Where everything lives under the state root ``OPENDEV_HOME`` (default ``~/.opendev``, CFG-07)."""

import os
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError


class Layout:
    """Paths of the state root; folders are made 0700 when first asked for (else ``OpenDevError``, infra)."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def project(self, path: Path) -> Path:
        """State of one project: its absolute path with the separators replaced by hyphens (CFG-07)."""
        return self._folder(self.home / "projects" / str(path.resolve()).replace("/", "-"))

    def reminders(self, project: Path) -> tuple[Path, Path]:
        """Folders of the user's own reminder texts: for all projects, and over them for this one (ERR-05). They need not exist."""
        own = self.home / "projects" / str(project.resolve()).replace("/", "-") / "reminders"
        return self.home / "reminders", own

    def runs(self) -> Path:
        """The folder of all runs."""
        return self._folder(self.home / "runs")

    def run(self, run_id: str) -> Path:
        """Journal, logs and report of one run."""
        return self._folder(self.home / "runs" / run_id)

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
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unwritable(error) from error
        return path

    def _unwritable(self, error: OSError) -> OpenDevError:
        return OpenDevError(
            ErrorKind.INFRA,
            f"The state folder {self.home} cannot be written: {error.strerror or error}.",
            "Free disk space, or set OPENDEV_HOME to a folder you can write to.",
        )
