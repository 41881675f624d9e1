"""A picture on its way from a tool to the vision role: which model, what is sent, what it costs (VIS-02, MOD-02)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.context.pressure import message_tokens
from opendev.core.agent import AgentStatus
from opendev.core.chat import IMAGE_TOKENS, ImagePart, ModelRequest, Role, UserMessage
from opendev.llm.cost import prompt_tokens
from support.agents import Bench
from support.scripted_model import Step, call, calls, done, says

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
LOOK = calls(call("analyze_image", file_path="a.png", question="What is it?"))


def bench_at(tmp_path: Path, *steps: Step, **settings: Any) -> Bench:
    bench = Bench(tmp_path, *steps)
    bench.settings = bench.settings.model_copy(update=settings)
    (bench.root / "a.png").write_bytes(PNG)
    return bench


@pytest.mark.req("VIS-02", "MOD-02")
@pytest.mark.parametrize(
    ("models", "seeing", "asked"),
    [
        ({Role.ACTION: "a/act", Role.VISION: "v/see"}, (), "v/see"),
        ({Role.ACTION: "a/act"}, ("a/act",), "a/act"),
    ],
)
async def test_the_vision_role_is_asked_with_the_picture_alone(
    tmp_path: Path, models: dict[Role, str], seeing: tuple[str, ...], asked: str
) -> None:
    bench = bench_at(tmp_path, LOOK, says("A cat."), done("It is a cat."), models=models, seeing=seeing)
    report = await bench.run()
    assert report.status is AgentStatus.DONE
    request = bench.model.requests[1]
    assert (request.model, request.role, request.tools) == (asked, Role.VISION, ())
    (message,) = request.messages
    assert isinstance(message, UserMessage)
    assert message.content == "What is it?"
    assert [image.media_type for image in message.images] == ["image/png"]
    assert "A cat." in bench.model.requests[2].messages[-1].content  # type: ignore[union-attr]
    assert all(not m.images for r in (bench.model.requests[0], bench.model.requests[2])
               for m in r.messages if isinstance(m, UserMessage))  # fmt: skip
    assert report.usage.input == 300  # the look is booked too
    assert request.scopes == bench.model.requests[0].scopes


@pytest.mark.req("MOD-02")
async def test_without_a_model_that_sees_the_tool_says_so(tmp_path: Path) -> None:
    bench = bench_at(tmp_path, LOOK, done("I cannot see."), models={Role.ACTION: "a/blind"})
    await bench.run()
    assert len(bench.model.requests) == 2
    said = bench.model.requests[1].messages[-1].content  # type: ignore[union-attr]
    assert "No vision model: a/blind, the action model, cannot see images." in said


def test_a_picture_counts_by_number_not_by_its_bytes() -> None:
    picture = ImagePart(media_type="image/png", data="A" * 4_000_000)
    plain, seen = UserMessage(content="x"), UserMessage(content="x", images=(picture,))
    assert message_tokens(seen) == message_tokens(plain) + IMAGE_TOKENS
    sizes = [
        prompt_tokens(ModelRequest(id="r", agent_id="a", model="m/x", messages=(message,)))
        for message in (plain, seen)
    ]
    assert sizes[1] == sizes[0] + IMAGE_TOKENS
    assert "AAAA" not in repr(seen)
