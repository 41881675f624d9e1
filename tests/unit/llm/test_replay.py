"""Record and replay (MOD-11)."""

from pathlib import Path

import pytest
from opendev.core.chat import AssistantMessage, FinishReason, ModelFailed, ModelReply, Usage
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


@pytest.mark.parametrize("content", ["", "{}\n", "nonsense\n"])
def test_an_unusable_recording_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(content)
    with pytest.raises(OpenDevError, match=r"recording calls\.jsonl"):
        Replay(JsonlLog(path), "calls.jsonl")
