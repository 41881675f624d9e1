"""The four shared managers of a conversation, made at the entry point and handed to everything below (CFG-09)."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...actors.hub import Hub
from ...core.approval import ApprovalLevel, Mode
from ...store.layout import Layout
from ...store.sessions import OpenSession, SessionStore
from ..held import held_session, writable
from ..project import Project, open_project


class ConfigManager:
    """The settings, read again when they change; what is chosen in the conversation counts above every file."""

    def __init__(self, working_dir: Path | None, overrides: Mapping[str, Any]) -> None:
        """Raises ``OpenDevError`` (usage, config)."""
        self._overrides = dict(overrides)
        self.project: Project = writable(open_project(working_dir, self._overrides))
        self.changes = 0  # how often the settings changed; who works with them compares it

    def choose(self, key: str, value: Any) -> None:
        """Use ``value`` in this conversation. Raises ``OpenDevError`` (config, usage); then nothing has changed."""
        self._load({**self._overrides, key: value})

    def reload(self) -> None:
        """Read the files again. Raises ``OpenDevError`` (config); then nothing has changed."""
        self._load(self._overrides)

    def _load(self, overrides: dict[str, Any]) -> None:
        fresh = open_project(self.project.path, overrides)
        kept = self.project.layout  # a state root that stands in for one that cannot be written stays
        self.project = Project(fresh.path, fresh.environment, kept, fresh.loaded, fresh.clock)
        self._overrides = overrides
        self.changes += 1


class SessionManager:
    """The session that is held now. Another one is held before this one is let go, so that a refusal changes nothing."""

    def __init__(self, project: Project, resume: str | None) -> None:
        """See ``held_session``. Raises ``OpenDevError`` (usage)."""
        self._project = project
        self._stack, self.held = _hold(project, resume)

    @property
    def store(self) -> SessionStore:
        """All sessions of the project."""
        return SessionStore(self._project.layout, self._project.path)

    @property
    def layout(self) -> Layout:
        """The state root."""
        return self._project.layout

    def take(self, resume: str | None) -> tuple[contextlib.ExitStack, OpenSession]:
        """Hold a new session (None) or one of the project's, beside the present one. Raises ``OpenDevError`` (usage)."""
        return _hold(self._project, resume)

    def switch(self, taken: tuple[contextlib.ExitStack, OpenSession]) -> None:
        """Let the present session go; the one that was taken is it now."""
        before = self._stack
        self._stack, self.held = taken
        before.close()

    def close(self) -> None:
        """Let it go. Idempotent."""
        self._stack.close()


class ModeManager:
    """Normal or plan. A wish is kept until the next query reads it (REPL-05)."""

    def __init__(self, wanted: Mode | None, present: Mode) -> None:
        self.pending = wanted
        self._present = present

    @property
    def shown(self) -> Mode:
        """The mode that the next query will have."""
        return self.pending or self._present

    def want(self, mode: Mode) -> None:
        """For the next query."""
        self.pending = None if mode is self._present else mode

    def toggle(self) -> Mode:
        """The other one, for the next query."""
        self.want(Mode.NORMAL if self.shown is Mode.PLAN else Mode.PLAN)
        return self.shown

    def take(self) -> Mode:
        """A query begins: the mode it has; the wish is used up."""
        self._present, self.pending = self.shown, None
        return self._present

    def became(self, mode: Mode) -> None:
        """A query ended in this mode: an approved plan ends plan mode (C-08); or another session has it."""
        self._present = mode
        if self.pending is mode:
            self.pending = None


class ApprovalManager:
    """Whether somebody is there to be asked, and how much passes without asking."""

    def __init__(self, config: ConfigManager) -> None:
        self._config = config
        self._leave = contextlib.ExitStack()

    @property
    def level(self) -> ApprovalLevel:
        """Of the next query."""
        return self._config.project.config.approval_level

    def choose(self, level: ApprovalLevel) -> None:
        """From the next query on, above every setting."""
        self._config.choose("auto_approve", level is ApprovalLevel.AUTO)
        self._config.choose("approval", level.value)

    def attach(self, hub: Hub) -> None:
        """From now on a person can be asked in this hub."""
        self._leave.close()
        self._leave.callback(hub.attach())

    def detach(self) -> None:
        """Nobody is there any more. Idempotent."""
        self._leave.close()


def _hold(project: Project, resume: str | None) -> tuple[contextlib.ExitStack, OpenSession]:
    stack = contextlib.ExitStack()
    return stack, stack.enter_context(held_session(project, resume))
