"""The provider cache: a catalogue of models fetched over HTTP, one JSON file a provider, stale while it is renewed (MOD-04, MOD-05)."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ..core.clock import Clock
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen, JsonObject

FRESH_S = 24 * 3600.0
RETRY_S = 3600.0  # after a failed fetch nothing is fetched by itself for so long: an offline machine does not wait at each start
FETCH_S = 10.0
MAX_BYTES = 64_000_000
_MARKER, _FAILED = ".last_sync", ".last_failure"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SCHEMES = ("http://", "https://")


class Synced(Frozen):
    """What a fetch brought: providers written and models in them."""

    providers: int
    models: int


class ProviderCache:
    """Files ``<provider>.json`` in ``folder``, in the form of models.dev. ``url`` empty: nothing is ever fetched (MOD-06).

    ``write`` replaces a file atomically. Every method blocks; call it in a thread.
    """

    def __init__(self, folder: Path, url: str, clock: Clock, write: Callable[[Path, bytes], None]) -> None:
        self._folder, self.url, self._clock, self._write = folder, url, clock, write

    @property
    def age_s(self) -> float | None:
        """Seconds since the last fetch that succeeded, by the marker's modification time; None when there was none."""
        return self._age(_MARKER)

    @property
    def fresh(self) -> bool:
        """Whether the cache is younger than 24 hours. A marker of the future (the clock was set back) does not count."""
        age = self.age_s
        return age is not None and 0 <= age < FRESH_S

    @property
    def may_fetch(self) -> bool:
        """Whether a fetch may start by itself: an address is set and none failed within the last hour."""
        failed = self._age(_FAILED)
        return bool(self.url) and (failed is None or not 0 <= failed < RETRY_S)

    def refresh(self, timeout_s: float = FETCH_S) -> Synced:
        """Fetch the catalogue and write a file for each provider. What was there stays when it fails.

        Raises ``OpenDevError``: ``config`` for an address that is none, ``infra`` when it cannot be fetched or read.
        """
        try:
            rows = _rows(_download(self.url, timeout_s), self.url)
        except OpenDevError:
            self._write(self._folder / _FAILED, b"")
            raise
        for name, row in rows.items():
            self._write(self._folder / f"{name}.json", json.dumps(row).encode())
        self._write(self._folder / _MARKER, b"")
        (self._folder / _FAILED).unlink(missing_ok=True)
        return Synced(providers=len(rows), models=sum(len(row["models"]) for row in rows.values()))

    def _age(self, marker: str) -> float | None:
        try:
            return self._clock.now() - (self._folder / marker).stat().st_mtime
        except OSError:
            return None


def cached_provider(folder: Path, provider: str) -> JsonObject:
    """The cached row of a provider; empty when there is none. A file that cannot be read is removed, with the marker, so
    that the next fetch mends it (ARC-06)."""
    if not _NAME.fullmatch(provider):
        return {}
    path = folder / f"{provider}.json"
    try:
        row = _row(json.loads(path.read_bytes()))
    except OSError:
        return {}
    except ValueError:
        row = None
    if row is None:
        path.unlink(missing_ok=True)
        (folder / _MARKER).unlink(missing_ok=True)
        return {}
    return row


def _download(url: str, timeout_s: float) -> bytes:
    if not url.startswith(_SCHEMES):
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"The catalogue address {url!r} is no http or https address.",
            "Set `catalog.url`; OPENDEV_MODELS_DEV_PATH names a local file.",
        )
    import urllib.error  # 4 ms that only a fetch pays
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "opendev"})  # noqa: S310 - the scheme was checked
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
            data = answer.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise OpenDevError(
            ErrorKind.INFRA,
            f"The model catalogue {url} could not be fetched: {reason}.",
            "OpenDev goes on with what it knows; OPENDEV_DISABLE_REMOTE_MODELS=1 stops the attempts.",
        ) from error
    if len(data) > MAX_BYTES:
        raise OpenDevError(ErrorKind.INFRA, f"The model catalogue {url} is larger than {MAX_BYTES:,} bytes.")
    return data


def _rows(data: bytes, url: str) -> dict[str, JsonObject]:
    """The providers of a catalogue; rows that are none are left out. Raises ``OpenDevError`` (infra)."""
    try:
        loaded: Any = json.loads(data)
    except ValueError as error:
        raise OpenDevError(ErrorKind.INFRA, f"The model catalogue {url} is no JSON: {error}.") from error
    found: dict[str, JsonObject] = {}
    for name, given in cast("JsonObject", loaded).items() if isinstance(loaded, dict) else ():
        row = _row(given)
        if row is not None and _NAME.fullmatch(name):
            found[name] = row
    if not found:
        raise OpenDevError(ErrorKind.INFRA, f"The model catalogue {url} names no provider.")
    return found


def _row(value: Any) -> JsonObject | None:
    if not isinstance(value, dict) or not isinstance(cast("JsonObject", value).get("models"), dict):
        return None
    return cast("JsonObject", value)
