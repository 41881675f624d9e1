"""The files under a root that a glob names, without git's own folder, machine-made junk and the settings agents work under."""

import os
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.scope import Scope
from ..policy.secrets import secrets_of

JUNK = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
_MAX_FILES = 200_000
_SETTINGS = frozenset(
    {".opendev", ".mcp.json"}
)  # a glob never reaches what would widen an agent's own rights


def matching_files(root: Path, glob: str, deny_read: tuple[str, ...]) -> list[str]:
    """Root-relative paths of regular files that match ``glob``, sorted; links are not followed, ``deny_read`` is left out.

    The glob is anchored at the root and spelled as in a ticket's scope: ``src`` names all files below it, ``*.py`` the
    top folder only, ``**/*.py`` every depth. Empty: every file.
    """
    spec = Scope(may=(glob,) if glob else ())
    secrets = secrets_of(deny_read)
    return sorted(path for path in _walk(root) if spec.allows(path) and not secrets.match(path))


def _walk(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in JUNK and name.casefold() not in _SETTINGS)
        for name in files:
            path = Path(folder, name)
            if name == ".git" or name.casefold() in _SETTINGS or path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > _MAX_FILES:
                raise OpenDevError(
                    ErrorKind.TOOL,
                    f"More than {_MAX_FILES:,} files lie under the working folder.",
                    "Run in a smaller folder.",
                )
            yield path.relative_to(root).as_posix()
