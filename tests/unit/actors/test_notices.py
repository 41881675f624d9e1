"""What the model service wants to tell reaches the run's events, while it goes on and at its end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opendev.actors import notices
from opendev.actors.notices import NoticeRelay
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import Event, Notice


class Model:
    """A model service's handle that hands notices out once."""

    name = "model"

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.dead = False
        self.asked = 0

    async def ask(self, method: str, *_args: Any) -> Any:
        assert method == "take_notices"
        self.asked += 1
        if self.dead:
            raise OpenDevError(ErrorKind.INFRA, "The model service died.")
        taken, self.waiting = tuple(self.waiting), []
        return taken

    async def stream(self, method: str, *_args: Any) -> AsyncIterator[Any]:
        yield method


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "POLL_S", 0.01)


@pytest.mark.usefixtures("quick")
async def test_notices_are_told_once_while_the_run_goes_on_and_at_its_end() -> None:
    model, told = Model(), list[Event]()
    relay = NoticeRelay(model, told.append)
    model.waiting = ["one", "two"]
    async with asyncio.timeout(5):
        while len(told) < 2:  # noqa: ASYNC110 - the relay asks by the clock
            await asyncio.sleep(0.01)
    relay_end = asyncio.create_task(relay.close())
    model.waiting = ["last"]
    await relay_end
    assert told == [Notice(level="warning", text=text) for text in ("one", "two", "last")]


@pytest.mark.usefixtures("quick")
async def test_a_service_that_died_is_not_asked_again_and_again() -> None:
    model, told = Model(), list[Event]()
    model.dead = True
    relay = NoticeRelay(model, told.append)
    await asyncio.sleep(0.1)
    assert model.asked == 1
    await relay.close()
    assert told == []
