"""What every command opens first: the environment, the state root, the project folder and its configuration."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..configs.environment import Environment
from ..configs.load import Loaded, load_config, read_environment
from ..configs.schema import AppConfig
from ..core.clock import Clock, SystemClock
from ..core.errors import ErrorKind, OpenDevError
from ..store.layout import Layout


@dataclass(frozen=True)
class Project:
    """The four things every command needs, and a clock."""

    path: Path
    environment: Environment
    layout: Layout
    loaded: Loaded
    clock: Clock

    @property
    def config(self) -> AppConfig:
        """The resolved settings."""
        return self.loaded.config


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise OpenDevError(
            ErrorKind.USAGE,
            "The current folder does not exist any more.",
            "Go to another, or give --working-dir.",
        ) from error


@dataclass(frozen=True)
class Place:
    """Where a command works, before any setting is read."""

    path: Path
    environment: Environment
    layout: Layout


def open_place(working_dir: Path | None) -> Place:
    """The project's folder, as it was named. Raises ``OpenDevError`` (usage) when there is none."""
    path = (working_dir or _here()).expanduser().absolute()
    if not path.is_dir():
        raise OpenDevError(
            ErrorKind.USAGE, f"The folder {path} does not exist.", "Give an existing folder to --working-dir."
        )
    named = os.fsencode(path.resolve()).decode("utf-8", "backslashreplace")
    if named != str(path.resolve()):
        raise OpenDevError(
            ErrorKind.USAGE,
            f"The name of the folder {named} is no UTF-8, so it cannot be worked in.",
            "Rename it.",
        )
    environment = read_environment()
    return Place(path, environment, Layout(environment.home))


def open_project(working_dir: Path | None, cli: Mapping[str, Any] | None = None) -> Project:
    """Open the project at ``working_dir`` (default: the current folder). Raises ``OpenDevError`` (usage, config)."""
    place = open_place(working_dir)
    loaded = load_config(project=place.path, environment=place.environment, cli=cli)
    return Project(place.path.resolve(), place.environment, place.layout, loaded, SystemClock())
