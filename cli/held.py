"""The session that a command works in: a new one, the newest or a named one; and a state root that can be written (D07, SES-08)."""

import contextlib
import sys
import tempfile
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from ..core.errors import OpenDevError
from ..store.layout import Layout
from ..store.sessions import OpenSession, SessionStore
from .project import Project


@contextlib.contextmanager
def writable(project: Project) -> Generator[Project]:
    """The project, with a temporary state root where its own cannot be written: the work is done, and a line on stderr says so."""
    try:
        project.layout.check_writable()
    except OpenDevError as error:
        home = Path(tempfile.mkdtemp(prefix="opendev-state-"))
        sys.stderr.write(f"opendev: {error.info.message} This run keeps its state in {home}; no later run finds it.\n")
        project = replace(project, layout=Layout(home))
    yield project


@contextlib.contextmanager
def held_session(project: Project, resume: str | None) -> Generator[OpenSession]:
    """A new session for None, the newest of the project for an empty name, else the named one; held until the block is left.

    Raises:
        OpenDevError: usage when there is none or another process holds it.
    """
    store = SessionStore(project.layout, project.path)
    with store.start() if resume is None else store.resume(resume) as session:
        yield session
