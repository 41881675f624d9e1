"""Record and replay (MOD-11)."""

from pathlib import Path

import pytest
from opendev.core.chat import (
    AssistantMessage,
    FinishReason,
    MessageClass,
    ModelFailed,
    ModelReply,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.llm.replay import Replay, digest, recorded_line
from opendev.store.atomic import JsonlLog
from support.model_requests import make_request


def reply(content: str) -> ModelReply:
    usage = Usage(input=1, output=2)
    message = AssistantMessage(content=content, thinking=({"type": "thinking", "signature": "s"},))
    return ModelReply(message=message, finish=FinishReason.STOP, usage=usage, model="openai/test")


def test_answers_come_back_in_order_and_a_miss_is_clear(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "calls.jsonl")
    asked, other = make_request(), make_request("openai/other")
    for content in ("one", "two"):
        log.append(recorded_line(asked, reply(content)))
    replay = Replay(log, "calls.jsonl")
    again = make_request(id="r2", agent_id="elsewhere", scopes=("run:x",), stream=True)
    assert [replay.answer(again), replay.answer(asked)] == [reply("one"), reply("two")]
    for request, why in ((asked, "more often"), (other, "is not in it")):
        missed = replay.answer(request)
        assert isinstance(missed, ModelFailed)
        assert missed.error.kind is ErrorKind.MODEL
        assert why in missed.error.message
        assert digest(request)[:12] in missed.error.message


def test_what_differs_in_every_run_does_not_count() -> None:
    call = AssistantMessage(tool_calls=(ToolCall(id="c1", name="run_command"),))

    def asked(date: str, output: str, *, failed: bool = False, goal: str = "go") -> str:
        result = ToolMessage(
            call_id="c1", name="run_command", content=output, is_error=failed, summary=output
        )
        nudge = UserMessage(content=output, msg_class=MessageClass.DIRECTIVE)
        system = SystemMessage(stable="You code.", dynamic=date)
        return digest(make_request("openai/test", system, UserMessage(content=goal), call, result, nudge))

    first = asked("Monday", "0.1 s")
    assert asked("Tuesday", "0.2 s") == first
    assert len({first, asked("Monday", "0.1 s", failed=True), asked("Monday", "0.1 s", goal="stop")}) == 3


@pytest.mark.parametrize("content", ["", "{}\n", "nonsense\n"])
def test_an_unusable_recording_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(content)
    with pytest.raises(OpenDevError, match=r"recording calls\.jsonl"):
        Replay(JsonlLog(path), "calls.jsonl")
