"""One language server of one root, and what it believes about the files: the wrapper between questions and protocol (SYM-01)."""

import asyncio
import contextlib
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ...core.errors import ErrorKind, OpenDevError
from ...core.model import JsonObject
from ...core.ports import SymbolPlace
from . import answers, positions
from .client import LspClient
from .servers import ServerSpec
from .words import Stamp, text_of

MAX_OPEN = 1_000  # files one server holds open, and files one question may concern
START_S, ASK_S, RENAME_S = 60.0, 30.0, 120.0
FIRST_PROGRESS_S = 1.0  # how soon after its start a slow server says that it is reading the project
LATE_S, LATE_TRIES = 0.2, 4
# Diagnostics are taken when no others followed for so long: an early answer is often followed by a fuller one. Those
# without a version may still be of the old text, if they come soon.
QUIET_S, UNSURE_QUIET_S = 0.15, 0.6
_NULL_REQUESTS = frozenset(
    {"client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create"}
)


@dataclass(frozen=True, slots=True)
class _Published:
    """Diagnostics as they came; ``number`` counts arrivals."""

    number: int
    version: int | None
    diagnostics: list[JsonObject]


class LanguageServer:
    """Not for use from two tasks at once, apart from ``alive``. Methods raise ``OpenDevError``."""

    client: LspClient

    def __init__(self, root: Path, spec: ServerSpec) -> None:
        self.root, self.spec = root, spec
        self.encoding = "utf-16"
        # path: version, digest, and how many diagnostics had come when the server was told of it
        self._open: OrderedDict[str, tuple[int, str, int]] = OrderedDict()
        self._tree: Mapping[str, Stamp] | None = None
        self._progress = set[str]()
        self._began = False
        self._published: OrderedDict[Path, _Published] = OrderedDict()
        self._arrivals = 0
        self._news = asyncio.Event()  # set at each notification that somebody may wait for

    async def start(self, command: tuple[str, ...], env: Mapping[str, str], cwd: Path) -> None:
        """Start and shake hands; on failure nothing is left running."""
        self.client = await LspClient.start(command, env=env, cwd=cwd, answer=self._answer, told=self._told)
        try:
            answer = await self.client.request("initialize", _initialize(self.root, self.spec), START_S)
            await self.client.notify("initialized", {})
            if self.spec.settings:
                await self.client.notify("workspace/didChangeConfiguration", {"settings": self.spec.settings})
        except BaseException:
            await self.client.stop()
            raise
        told = cast("JsonObject", cast("JsonObject", answer or {}).get("capabilities") or {})
        self.encoding = str(told.get("positionEncoding") or "utf-16")
        if self.encoding not in positions.ENCODINGS:
            await self.client.stop()
            message = (
                f"The language server {command[0]} counts columns in {self.encoding}, which was not offered."
            )
            raise OpenDevError(ErrorKind.TOOL, message)

    @property
    def alive(self) -> bool:
        """Whether it runs and can be asked."""
        return self.client.alive

    async def refresh(self, now: Mapping[str, Stamp]) -> None:
        """Tell the server what changed on disk since the last question, and renew the files it holds open."""
        before, self._tree = self._tree, now
        if before is not None:
            changes: list[JsonObject] = []
            for path in sorted({*before, *now}):
                if before.get(path) != now.get(path):
                    kind = 1 if path not in before else 3 if path not in now else 2
                    changes.append({"uri": self._uri(path), "type": kind})
            if changes:
                await self.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        for path in tuple(self._open):
            if path in now:
                await self.open(path)
            else:
                await self._shut(path)

    async def open(self, path: str) -> str:
        """Have the server hold the file's present text; returns the text. Raises when it cannot be read."""
        text = await asyncio.to_thread(text_of, self.root / path)
        if text is None:
            if path in self._open:
                await self._shut(path)
            message = f"The file {path} cannot be read as UTF-8 text."
            raise OpenDevError(ErrorKind.NOT_FOUND, message, "Check the path.")
        digest = hashlib.sha256(text.encode()).hexdigest()
        version, known, _ = self._open.get(path, (0, "", 0))
        uri = self._uri(path)
        if known != digest:
            # noted before it is told: a cancellation in between must not lead to a second didOpen
            self._open[path] = (version + 1, digest, self._arrivals)
        self._open.move_to_end(path)
        if not version:
            language = self.spec.language_id(path)
            document = {"uri": uri, "languageId": language, "version": 1, "text": text}
            await self.client.notify("textDocument/didOpen", {"textDocument": document})
        elif known != digest:
            changed: JsonObject = {
                "textDocument": {"uri": uri, "version": version + 1},
                "contentChanges": [{"text": text}],
            }
            await self.client.notify("textDocument/didChange", changed)
        return text

    async def close_some(self) -> None:
        """Keep the number of open files bounded."""
        while len(self._open) > MAX_OPEN:
            await self._shut(next(iter(self._open)))

    async def symbols(self, path: str) -> tuple[list[JsonObject], str]:
        """The raw symbols of a file, and the text they are of."""
        text = await self.open(path)
        params: JsonObject = {"textDocument": {"uri": self._uri(path)}}
        answer = await self.client.request("textDocument/documentSymbol", params, ASK_S)
        for _ in range(LATE_TRIES if self.spec.late else 0):
            if answer or not text.strip():
                break
            await asyncio.sleep(LATE_S)
            answer = await self.client.request("textDocument/documentSymbol", params, ASK_S)
        if not answer and self._progress:
            if not await self.settled():
                raise self._indexing()
            answer = await self.client.request("textDocument/documentSymbol", params, ASK_S)
        return cast("list[JsonObject]", answer or []), text

    async def references(self, place: SymbolPlace, *, include_declaration: bool) -> Any:
        """Raw locations. Raises when the server still reads the project: its answer would miss some (X18)."""
        params = await self._at(place)
        context = {"context": {"includeDeclaration": include_declaration}}
        return await self._whole_project("textDocument/references", {**params, **context}, ASK_S)

    async def rename(self, place: SymbolPlace, new_name: str) -> Any:
        """A raw ``WorkspaceEdit``."""
        params = await self._at(place)
        return await self._whole_project("textDocument/rename", {**params, "newName": new_name}, RENAME_S)

    async def problems(self, path: str, wait_s: float) -> tuple[list[JsonObject], str] | None:
        """Diagnostics of the file's present text, and the text; None when they do not come in time.

        Those of an earlier version of the text are not taken for its own (X18).
        """
        text = await self.open(path)
        (version, _, mark), file = self._open[path], self.root / path
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._until(lambda: self._fitting(file, version, mark) is not None, wait_s)
                while (last := self._fitting(file, version, mark)) is not None:
                    await asyncio.sleep(UNSURE_QUIET_S if last.version is None else QUIET_S)
                    if last == self._fitting(file, version, mark):
                        break
        last = self._fitting(file, version, mark)
        return None if last is None else (last.diagnostics, text)

    async def settled(self) -> bool:
        """Whether it has read the project; waits for that, a bounded time."""
        if self.spec.slow and not self._began:
            await self._until(lambda: self._began, FIRST_PROGRESS_S)
            self._began = True  # it was waited for once; from now on only what it tells counts
        return await self._until(lambda: not self._progress or not self.alive, self.spec.wait_s)

    async def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        return condition()

    async def stop(self) -> None:
        """End it; returns when its processes are dead."""
        await self.client.stop()

    async def _whole_project(self, method: str, params: JsonObject, timeout_s: float) -> Any:
        settled = await self.settled()
        answer = await self.client.request(method, params, timeout_s)
        if not settled and self._progress:
            raise self._indexing()
        return answer

    async def _at(self, place: SymbolPlace) -> JsonObject:
        rows = positions.lines(await self.open(place.path))
        if place.line > len(rows):
            message = f"{place.path} changed meanwhile: it has no line {place.line} any more."
            raise OpenDevError(ErrorKind.CONFLICT, message, "Nothing was changed; try again.")
        column = positions.to_units(rows[place.line - 1], place.column - 1, self.encoding)
        return {
            "textDocument": {"uri": self._uri(place.path)},
            "position": {"line": place.line - 1, "character": column},
        }

    async def _shut(self, path: str) -> None:
        self._open.pop(path, None)
        self._published.pop(self.root / path, None)
        await self.client.notify("textDocument/didClose", {"textDocument": {"uri": self._uri(path)}})

    def _fitting(self, file: Path, version: int, mark: int) -> _Published | None:
        last = self._published.get(file)
        if last is None:
            return None
        fits = last.number > mark if last.version is None else last.version == version
        return last if fits else None

    def _indexing(self) -> OpenDevError:
        message = f"The language server of {self.spec.language} is still indexing the project; its answer is not complete."
        return OpenDevError(ErrorKind.TIMEOUT, message, "Try again in some seconds, or use search meanwhile.")

    def _told(self, method: str, params: Any) -> None:
        """What the server tells unasked; nonsense is passed over."""
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            if method == "$/progress":
                self._on_progress(str(params["token"]), params["value"]["kind"])
            elif method == "textDocument/publishDiagnostics":
                self._arrivals += 1
                listed = list(params["diagnostics"])
                news = _Published(self._arrivals, params.get("version"), listed)
                file = answers.file_of(params["uri"])
                self._published[file] = news
                self._published.move_to_end(file)
                if len(self._published) > MAX_OPEN:
                    self._published.popitem(last=False)
            self._news.set()

    def _on_progress(self, token: str, kind: str) -> None:
        if kind == "begin" and len(self._progress) < MAX_OPEN:
            self._progress.add(token)
            self._began = True
        elif kind == "end":
            self._progress.discard(token)

    def _answer(self, method: str, params: Any) -> Any:
        """What the server itself asks; one left unanswered would wait for ever and answer nothing else (T-19)."""
        if method == "workspace/configuration":
            return [self.spec.settings.get(item.get("section", ""), None) for item in params["items"]]
        if method == "workspace/workspaceFolders":
            return [{"uri": self.root.as_uri(), "name": self.root.name}]
        if method == "workspace/applyEdit":
            return {"applied": False}
        if method in _NULL_REQUESTS or method.endswith("/refresh") or method == "window/showMessageRequest":
            return None
        raise NotImplementedError(method)

    def _uri(self, path: str) -> str:
        return (self.root / path).as_uri()


def _initialize(root: Path, spec: ServerSpec) -> JsonObject:
    return {
        "processId": os.getpid(),  # a server whose client is gone ends itself (X16)
        "clientInfo": {"name": "opendev"},
        "rootUri": root.as_uri(),
        "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}],
        "initializationOptions": spec.init,
        "capabilities": {
            "general": {"positionEncodings": list(positions.ENCODINGS)},
            "window": {"workDoneProgress": True},
            "workspace": {
                "configuration": True,
                "workspaceFolders": True,
                "didChangeWatchedFiles": {"dynamicRegistration": True},
                "workspaceEdit": {"documentChanges": True},
            },
            "textDocument": {
                "synchronization": {"dynamicRegistration": False},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
                "references": {},
                "rename": {"prepareSupport": False},
                "publishDiagnostics": {"versionSupport": True},
            },
        },
    }
