"""What is kept of a login to an MCP server: one file a server address, for the user alone (X12)."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, Protocol, cast

from ...core.model import JsonObject
from ...store.atomic import write_atomic

FOLDER = "mcp-logins"
_MAX_BYTES = 1_000_000


class Login(Protocol):
    """A person who logs in with a browser. ``redirect_uri`` is where the browser is sent afterwards, on this machine."""

    redirect_uri: str

    async def show(self, url: str) -> None:
        """Bring the address to the person. Raises ``OpenDevError``."""
        ...

    async def wait(self) -> JsonObject:
        """What the browser brought back: ``code``, ``state``, perhaps ``iss``. Raises ``OpenDevError``."""
        ...


class LoginStore:
    """The login of one server address; a project's server of the same name but another address never gets it. Blocking."""

    def __init__(self, home: Path, url: str) -> None:
        self._url = url
        self.path = home / FOLDER / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"

    def load(self) -> JsonObject:
        """What was saved; empty without a login, or when the file cannot be read."""
        try:
            with self.path.open("rb") as file:
                value: Any = json.loads(file.read(_MAX_BYTES + 1))
        except (OSError, ValueError, RecursionError):
            return {}
        found = cast("JsonObject", value) if isinstance(value, dict) else {}
        return found if found.get("url") == self._url else {}

    def save(self, **parts: Any) -> None:
        """Replace ``parts`` of it, mode 0600. Raises ``OpenDevError`` (infra)."""
        whole = {**self.load(), **parts, "url": self._url}
        write_atomic(self.path, json.dumps(whole, indent=1).encode())

    def forget(self) -> bool:
        """Remove it; False when there was none. Raises ``OSError``."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
            return True
        return False
