"""Pictures and PDF files of web tools: new files in the agent's scratch folder, never in the project (C-36)."""

import re
from pathlib import Path

from ...core.errors import ErrorKind, OpenDevError

MAX_SHOTS = 200  # in one scratch folder; the oldest go first
_TRIES = 10_000


def new_shot(scratch: Path, stem: str, suffix: str) -> Path:
    """The path of a new, empty file (mode 0600) in ``scratch/shots``. Blocking; raises ``OpenDevError`` (infra)."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:60] or "shot"
    folder = scratch / "shots"
    try:
        scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        for old in sorted(folder.iterdir(), key=lambda item: item.lstat().st_mtime_ns)[: -(MAX_SHOTS - 1)]:
            old.unlink(missing_ok=True)
        for number in range(1, _TRIES):
            path = folder / f"{name}-{number}{suffix}"
            if not path.is_symlink() and not path.exists():
                path.touch(mode=0o600, exist_ok=False)
                return path
    except OSError as error:
        raise OpenDevError(ErrorKind.INFRA, f"{folder} cannot be written: {error}.") from error
    raise OpenDevError(ErrorKind.INFRA, f"There is no free name for {name} in {folder}.")
