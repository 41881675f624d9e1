"""Titles of conversations: one call of the light model, from the last four messages, once, and never in the way (SES-07)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.titles import Titler
from opendev.core.chat import AssistantMessage, ModelReply, ModelRequest, Role, UserMessage
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.session import SessionMeta
from opendev.store.session_files import SessionFiles
from support.scripted_model import says

Answer = Callable[[ModelRequest], ModelReply]


class Light:
    """The model service, as the titler sees it."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[ModelRequest] = []
        self._answer = answer
        self.name, self.pid = "model", 0

    async def ask(self, method: str, *args: Any) -> Any:
        assert method == "complete"
        self.asked.append(args[0])
        return self._answer(args[0])

    def stream(self, method: str, *args: Any) -> Any:
        raise NotImplementedError


def session(folder: Path, turns: int) -> SessionFiles:
    files = SessionFiles(folder, "s1")
    rows = [
        m for n in range(turns) for m in (UserMessage(content=f"q{n}"), AssistantMessage(content=f"a{n}"))
    ]
    files.append([row.model_dump_json() for row in rows])
    files.update(lambda _: SessionMeta(id="s1", metadata={"title": "q0"}))
    return files


async def entitle(files: SessionFiles, light: Light) -> str:
    titler = Titler(light, files)
    titler.start("p/light", ("run:s1",))
    await titler.close()
    meta = files.meta()
    assert meta is not None
    return str(meta.metadata["title"])


@pytest.mark.req("SES-07")
async def test_a_title_is_made_once_of_the_last_four_messages(tmp_path: Path) -> None:
    light = Light(lambda _: says('"' + "Herons and other birds " * 5 + '"'))
    files = session(tmp_path, 3)
    wanted = ("Herons and other birds " * 5)[:50]
    assert [await entitle(files, light), await entitle(files, light)] == [wanted, wanted]
    (asked,) = light.asked
    assert (asked.model, asked.role, asked.scopes) == ("p/light", Role.COMPACT, ("run:s1",))
    told = json.loads(str(getattr(asked.messages[1], "content", "")))
    assert [row["content"] for row in told] == ["q1", "a1", "q2", "a2"]


@pytest.mark.req("SES-07")
async def test_a_short_conversation_and_a_model_that_fails_keep_the_first_words(tmp_path: Path) -> None:
    def fails(_: ModelRequest) -> ModelReply:
        raise OpenDevError(ErrorKind.INFRA, "gone")

    assert await entitle(session(tmp_path / "short", 1), light := Light(lambda _: says("T"))) == "q0"
    assert light.asked == []
    assert await entitle(session(tmp_path / "long", 2), Light(fails)) == "q0"
    assert await entitle(session(tmp_path / "empty", 2), Light(lambda _: says("  "))) == "q0"
