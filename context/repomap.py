"""A map of the repository: the most referenced definitions, without bodies, within a bound of tokens (RET-08, RET-09).

Built beside the agent by ``python -m opendev.context.repomap ROOT HOME``, kept under the state root by content, read at the
start of the next run: no model call ever waits for it.
"""

import hashlib
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pathspec
from pydantic import ValidationError

from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..store.atomic import write_atomic
from .outline import SUFFIXES, Definition, Outline, outline
from .pressure import CHARS_PER_TOKEN

MIN_FILES = 10  # a smaller project is seen by one look at its folder
MAX_FILES = 3_000
_SAVE_S = 10.0  # a build that is ended early loses no more
BUILD_S = 60.0  # what is parsed by then is kept; the next build goes on from there
_FILE_BYTES = 400_000
_VERSION = 1
_KEPT_FILES = 400  # in the map; ``render`` chooses among them
_KEPT_DEFINITIONS = 40
_SHOWN_FILES = 80  # top-k
_SHOWN_DEFINITIONS = 12
_COMMON = 5  # a name that more files define says nothing about any of them
_TEST_SHARE = 0.2
_BOOST = 20.0  # of what the prompt names
_JUNK = frozenset(
    {"node_modules", "__pycache__", "venv", "vendor", "dist", "build", "target", "site-packages"}
)
_TEST = re.compile(r"(^|/)(tests?|__tests__|spec)/|(^|/)test_|[._](test|spec)\.|_test\.")


class Ranked(Frozen):
    """A definition and how many files refer to it, shared among those that define the same name."""

    definition: Definition
    score: float


class MappedFile(Frozen):
    """A file with its best definitions, in order of lines."""

    path: str
    score: float
    definitions: tuple[Ranked, ...]


class RepoMap(Frozen):
    """The ranked map. ``total`` is the number of source files it was made of."""

    version: int = _VERSION
    total: int = 0
    files: tuple[MappedFile, ...] = ()


class _Cache(Frozen):
    """Outlines by the hash of the content they were made of."""

    version: int = _VERSION
    outlines: dict[str, Outline] = {}


def map_folder(home: Path, root: Path) -> Path:
    """Where the map of ``root`` is kept, outside of the project (T-09)."""
    return home / "cache" / "repomap" / hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]


def load(home: Path, root: Path) -> RepoMap | None:
    """The map of the last build; None when there is none that can be read. Blocking."""
    try:
        found = RepoMap.model_validate_json((map_folder(home, root) / "map.json").read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.version == _VERSION else None


def render(found: RepoMap, prompt: str, tokens: int, root: Path) -> str:
    """The map as text of at most ``tokens``, best file first, what ``prompt`` names before all; empty when nothing is worth it.

    Files that are gone are left out. Blocking.
    """
    if found.total < MIN_FILES:
        return ""
    words = set(re.findall(r"[A-Za-z_]\w{2,}", prompt))
    room = tokens * CHARS_PER_TOKEN
    head = f"{found.total:,} source files; the most referenced, `line: signature`. Bodies are not shown."
    parts = [head]
    room -= len(head) + 1
    weighed = sorted(((_weight(file, words), file) for file in found.files), key=lambda pair: -pair[0])
    for weight, file in weighed[:_SHOWN_FILES]:
        if weight <= 0:
            break
        block = _block(file, words)
        if len(block) + 1 > room:
            continue
        if (root / file.path).is_file():
            parts.append(block)
            room -= len(block) + 1
    return "\n".join(parts) if len(parts) > 1 else ""


def _weight(file: MappedFile, words: Collection[str]) -> float:
    named = bool(set(re.split(r"[/.]", file.path)) & set(words)) or any(
        ranked.definition.name in words for ranked in file.definitions
    )
    return file.score + _BOOST if named else file.score


def _block(file: MappedFile, words: Collection[str]) -> str:
    best = sorted(file.definitions, key=lambda r: (r.definition.name not in words, -r.score))[
        :_SHOWN_DEFINITIONS
    ]
    shown = sorted((ranked.definition for ranked in best), key=lambda definition: definition.line)
    return "\n".join([file.path, *(f"  {'  ' * d.depth}{d.line}: {d.signature}" for d in shown)])


def build(root: Path, home: Path, budget_s: float = BUILD_S) -> RepoMap:
    """Bring the map of ``root`` up to date: only files whose content is new are parsed. Blocking.

    Raises:
        OpenDevError: it cannot be written (infra).
    """
    folder = map_folder(home, root)
    known = _load_cache(folder / "outlines.json")
    outlines: dict[str, Outline] = {}  # by path
    kept: dict[str, Outline] = {}  # by content
    until = time.monotonic() + budget_s
    save = time.monotonic() + _SAVE_S
    for path in source_files(root):
        try:
            data = (root / path).read_bytes()
        except OSError:
            continue
        key = hashlib.sha256(data).hexdigest()[:24]
        found = known.get(key) or kept.get(key)
        if found is None:
            if time.monotonic() > until:
                continue
            found = outline(Path(path).suffix, data)
            if time.monotonic() > save:
                _save(folder, {**known, **kept})
                save = time.monotonic() + _SAVE_S
        kept[key] = outlines[path] = found
    made = rank(outlines)
    _save(folder, kept)
    write_atomic(folder / "map.json", made.model_dump_json().encode())
    return made


def rank(outlines: Mapping[str, Outline]) -> RepoMap:
    """Score every definition by the number of other files that refer to its name, and every file by its definitions."""
    definers: dict[str, set[str]] = defaultdict(set)
    for path, found in outlines.items():
        for definition in found.definitions:
            definers[definition.name].add(path)
    users: Counter[str] = Counter()
    for found in outlines.values():
        users.update(name for name in found.names if name in definers)
    files: list[MappedFile] = []
    for path, found in outlines.items():
        names = set(found.names)
        ranked = [
            Ranked(definition=d, score=_score(d, users[d.name] - (d.name in names), len(definers[d.name])))
            for d in found.definitions
        ]
        best = sorted(ranked, key=lambda r: -r.score)[:_KEPT_DEFINITIONS]
        share = _TEST_SHARE if _TEST.search(path) else 1.0
        score = share * sum(r.score for r in best)
        ordered = tuple(sorted(best, key=lambda r: r.definition.line))
        if ordered:
            files.append(MappedFile(path=path, score=round(score, 3), definitions=ordered))
    files.sort(key=lambda file: (-file.score, file.path))
    return RepoMap(total=len(outlines), files=tuple(files[:_KEPT_FILES]))


def _score(definition: Definition, users: int, definers: int) -> float:
    """A plain lower-case word (``name``, ``index``) is often not this definition; a method is reached through its class."""
    name = definition.name
    if definers > _COMMON or name.startswith("__"):
        return 0.0
    plain = 0.3 if name.islower() and "_" not in name else 1.0
    private = 0.1 if name[0] == "_" else 1.0
    return round(users / definers * plain * private * (0.3 if definition.depth else 1.0), 3)


def source_files(root: Path) -> Iterator[str]:
    """Root-relative paths of source files, sorted by folder, at most ``MAX_FILES``: no links, nothing hidden or ignored at the root."""
    try:
        lines = (root / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    ignored = pathspec.GitIgnoreSpec.from_lines(lines)
    count = 0
    for folder, folders, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        folders[:] = sorted(
            name
            for name in folders
            if name not in _JUNK
            and name[0] != "."
            and not ignored.match_file(f"{(inside / name).as_posix()}/")
        )
        for name in sorted(files):
            path = Path(folder, name)
            if (
                path.suffix not in SUFFIXES
                or ".min." in name
                or ignored.match_file((inside / name).as_posix())
            ):
                continue
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _FILE_BYTES:
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield (inside / name).as_posix()


def _save(folder: Path, outlines: dict[str, Outline]) -> None:
    write_atomic(folder / "outlines.json", _Cache(outlines=outlines).model_dump_json().encode())


def _load_cache(path: Path) -> dict[str, Outline]:
    try:
        found = _Cache.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return {}
    return found.outlines if found.version == _VERSION else {}


def main(arguments: list[str]) -> int:
    """The process that builds: ``ROOT HOME``; as considerate as it can be, and ended by its own clock."""
    os.nice(15)
    try:
        build(Path(arguments[0]), Path(arguments[1]))
    except (OpenDevError, OSError):
        return 1  # the map is a help, not a need: the next run tries again
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
