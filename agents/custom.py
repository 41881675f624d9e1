"""The user's own agent types, from Markdown files with front matter; a project's own only after consent (CFG-11, SUB-15, AGT-09)."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..core.agent import AgentSpec
from ..core.errors import ErrorKind, OpenDevError
from ..store.consent import agreed
from ..store.plugins import plugins
from .specs import builtin_specs

MAX_BYTES = 256_000  # of one file
MAX_FILES = 200  # of one folder


@dataclass(frozen=True, slots=True)
class CustomAgents:
    """What the folders hold: types that may be used, the file of each, and sentences: ``refused`` for every file that cannot be
    used, ``notes`` for one that holds a key that does nothing, or waits for the user's consent."""

    specs: tuple[AgentSpec, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def load_custom(home: Path, project: Path) -> CustomAgents:
    """The agents of ``home/agents``, of plugins and of ``project/.opendev/agents``, any depth, ``*.md``.

    A project's file comes with the repository: it is used only when its content is named in the user's consent file, and never
    in place of a type of the user's. A file that cannot be used costs nobody else's agent. Blocking.
    """
    installed = [plugin.folder / "agents" for plugin in plugins(home)]
    own = [(path, False) for folder in (home / "agents", *installed) for path in _files(folder)]
    theirs = [(path, True) for path in _files(project / ".opendev" / "agents")]
    if not own and not theirs:
        return CustomAgents()
    from .agent_file import read_agent  # YAML and every tool: 50 ms that most starts need not pay

    consent = agreed(home)
    found: dict[str, tuple[AgentSpec, Path]] = {}
    refused: list[str] = []
    notes: list[str] = []
    for path, foreign in (*own, *theirs):
        try:
            data = _content(path)
            if foreign and consent.get(str(path)) != hashlib.sha256(data).hexdigest():
                notes.append(
                    f"The agent file {path} comes with the project and you have not agreed to it. "
                    f"Read it; to agree: opendev config trust {path.relative_to(project)}."
                )
                continue
            spec, ignored = read_agent(path, data)
        except OpenDevError as error:
            refused.append(error.info.sentence())
            continue
        if spec is None:
            continue
        if spec.name in found:
            refused.append(f"The agent file {path} is not used: {found[spec.name][1]} has the same name.")
            continue
        found[spec.name] = (spec, path)
        if ignored:
            notes.append(f"The agent file {path} sets {', '.join(ignored)}, which OpenDev does not use.")
    specs = tuple(spec for spec, _ in found.values())
    files = {name: path for name, (_, path) in found.items()}
    return CustomAgents(specs, files, tuple(refused), tuple(notes))


def agent_types(custom: Iterable[AgentSpec]) -> dict[str, AgentSpec]:
    """All types by name, the built-in ones first."""
    return {**builtin_specs(), **{spec.name: spec for spec in custom}}


def _files(folder: Path) -> list[Path]:
    """Sorted, so that the order is the same on every machine."""
    return sorted(path for path in folder.rglob("*.md") if path.is_file())[:MAX_FILES]


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OpenDevError(
            ErrorKind.CONFIG, f"The agent file {path} cannot be read: {error.strerror or error}."
        ) from error
    if len(data) > MAX_BYTES:
        raise OpenDevError(ErrorKind.CONFIG, f"The agent file {path} is larger than {MAX_BYTES:,} bytes.")
    return data
