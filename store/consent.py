"""What the user agreed to of what comes with a repository, by content: ``trust.json`` in the state root (SAF, T14)."""

import hashlib
import json
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from .atomic import Lock, write_atomic

CONSENT = "trust.json"  # {"files": {absolute path, or path#name of an entry in it: SHA-256 of the content}}
# Files of a project that act only after consent, whole; hooks and MCP servers are agreed to one by one, by their own commands.
_FILES = ("permissions.json", "agents/**/*.md", "commands/**/*.md", "skills/**/*.md")
_MAX_FILES = 500
_MAX_BYTES = 1_000_000


def foreign_files(project: Path) -> tuple[Path, ...]:
    """The files of ``project`` that need consent, as they are named in ``trust.json``. Blocking."""
    own = project.resolve() / ".opendev"
    found = (path for pattern in _FILES for path in sorted(own.glob(pattern)) if path.is_file())
    return tuple(islice(found, _MAX_FILES))


def read_foreign(path: Path) -> tuple[bytes, str]:
    """The content of a file and the digest that a consent to it is bound to. Blocking.

    Raises:
        OpenDevError: config when it is no regular file of its own (a link could lead elsewhere tomorrow), too large or unreadable.
    """
    try:
        if path.resolve() != path or not path.is_file():
            raise OpenDevError(ErrorKind.CONFIG, f"{path} is no regular file, or lies behind a link.")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise OpenDevError(ErrorKind.CONFIG, f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > _MAX_BYTES:
        raise OpenDevError(ErrorKind.CONFIG, f"{path} is larger than {_MAX_BYTES:,} bytes.")
    return data, hashlib.sha256(data).hexdigest()


def standing(home: Path, path: Path) -> Literal["trusted", "changed", "not trusted"]:
    """Whether the user agreed to the file as it is now. Blocking."""
    known = agreed(home).get(str(path))
    if known is None:
        return "not trusted"
    try:
        return "trusted" if read_foreign(path)[1] == known else "changed"
    except OpenDevError:
        return "changed"


def agreed(home: Path) -> dict[str, str]:
    """Key to digest of everything agreed to; a file that cannot be read agrees to nothing. Blocking."""
    try:
        files = _read(home).get("files")
    except (OSError, ValueError):
        return {}
    if not isinstance(files, dict):
        return {}
    return {name: value for name, value in cast("JsonObject", files).items() if isinstance(value, str)}


def agree(home: Path, key: str, digest: str | None) -> None:
    """Remember the consent to ``key`` with exactly this content; None withdraws it. Blocking.

    Raises:
        OpenDevError: config when the file holds something else than consents, infra when it cannot be locked or written.
    """
    with Lock(home / f"{CONSENT}.lock"):
        try:
            whole = _read(home)
        except FileNotFoundError:
            whole = {}
        except (OSError, ValueError) as error:
            raise OpenDevError(
                ErrorKind.CONFIG,
                f"The consent file {home / CONSENT} cannot be read: {error}.",
                "Mend it, or delete it.",
            ) from error
        files = agreed(home)
        files.pop(key, None)
        if digest is not None:
            files[key] = digest
        text = json.dumps({**whole, "files": files}, indent=2, sort_keys=True) + "\n"
        write_atomic(home / CONSENT, text.encode())


def _read(home: Path) -> JsonObject:
    value: Any = json.loads((home / CONSENT).read_bytes())
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return cast("JsonObject", value)
