"""A sandbox for the command line, and a scripted model for it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Sandbox
from support.model_server import ModelServer, Reply, Seen


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """An empty project that is no repository, without a model."""
    made = Sandbox(tmp_path / "project", tmp_path / "home")
    made.project.mkdir()
    made.home.mkdir()
    yield made
    made.close()


@pytest.fixture
def serve(sandbox: Sandbox) -> Iterator[Callable[..., ModelServer]]:
    """Give the sandbox a model that plays ``replies``; a function answers by the request instead."""
    with ExitStack() as stack:

        def start(*replies: Reply | Callable[[Seen], Reply], **options: Any) -> ModelServer:
            first = replies[0] if replies else None
            script: Any = first if callable(first) else replies
            sandbox.server = stack.enter_context(ModelServer(script, **options))
            return sandbox.server

        yield start
