"""A small repository and a keeper for it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.core.clock import SystemClock
from opendev.worktrees.keeper import Keeper
from support.repos import ENV, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def open_keeper(repo: Path, home: Path) -> Callable[[], Keeper]:
    return lambda: Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)


@pytest.fixture
def keeper(open_keeper: Callable[[], Keeper]) -> Keeper:
    return open_keeper()
