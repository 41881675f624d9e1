"""What servers said about files, kept by content on two levels in the user's own folder (SYM-05, T-09)."""

import contextlib
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from ...core.model import JsonObject
from ...core.ports import SymbolPlace

VERSION = 1  # of both formats; entries of another version are dropped
MAX_ENTRIES = 4_000  # files in one folder (a language and level); the oldest tenth goes when there are more
_RAW, _TREE = "raw", "tree"
_PLACES = TypeAdapter(tuple[SymbolPlace, ...])


def key_of(text: str, server: str) -> str:
    """The key of a file's content as one server sees it; an update of the server makes new keys. SHA-256."""
    return hashlib.sha256(f"{server}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


class SymbolCache:
    """Raw answers (``raw``) and processed symbols with parents and body previews (``tree``), as JSON.

    Never pickle, and never in the project: what a checkout brings along is not read. All methods block; a cache that cannot
    be read or written is an empty one.
    """

    def __init__(self, folder: Path, max_entries: int = MAX_ENTRIES) -> None:
        self._folder, self._max = folder, max_entries
        self._counts: dict[Path, int] = {}

    def raw(self, language: str, key: str) -> tuple[list[JsonObject], str] | None:
        """The server's answer and the encoding that its columns count in."""
        found = self._load(language, _RAW, key) or {}
        if not isinstance(found.get("answer"), list) or not isinstance(found.get("encoding"), str):
            return None
        return cast("list[JsonObject]", found["answer"]), found["encoding"]

    def put_raw(self, language: str, key: str, answer: list[JsonObject], encoding: str) -> None:
        """Keep an answer."""
        self._store(language, _RAW, key, {"answer": answer, "encoding": encoding})

    def tree(self, language: str, key: str, path: str) -> tuple[SymbolPlace, ...] | None:
        """The symbols of a file with this content, as those of ``path``."""
        found = self._load(language, _TREE, key)
        if found is None:
            return None
        with contextlib.suppress(ValueError):
            places = _PLACES.validate_python(found.get("symbols"))
            return tuple(place.model_copy(update={"path": path}) for place in places)
        return None

    def put_tree(self, language: str, key: str, places: tuple[SymbolPlace, ...]) -> None:
        """Keep processed symbols."""
        self._store(language, _TREE, key, {"symbols": _PLACES.dump_python(places, mode="json")})

    def _load(self, language: str, level: str, key: str) -> JsonObject | None:
        path = self._file(language, level, key)
        try:
            found: Any = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        if isinstance(found, dict) and cast("JsonObject", found).get("version") == VERSION:
            return cast("JsonObject", found)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def _store(self, language: str, level: str, key: str, content: JsonObject) -> None:
        path = self._file(language, level, key)
        temporary = path.with_suffix(f".{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # no fsync, unlike the store's files: what a crash tears is not JSON, and is asked for again
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_bytes(json.dumps({"version": VERSION, **content}).encode())
            temporary.replace(path)
            self._trim(path.parent)

    def _trim(self, folder: Path) -> None:
        count = self._counts.get(folder, self._max)  # unknown: look
        if count >= self._max:
            files = [(file.stat().st_mtime_ns, file) for file in folder.iterdir()]
            surplus = len(files) - self._max
            doomed = sorted(files)[: surplus + self._max // 10] if surplus > 0 else []
            for _, file in doomed:
                file.unlink(missing_ok=True)
            count = len(files) - len(doomed)
        self._counts[folder] = count + 1

    def _file(self, language: str, level: str, key: str) -> Path:
        return self._folder / language / level / f"{key}.json"
