"""A conversation in this process, with a scripted model, a project and a state root of its own."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opendev.cli.repl.controller import Controller, converse
from opendev.cli.task import PromptOptions
from opendev.core.events import Event
from opendev.core.scope import Scope
from opendev.ui.repl.ports import CommandResult
from support.model_server import ModelServer
from support.waiting import until

MODEL = "openai/gpt-4o-mini"


class Talk:
    """One conversation; ``events`` are those it has shown so far."""

    def __init__(self, controller: Controller) -> None:
        self.repl = controller
        self.events: list[Event] = []
        self._reading = asyncio.create_task(self._read(controller))

    async def say(self, text: str) -> CommandResult:
        """A line, and the turn it starts to its end."""
        ended = len(self.all("run_finished"))
        result = await self.repl.submit(text)
        if self.repl.turns.busy:
            await self.repl.turns.idle()
            await self.seen("run_finished", ended + 1)  # events are on disk before they are shown
        return result

    async def seen(self, kind: str, count: int = 1) -> Any:
        """The event of this kind, once so many of them were shown."""
        await until(lambda: len(self.all(kind)) >= count, 20)
        return self.all(kind)[count - 1]

    def all(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.kind == kind]

    @property
    def notices(self) -> str:
        return "\n".join(event.text for event in self.all("notice"))

    async def over(self) -> None:
        await self._reading

    async def _read(self, controller: Controller) -> None:
        async for event in controller.events():
            self.events.append(event)


@pytest.fixture(scope="session", autouse=True)
def _openai(openai_loaded: None) -> None:
    """A run's own preloading thread would outlive a short test."""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The project and the state root."""
    for name in list(os.environ):  # noqa: TID251 - a test's own process
        if name.startswith(("OPENDEV_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    monkeypatch.setenv("OPENDEV_HOME", str(home))
    monkeypatch.setenv("OPENDEV_DISABLE_REMOTE_MODELS", "1")
    monkeypatch.setenv("OPENDEV_RETRY__BASE_S", "0.01")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # nobody; so litellm is not needed
    return project, home


Opened = AbstractAsyncContextManager[Talk]


@pytest.fixture
def talk(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Opened]:
    """``talk(server, approval="auto", resume=…)`` opens one; it is closed, and its events are all there, afterwards."""

    @asynccontextmanager
    async def open_one(
        server: ModelServer | None = None,
        resume: str | None = None,
        runtime: Any = "local",
        **settings: Any,
    ) -> AsyncGenerator[Talk]:
        if server is not None:
            for name, value in server.env().items():
                monkeypatch.setenv(name, value)
            settings.setdefault("model", MODEL)
        options = PromptOptions(
            "", "text", "Main", None, "", Scope(), "", None, None, runtime, None, None, resume
        )
        async with converse(folders[0], {"approval": "auto", **settings}, options) as controller:
            made = Talk(controller)
            await asyncio.sleep(0)
            yield made
        await made.over()

    return open_one
