"""What the user agreed to of what comes with a repository, by content: ``trust.json`` in the state root (SAF, T14)."""

import json
from pathlib import Path
from typing import Any, cast

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from .atomic import Lock, write_atomic

CONSENT = "trust.json"  # {"files": {absolute path, or path#name of an entry in it: SHA-256 of the content}}


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
