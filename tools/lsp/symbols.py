"""The Symbols port on language servers: find by name path, rename across every file that holds the word (SYM-02 to SYM-08)."""

import asyncio
import hashlib
import shutil
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from ...core.ports import SymbolPlace, Symbols, TextEdit
from . import positions
from .client import LspClient
from .servers import SERVERS, ServerSpec, server_for
from .words import Stamp, holding, text_of, tree, word_pattern

MAX_SERVERS = 3  # each is a process of 100 to 200 MB
MAX_OPEN = 1_000  # files one server holds open, and files one question may concern
BODY_CHARS = 200
START_S, ASK_S, RENAME_S = 60.0, 30.0, 120.0

_KINDS = (  # the protocol's numbers, from 1
    "file module namespace package class method property field constructor enum interface function variable constant "
    "string number boolean array object key null enum-member struct event operator type-parameter"
)


@dataclass
class _Server:
    """One server of one root, and what it believes about the files."""

    client: LspClient
    encoding: str = "utf-16"
    open: "OrderedDict[str, tuple[int, str]]" = field(default_factory=OrderedDict[str, tuple[int, str]])
    tree: dict[str, Stamp] | None = None


class LspSymbols(Symbols):
    """Starts a server on the first question about a root, keeps it while it lives, starts it anew after a crash.

    ``env`` is the whole environment of a server (no keys) but for ``marker``; ``path`` is where the user's own servers are
    looked up (``$PATH``); ``cache_dir`` is a private folder the servers run in, so that nothing of the user's tree is
    loaded from the current directory. All methods raise ``OpenDevError``.
    """

    def __init__(
        self, *, env: Mapping[str, str], cache_dir: Path, path: str, marker: Mapping[str, str] | None = None
    ) -> None:
        self._env, self._cache, self._path = {**env, **(marker or {})}, cache_dir, path
        self._servers: OrderedDict[tuple[Path, str], _Server] = OrderedDict()
        self._lock = asyncio.Lock()  # one question at a time: opening files and asking belong together

    async def find(self, root: Path, name: str, path: str | None) -> tuple[SymbolPlace, ...]:
        """Every definition whose name path is ``name``, ends in ``.name`` or matches its ``*``; exact matches first."""
        spec = _spec_of(path)
        async with self._lock:
            server = await self._ready(root, spec)
            paths = (path,) if path else await self._candidates(root, server, name.rpartition(".")[2])
            found: list[SymbolPlace] = []
            for one in paths:
                found += await self._symbols_of(root, server, one)
            await self._close_some(root, server)
        hits = [place for place in found if matches(place.name_path, name)]
        return tuple(sorted(hits, key=lambda p: (p.name_path != name, p.path, p.line, p.column)))

    async def rename_edits(
        self, root: Path, place: SymbolPlace, new_name: str
    ) -> dict[str, tuple[TextEdit, ...]]:
        """The edits that rename ``place`` and every reference, by root-relative path. Nothing is written.

        Every file that holds the word is opened first: a server renames only in files it knows (T-19).
        """
        spec = _spec_of(place.path)
        async with self._lock:
            server = await self._ready(root, spec)
            for one in await self._candidates(root, server, place.name):
                await self._open(root, server, one)
            line = positions.lines(await self._open(root, server, place.path))[place.line - 1]
            column = positions.to_units(line, place.column - 1, server.encoding)
            params: JsonObject = {
                "textDocument": {"uri": _uri(root, place.path)},
                "position": {"line": place.line - 1, "character": column},
                "newName": new_name,
            }
            answer = await server.client.request("textDocument/rename", params, RENAME_S)
            edits = await asyncio.to_thread(_edits, root, answer, server.encoding)
            await self._close_some(root, server)
        if not edits:
            message = f"The language server finds nothing to rename for {place.name_path} in {place.path}."
            raise OpenDevError(ErrorKind.TOOL, message, "It may be defined outside of the project.")
        return edits

    async def close(self) -> None:
        """End every server; returns when their processes are dead."""
        servers, self._servers = self._servers, OrderedDict()
        for server in servers.values():
            await server.client.stop()

    async def _ready(self, root: Path, spec: ServerSpec) -> _Server:
        """A live server whose picture of the tree is up to date."""
        key = (root, spec.language)
        server = self._servers.get(key)
        if server is not None and not server.client.alive:
            await self._servers.pop(key).client.stop()
            server = None
        if server is None:
            server = self._servers[key] = await self._start(root, spec)
            while len(self._servers) > MAX_SERVERS:
                await self._servers.popitem(last=False)[1].client.stop()
        self._servers.move_to_end(key)
        await self._refresh(root, server, spec)
        return server

    async def _start(self, root: Path, spec: ServerSpec) -> _Server:
        await asyncio.to_thread(self._cache.mkdir, parents=True, exist_ok=True)
        command = (self._command(spec), *spec.arguments)
        client = await LspClient.start(
            command,
            env=self._env,
            cwd=self._cache,
            answer=lambda method, params: _answer(spec, root, method, params),
        )
        try:
            answer = await client.request("initialize", _initialize(root, spec), START_S)
            await client.notify("initialized", {})
            await client.notify("workspace/didChangeConfiguration", {"settings": spec.settings})
        except BaseException:
            await client.stop()
            raise
        encoding = answer.get("capabilities", {}).get("positionEncoding", "utf-16")
        return _Server(client, encoding)

    def _command(self, spec: ServerSpec) -> str:
        for name in spec.user:
            if found := shutil.which(name, path=self._path):
                return found
        for name in spec.bundled:
            if found := shutil.which(name, path=str(Path(sys.executable).parent)):
                return found
        names = " or ".join((*spec.user, *spec.bundled))
        message = f"No language server for {spec.language} was found: {names}."
        raise OpenDevError(ErrorKind.NOT_FOUND, message, f"Install one: `{spec.install}`.")

    async def _refresh(self, root: Path, server: _Server, spec: ServerSpec) -> None:
        """Tell the server what changed on disk since the last question, and renew the files it holds open."""
        now = await asyncio.to_thread(tree, root, spec.suffixes)
        before, server.tree = server.tree, now
        if before is not None:
            changes: list[JsonObject] = []
            for path in sorted({*before, *now}):
                if before.get(path) != now.get(path):
                    kind = 1 if path not in before else 3 if path not in now else 2
                    changes.append({"uri": _uri(root, path), "type": kind})
            if changes:
                await server.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        for path in tuple(server.open):
            if path not in now:
                await self._shut(root, server, path)
            else:
                await self._open(root, server, path)

    async def _candidates(self, root: Path, server: _Server, word: str) -> tuple[str, ...]:
        found = await asyncio.to_thread(holding, root, list(server.tree or ()), word)
        if len(found) > MAX_OPEN:
            message = f"{len(found)} files hold {word}; the limit is {MAX_OPEN}."
            raise OpenDevError(ErrorKind.TOOL, message, "Give a more exact name, or file_path.")
        return found

    async def _open(self, root: Path, server: _Server, path: str) -> str:
        """Have the server hold the file's present text; returns the text. Raises when it cannot be read."""
        text = await asyncio.to_thread(text_of, root / path)
        if text is None:
            message = f"The file {path} cannot be read as UTF-8 text."
            raise OpenDevError(ErrorKind.NOT_FOUND, message, "Check the path.")
        digest = hashlib.sha256(text.encode()).hexdigest()
        version, known = server.open.get(path, (0, ""))
        uri = _uri(root, path)
        if (
            known != digest
        ):  # noted before it is told: a cancellation in between must not lead to a second didOpen
            server.open[path] = (version + 1, digest)
        server.open.move_to_end(path)
        if not version:
            spec = server_for(path)
            document = {"uri": uri, "languageId": spec.language if spec else "", "version": 1, "text": text}
            await server.client.notify("textDocument/didOpen", {"textDocument": document})
        elif known != digest:
            changed: JsonObject = {
                "textDocument": {"uri": uri, "version": version + 1},
                "contentChanges": [{"text": text}],
            }
            await server.client.notify("textDocument/didChange", changed)
        return text

    async def _close_some(self, root: Path, server: _Server) -> None:
        while len(server.open) > MAX_OPEN:
            await self._shut(root, server, next(iter(server.open)))

    async def _shut(self, root: Path, server: _Server, path: str) -> None:
        server.open.pop(path, None)
        await server.client.notify("textDocument/didClose", {"textDocument": {"uri": _uri(root, path)}})

    async def _symbols_of(self, root: Path, server: _Server, path: str) -> list[SymbolPlace]:
        text = await self._open(root, server, path)
        params: JsonObject = {"textDocument": {"uri": _uri(root, path)}}
        answer = await server.client.request("textDocument/documentSymbol", params, ASK_S)
        return _places(cast("list[JsonObject]", answer or []), path, text, server.encoding)


def matches(name_path: str, wanted: str) -> bool:
    """Exact, the last parts (``method`` or ``Class.method``), or a wildcard in any part (SYM-02)."""
    parts, want = name_path.split("."), wanted.split(".")
    if len(want) > len(parts):
        return False
    return all(word_pattern(w).fullmatch(p) for p, w in zip(parts[-len(want) :], want, strict=True))


def _spec_of(path: str | None) -> ServerSpec:
    spec = server_for(path) if path else SERVERS[0]
    if spec is None:
        known = ", ".join(sorted(suffix for one in SERVERS for suffix in one.suffixes))
        message = f"There is no language server for {path}."
        raise OpenDevError(ErrorKind.NOT_FOUND, message, f"Symbols are known in these files: {known}.")
    return spec


def _uri(root: Path, path: str) -> str:
    return (root / path).as_uri()


def _initialize(root: Path, spec: ServerSpec) -> JsonObject:
    return {
        "processId": None,
        "rootUri": root.as_uri(),
        "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}],
        "initializationOptions": spec.settings,
        "capabilities": {
            "general": {"positionEncodings": list(positions.ENCODINGS)},
            "workspace": {
                "configuration": True,
                "workspaceFolders": True,
                "didChangeWatchedFiles": {"dynamicRegistration": True},
                "workspaceEdit": {"documentChanges": True},
            },
            "textDocument": {
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
                "rename": {"prepareSupport": False},
            },
        },
    }


def _answer(spec: ServerSpec, root: Path, method: str, params: Any) -> Any:
    """What the server itself asks; one left unanswered would wait for ever and answer nothing else (T-19)."""
    if method == "workspace/configuration":
        return [spec.settings.get(item.get("section", ""), None) for item in params["items"]]
    if method == "workspace/workspaceFolders":
        return [{"uri": root.as_uri(), "name": root.name}]
    if method == "workspace/applyEdit":
        return {"applied": False}
    if method in (
        "client/registerCapability",
        "client/unregisterCapability",
        "window/workDoneProgress/create",
    ):
        return None
    if method.endswith("/refresh") or method == "window/showMessageRequest":
        return None
    raise NotImplementedError(method)


def _places(symbols: list[JsonObject], path: str, text: str, encoding: str) -> list[SymbolPlace]:
    """The tree of symbols, flattened; iterative, for its depth is the file's."""
    rows, found = positions.lines(text), list[SymbolPlace]()
    pending = [(symbol, "") for symbol in reversed(symbols)]
    while pending:
        symbol, above = pending.pop()
        name_path = f"{above}.{symbol['name']}" if above else symbol["name"]
        start = _point(rows, symbol["selectionRange"]["start"], encoding)
        whole = symbol["range"]
        body = positions.slice_of(
            text, _point(rows, whole["start"], encoding), _point(rows, whole["end"], encoding)
        )
        found.append(
            SymbolPlace(
                name=symbol["name"],
                name_path=name_path,
                kind=_kind(symbol),
                path=path,
                line=start[0] + 1,
                column=start[1] + 1,
                body=body[:BODY_CHARS],
            )
        )
        pending += [(child, name_path) for child in reversed(symbol.get("children") or [])]
    return found


def _kind(symbol: JsonObject) -> str:
    names, number = _KINDS.split(), int(symbol.get("kind", 0))
    return names[number - 1] if 0 < number <= len(names) else "symbol"


def _point(rows: list[str], position: JsonObject, encoding: str) -> tuple[int, int]:
    line = int(position["line"])
    if line >= len(rows):
        return line, 0
    return line, positions.to_points(rows[line], position["character"], encoding)


def _edits(root: Path, answer: Any, encoding: str) -> dict[str, tuple[TextEdit, ...]]:
    """A ``WorkspaceEdit`` as edits by path, columns in code points; blocking (it reads the files)."""
    by_path: dict[str, list[TextEdit]] = {}
    for uri, raw in _raw_edits(answer or {}):
        path = _path_of(root, uri)
        text = text_of(root / path)
        if text is None:
            raise OpenDevError(
                ErrorKind.TOOL, f"The file {path} went away during the rename.", "Nothing was changed."
            )
        rows = positions.lines(text)
        by_path.setdefault(path, []).extend(
            TextEdit(
                start=_point(rows, edit["range"]["start"], encoding),
                end=_point(rows, edit["range"]["end"], encoding),
                text=edit["newText"],
            )
            for edit in raw
        )
    return {path: tuple(edits) for path, edits in sorted(by_path.items()) if edits}


def _raw_edits(answer: JsonObject) -> list[tuple[str, list[JsonObject]]]:
    changes = cast("list[JsonObject]", answer.get("documentChanges") or [])
    if any("kind" in change for change in changes):
        message = "The language server wants to create, move or delete files for this rename."
        raise OpenDevError(ErrorKind.TOOL, message, "Nothing was changed; move the file by hand.")
    listed = [(change["textDocument"]["uri"], change["edits"]) for change in changes]
    return listed or list(cast("dict[str, list[JsonObject]]", answer.get("changes") or {}).items())


def _path_of(root: Path, uri: str) -> str:
    file = Path(unquote(urlsplit(uri).path))
    if not file.is_relative_to(root):
        message = f"The rename reaches {file}, outside of the working folder."
        raise OpenDevError(ErrorKind.SCOPE, message, "Nothing was changed.")
    return file.relative_to(root).as_posix()
