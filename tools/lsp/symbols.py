"""The Symbols port on language servers, the Symbol Retriever: name paths, references, renames, problems (SYM-01, SYM-02)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from ...core.clock import SystemClock
from ...core.errors import ErrorKind, OpenDevError
from ...core.ports import CodeProblem, SymbolPlace, Symbols, SymbolUse, TextEdit
from . import answers
from .cache import SymbolCache, key_of
from .pool import IDLE_S, MAX_SERVERS, ServerPool
from .server import MAX_OPEN, LanguageServer
from .servers import SUFFIXES, ServerSpec, server_for
from .words import Stamp, holding, text_of, tree, word_pattern

__all__ = ["MAX_SERVERS", "LspSymbols", "matches"]

PROBLEMS_S, GIVE_UP_S = 1.5, 2.0  # for diagnostics, and for all of it: FIL-10 allows 3 s, X18 two
T = TypeVar("T")
_Files = dict[str, Stamp]
_Known = dict[str, tuple[SymbolPlace, ...]]


class LspSymbols(Symbols):
    """Starts a server on the first question that needs it, keeps it while it lives, starts it anew after a crash.

    ``env`` is the whole environment of a server (no keys) but for ``marker``; ``path`` is where servers are looked up
    (``$PATH``); ``cache_dir`` is a private folder for answers (``lsp/``) and for servers to run in. ``diagnostics``: whether
    ``problems`` asks at all. All methods but ``problems`` raise ``OpenDevError``.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        cache_dir: Path,
        path: str,
        marker: Mapping[str, str] | None = None,
        diagnostics: bool = True,
        idle_s: float = IDLE_S,
    ) -> None:
        self._cache = SymbolCache(cache_dir / "lsp")
        self._diagnostics = diagnostics
        self._pool = ServerPool(
            env={**env, **(marker or {})}, folder=cache_dir, path=path, clock=SystemClock(), idle_s=idle_s
        )  # fmt: skip

    async def find(self, root: Path, name: str, path: str | None) -> tuple[SymbolPlace, ...]:
        """Every definition whose name path is ``name``, ends in ``.name`` or matches its ``*``; exact matches first.

        Without ``path`` all languages are asked whose files hold the word; a server that is missing or fails is told
        only when nothing else was found. Markdown and YAML are experimental: only a ``path`` asks for them (SYM-11).
        """
        async with self._pool.lock:
            files = await asyncio.to_thread(_by_language, root, path)
            word = name.rpartition(".")[2]
            found: list[SymbolPlace] = []
            missing: OpenDevError | None = None
            for spec, tree_of in files.items():
                paths = (path,) if path else await _candidates(root, tree_of, word)
                try:
                    found += await self._symbols(root, spec, tree_of, paths)
                except OpenDevError as error:
                    if path:
                        raise
                    missing = error
        hits = [place for place in found if matches(place.name_path, name)]
        if missing is not None and not hits:
            message = f"No symbol {name} was found, but files that hold the word could not be asked about: "
            raise OpenDevError(missing.info.kind, message + missing.info.message, missing.info.hint)
        return tuple(sorted(hits, key=lambda p: (p.name_path != name, p.path, p.line, p.column)))

    async def rename_edits(
        self, root: Path, place: SymbolPlace, new_name: str
    ) -> dict[str, tuple[TextEdit, ...]]:
        """The edits that rename ``place`` and every reference, by root-relative path. Nothing is written."""

        async def ask(server: LanguageServer) -> dict[str, tuple[TextEdit, ...]]:
            answer = await server.rename(place, new_name)
            return await asyncio.to_thread(answers.edits, root, answer, server.encoding)

        edits = await self._about(root, place, ask)
        if not edits:
            message = f"The language server finds nothing to rename for {place.name_path} in {place.path}."
            raise OpenDevError(ErrorKind.TOOL, message, "It may be defined outside of the project.")
        return edits

    async def references(
        self, root: Path, place: SymbolPlace, *, include_declaration: bool
    ) -> tuple[SymbolUse, ...]:
        """Every reference in files of the root, by path and line (SYM-07)."""

        async def ask(server: LanguageServer) -> tuple[SymbolUse, ...]:
            answer = await server.references(place, include_declaration=include_declaration)
            return await asyncio.to_thread(answers.uses, root, answer, server.encoding)

        return await self._about(root, place, ask)

    async def problems(self, root: Path, path: str) -> tuple[CodeProblem, ...] | None:
        """Errors in the present text of a file, at most 20; None when no server runs, or it is too slow (FIL-10)."""
        spec = server_for(path)
        if not self._diagnostics or spec is None or self._pool.running(root, spec) is None:
            return None
        try:
            async with asyncio.timeout(GIVE_UP_S), self._pool.lock:
                server = self._pool.running(root, spec)
                if server is None:
                    return None
                # other files may have changed too, by a command: an error must not come from their old text (X18)
                await server.refresh((await asyncio.to_thread(_by_language, root, path))[spec])
                told = await server.problems(path, PROBLEMS_S)
        except (OpenDevError, TimeoutError):
            return None
        return None if told is None else answers.problems(*told, server.encoding)

    async def close(self) -> None:
        """End every server; returns when their processes are dead."""
        await self._pool.close()

    async def _about(
        self, root: Path, place: SymbolPlace, ask: Callable[[LanguageServer], Awaitable[T]]
    ) -> T:
        """Ask about one symbol. Every file that holds its word is opened first: a server knows only what it has seen (T-19)."""
        spec = _spec_of(place.path)

        async def work(server: LanguageServer) -> T:
            for one in await _candidates(root, files, place.name):
                await server.open(one)
            answer = await ask(server)
            await server.close_some()
            return answer

        async with self._pool.lock:
            files = (await asyncio.to_thread(_by_language, root, place.path))[spec]
            return await self._asked(root, spec, files, work)

    async def _asked(
        self, root: Path, spec: ServerSpec, files: _Files, work: Callable[[LanguageServer], Awaitable[T]]
    ) -> T:
        """``work`` with a live server; one that dies meanwhile is started anew, once (SYM-03)."""
        for attempt in (1, 2):
            server = await self._pool.ready(root, spec, files)
            try:
                return await work(server)
            except OpenDevError as error:
                if error.info.kind is not ErrorKind.INFRA or server.alive or attempt == 2:
                    raise
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                message = f"The language server of {spec.language} gave an answer that is none ({error!r})."
                raise OpenDevError(ErrorKind.TOOL, message, "Use search instead.") from error
        raise AssertionError

    async def _symbols(
        self, root: Path, spec: ServerSpec, files: _Files, paths: tuple[str, ...]
    ) -> list[SymbolPlace]:
        """The symbols of all ``paths``; a server is started only for content that the cache does not know."""
        if not paths:
            return []
        stamp = await asyncio.to_thread(_stamp, self._pool.command(spec)[0])
        known = await asyncio.to_thread(self._known, root, spec, paths, stamp)
        unknown = [path for path in paths if path not in known]

        async def work(server: LanguageServer) -> None:
            for path in unknown:
                raw, text = await server.symbols(path)
                places = answers.places(raw, path, text, server.encoding)
                known[path] = places
                if raw:
                    key = key_of(text, stamp)
                    await asyncio.to_thread(self._cache.put_raw, spec.language, key, raw, server.encoding)
                    await asyncio.to_thread(self._cache.put_tree, spec.language, key, places)
            await server.close_some()

        if unknown:
            await self._asked(root, spec, files, work)
        return [place for path in paths for place in known[path]]

    def _known(self, root: Path, spec: ServerSpec, paths: tuple[str, ...], stamp: str) -> _Known:
        """What the cache knows of the files' present content; blocking. Of a raw answer alone the tree is made anew."""
        found: _Known = {}
        for path in paths:
            text = text_of(root / path)
            if text is None:
                continue
            key = key_of(text, stamp)
            places = self._cache.tree(spec.language, key, path)
            if places is None and (raw := self._cache.raw(spec.language, key)) is not None:
                places = answers.places(raw[0], path, text, raw[1])
                self._cache.put_tree(spec.language, key, places)
            if places is not None:
                found[path] = places
        return found


def matches(name_path: str, wanted: str) -> bool:
    """Exact, the last parts (``method`` or ``Class.method``), or a wildcard in any part (SYM-02)."""
    parts, want = name_path.split("."), wanted.split(".")
    if len(want) > len(parts):
        return False
    return all(word_pattern(w).fullmatch(p) for p, w in zip(parts[-len(want) :], want, strict=True))


async def _candidates(root: Path, files: _Files, word: str) -> tuple[str, ...]:
    found = await asyncio.to_thread(holding, root, list(files), word)
    if len(found) > MAX_OPEN:
        message = f"{len(found)} files hold {word}; the limit is {MAX_OPEN}."
        raise OpenDevError(ErrorKind.TOOL, message, "Give a more exact name, or file_path.")
    return found


def _by_language(root: Path, path: str | None) -> dict[ServerSpec, _Files]:
    """The project's files of each language; with ``path`` only those of its language. Blocking."""
    only = _spec_of(path) if path else None
    found: dict[ServerSpec, _Files] = {only: {}} if only else {}
    for name, stamp in tree(root, only.suffixes if only else SUFFIXES).items():
        spec = server_for(name, named=only is not None)
        if spec is not None:
            found.setdefault(spec, {})[name] = stamp
    return found


def _spec_of(path: str) -> ServerSpec:
    spec = server_for(path)
    if spec is None:
        known = ", ".join(sorted(SUFFIXES))
        message = f"There is no language server for {path}."
        raise OpenDevError(ErrorKind.NOT_FOUND, message, f"Symbols are known in these files: {known}.")
    return spec


def _stamp(program: str) -> str:
    """Which server answers; an update makes another stamp."""
    real = Path(program).resolve()
    try:
        return f"{real}\0{real.stat().st_mtime_ns}"
    except OSError:
        return str(real)
