"""Installed plugins: folders under ``<home>/plugins`` that hold agents, skills or commands; they count as the user's own (CFG-07)."""

import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from .atomic import disk_error, make_private

PARTS = ("agents", "skills", "commands")
MAX_PLUGINS = 50
MAX_FILES = 500
MAX_BYTES = 5_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One folder; ``holds`` counts the Markdown files of each part it has."""

    name: str
    folder: Path
    holds: Mapping[str, int]


def plugins(home: Path) -> tuple[Plugin, ...]:
    """What is installed, by name. Blocking."""
    try:
        folders = sorted(path for path in (home / "plugins").iterdir() if _NAME.fullmatch(path.name))
    except OSError:
        return ()
    found = (Plugin(folder.name, folder, _holds(folder)) for folder in folders[:MAX_PLUGINS])
    return tuple(plugin for plugin in found if plugin.holds)


def install(home: Path, source: Path) -> Plugin:
    """Copy a folder of this machine; hooks, MCP servers and programs in it are left out. Blocking.

    Raises:
        OpenDevError: usage when it is no plugin, is too large or is installed already; infra when the disk refuses.
    """
    name = source.resolve().name
    files = _files(source)
    if not _NAME.fullmatch(name) or not files:
        raise OpenDevError(
            ErrorKind.USAGE,
            f"{source} is no plugin.",
            f"A plugin is a folder, named by letters, digits, - and _, with Markdown files in {', '.join(PARTS)}.",
        )
    if len(files) > MAX_FILES or sum(path.stat().st_size for path in files) > MAX_BYTES:
        raise OpenDevError(
            ErrorKind.USAGE, f"{source} is too large.", f"At most {MAX_FILES} files and {MAX_BYTES:,} bytes."
        )
    target = home / "plugins" / name
    if target.exists():
        raise OpenDevError(
            ErrorKind.USAGE, f"{name} is installed already.", f"First: /plugins remove {name}."
        )
    new = target.with_name(f".{name}-{uuid.uuid4().hex[:8]}")
    try:
        for path in files:
            copy = new / path.relative_to(source)
            make_private(copy.parent)
            shutil.copyfile(path, copy)
        new.rename(target)  # all of it or nothing
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise disk_error("install into", target, error) from error
    return Plugin(name, target, _holds(target))


def remove(home: Path, name: str) -> None:
    """Delete an installed plugin. Raises ``OpenDevError`` (usage) when there is none of that name. Blocking."""
    folder = home / "plugins" / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        known = ", ".join(plugin.name for plugin in plugins(home)) or "none"
        raise OpenDevError(ErrorKind.USAGE, f"There is no plugin `{name[:80]}`.", f"Installed: {known}.")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise disk_error("remove", folder, error) from error


def _files(source: Path) -> list[Path]:
    """Regular files below the parts; links are left out: they could lead elsewhere tomorrow."""
    found = (path for part in PARTS for path in sorted((source / part).rglob("*")))
    return [path for path in found if path.is_file() and not path.is_symlink()][: MAX_FILES + 1]


def _holds(folder: Path) -> dict[str, int]:
    counts = {
        part: sum(
            1 for path in _files(folder) if path.suffix == ".md" and path.relative_to(folder).parts[0] == part
        )
        for part in PARTS
    }
    return {part: count for part, count in counts.items() if count}
