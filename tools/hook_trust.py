"""A project's hooks act only after the user's consent, and only as long as what they run stays what it was (T12, T16)."""

import hashlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ..core.chat import canonical
from ..core.hooks import Hooks, HookSet
from ..store.consent import agreed

SETTINGS = ".opendev/settings.json"
FOLDER = ".opendev/hooks"  # every file in it belongs to the hooks
MAX_FILES = 500
MAX_BYTES = 50_000_000  # of all files together
_PROJECT = re.compile(r"\$\{?OPENDEV_PROJECT_DIR\}?/?")
_BETWEEN = re.compile(r"[\s'\"`=;|&()<>{}$]+")


def key_of(project: str) -> str:
    """The name under which the consent to a project's hooks is kept."""
    return f"{project}/{SETTINGS}#hooks"


def digest_of(hooks: Hooks, project: str) -> str:
    """SHA-256 of the hooks and of every file of the project that their commands name, or that lies in ``.opendev/hooks``.
    Empty, which nobody can agree to, when these are too many or cannot be read. Blocking."""
    whole = hashlib.sha256(canonical(hooks.model_dump(mode="json")).encode())
    left = MAX_BYTES
    try:
        for count, path in enumerate(sorted(_files(hooks, Path(project)))):
            with path.open("rb") as file:
                data = file.read(left + 1)
            left -= len(data)
            if left < 0 or count >= MAX_FILES:
                return ""
            whole.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode("utf-8", "surrogateescape"))
    except OSError:
        return ""
    return whole.hexdigest()


def admit(own: Hooks, projects: Hooks, project: Path, home: Path) -> tuple[HookSet, tuple[str, ...]]:
    """The hooks of a run, and a sentence when those of the project are left out for want of consent. Blocking."""
    if not projects.commands:
        return HookSet(own=own, project=str(project)), ()
    digest = digest_of(projects, str(project))
    if digest and agreed(home).get(key_of(str(project))) == digest:
        return HookSet(own=own, projects=projects, project=str(project), digest=digest), ()
    shown = "; ".join(command[:100] for command in projects.commands[:5])
    note = (
        f"The hooks in {project / SETTINGS} come with the project and you have not agreed to them as they are now: they do "
        f"not run. They would run: {shown}. Read them; to agree: opendev hooks trust."
    )
    return HookSet(own=own, project=str(project)), (note,)


def _files(hooks: Hooks, project: Path) -> set[Path]:
    found = {path for word in _words(hooks) if _there(path := project / word) and _near(path, project)}
    return found | {path for path in (project / FOLDER).rglob("*") if path.is_file()}


def _there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a name
        return False


def _near(path: Path, project: Path) -> bool:
    return path.is_relative_to(project) or path.resolve().is_relative_to(project)


def _words(hooks: Hooks) -> Iterator[str]:
    """Whatever in a command could be the name of a file: the shell's words, and what stands between signs."""
    for command in hooks.commands:
        text = _PROJECT.sub("", command)
        pieces = _BETWEEN.split(text)
        yield from pieces
        yield from (piece[2:] for piece in pieces if piece.startswith("-"))  # -r./file
        try:
            yield from shlex.split(text)
        except ValueError:
            continue  # open quotes: the pieces above are all there is
