"""The session that a command works in: a new one, the newest or a named one; and a state root that can be written (D07, SES-08)."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..store.layout import Layout
from ..store.sessions import OpenSession, SessionStore
from .project import Project

_SETTINGS = ("agents", "commands", "reminders", "skills")
_SETTINGS_BYTES = 1_000_000


def writable(project: Project) -> Project:
    """The project, with a temporary state root where its own cannot be written: the work is done, and a line on stderr says so."""
    try:
        project.layout.check_writable()
    except OpenDevError as error:
        try:
            home = Path(tempfile.mkdtemp(prefix="opendev-state-"))
        except OSError:
            raise error from None  # nowhere on this machine can be written
        _take_settings(project.layout.home, home)
        sys.stderr.write(
            f"opendev: {error.info.message} This run keeps its state in {home}; no later run finds it.\n"
        )
        project = replace(project, layout=Layout(home))
    return project


def _take_settings(source: Path, home: Path) -> None:
    """The user's rules and settings hold in the other place too. Raises ``OpenDevError`` (config) when they cannot be read."""
    try:
        for entry in source.iterdir() if source.is_dir() else ():
            if entry.is_file() and entry.stat().st_size < _SETTINGS_BYTES:
                shutil.copyfile(entry, home / entry.name)
            elif entry.is_dir() and entry.name in _SETTINGS:
                shutil.copytree(entry, home / entry.name)
    except (OSError, shutil.Error) as error:
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"The settings in {source} cannot be read: {error}.",
            "Set OPENDEV_HOME to a folder you can read and write.",
        ) from error


@contextlib.contextmanager
def held_session(project: Project, resume: str | None) -> Generator[OpenSession]:
    """A new session for None, the newest of the project for an empty name, else the named one; held until the block is left.

    Raises:
        OpenDevError: usage when there is none or another process holds it.
    """
    store = SessionStore(project.layout, project.path)
    with store.start() if resume is None else store.resume(resume) as session:
        yield session
