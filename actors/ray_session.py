"""The folder of one local Ray session: short, private, ours; removed at the end, swept when its owner is gone for a day."""

import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id

_MAX_ROOT = 45  # a socket's path may have 107 characters (103 on macOS), and Ray appends about 60
_DAY_S = 86_400.0


class Token:
    """What lets a process into Ray. One for the life of this process: Ray's C++ side reads it only once."""

    def __init__(self) -> None:
        self.text = secrets.token_hex(32)
        self._shown = False

    def show(self) -> str:
        """The token, for good."""
        self._shown = True
        return self.text

    def adopt(self, text: str) -> bool:
        """Take that of another Ray; False when this process has shown a different one already."""
        if not self._shown:
            self.text = text
        return self.text == text


TOKEN = Token()


@dataclass(frozen=True, slots=True)
class SessionDir:
    """Its folders and files: Ray's temp folder, the empty folder Ray starts in, and the 0600 token."""

    path: Path

    @property
    def cwd(self) -> Path:
        """Empty and 0700: Ray puts the driver's folder first on every worker's ``sys.path``."""
        return self.path / "e"

    @property
    def token(self) -> Path:
        """Who holds it may run code as the user."""
        return self.path / "token"

    def remove(self) -> None:
        """Delete the whole folder; Ray's last writes may race, so what cannot go now is left for the sweep."""
        shutil.rmtree(self.path, ignore_errors=True)


def base_dir(temp: Path | None = None) -> Path:
    """The user's folder for all sessions, ``<tmp>/od-<uid>``, 0700. Raises ``OpenDevError`` when somebody else owns it."""
    root = temp or Path(tempfile.gettempdir())
    if len(str(root)) > _MAX_ROOT - 15 and temp is None:
        root = Path(os.sep) / "tmp"
    base = root / f"od-{os.getuid()}"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = base.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise OpenDevError(
            ErrorKind.INFRA, f"{base} belongs to somebody else or is no folder.", "Remove it, or set TMPDIR."
        )
    base.chmod(0o700)
    return base


def create(base: Path) -> SessionDir:
    """A fresh session folder below ``base``, with its token and its owner's identity."""
    session = SessionDir(base / new_id(6))
    session.path.mkdir(mode=0o700)
    session.cwd.mkdir(mode=0o700)
    descriptor = os.open(session.token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(TOKEN.show())
    (session.path / "owner").write_text(f"{os.getpid()} {started(os.getpid())}")
    return session


def sweep(base: Path, now: float) -> tuple[Path, ...]:
    """Remove the folders older than a day whose owner is dead; what was removed. ``now``: seconds since the epoch."""
    gone: list[Path] = []
    for path in base.iterdir():
        try:
            old = now - path.stat().st_mtime > _DAY_S
        except OSError:
            continue
        if old and path.is_dir() and not path.is_symlink() and not _owned(path):
            SessionDir(path).remove()
            gone.append(path)
    return tuple(gone)


def started(pid: int) -> int:
    """Start time of a process in clock ticks since boot; 0 when it is gone, a zombie, or the system cannot tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _owned(path: Path) -> bool:
    try:
        pid, ticks = (int(word) for word in (path / "owner").read_text().split())
    except (OSError, ValueError):
        return False
    return ticks != 0 and started(pid) == ticks
