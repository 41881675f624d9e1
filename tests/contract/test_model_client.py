"""The model client's contract, in both dialects, whole and streamed, against a scripted server (MOD-09, group 5 of the cases)."""

import base64
from collections.abc import Iterator
from typing import cast

import pytest
from opendev.core.chat import (
    AssistantMessage,
    FinishReason,
    ImagePart,
    Message,
    ModelFailed,
    ModelReply,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from opendev.core.errors import ErrorKind
from support.model_requests import MODELS, make_request, make_service
from support.model_server import Billed, Call, ModelServer, Reply, call, calls, failing, text

pytestmark = pytest.mark.usefixtures("litellm_loaded")
WHOLE, STREAMED = False, True
THINKING = (
    {"type": "thinking", "thinking": "abc and more", "signature": "sig1"},
    {"type": "redacted_thinking", "data": "zz"},
)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


async def ask(
    server: ModelServer, model: str, streamed: bool, *replies: Reply, messages: tuple[Message, ...] = ()
) -> tuple[ModelReply | ModelFailed, str]:
    """The answer and the text that was streamed."""
    server.script = [*cast("list[Reply]", server.script), *replies]
    service = make_service(server)
    request = make_request(model, *messages)
    try:
        if not streamed:
            return await service.complete(request), ""
        shown, last = "", None
        async for item in service.stream(request):
            shown, last = (shown + item, last) if isinstance(item, str) else (shown, item)
        assert last is not None
        return last, shown
    finally:
        await service.close()


def good(answer: ModelReply | ModelFailed) -> ModelReply:
    assert isinstance(answer, ModelReply), answer
    return answer


@pytest.mark.req("VIS-02", "MOD-09")
async def test_a_picture_is_sent_in_the_dialect_of_the_provider(
    server: ModelServer, model: str, streamed: bool
) -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 30).decode()
    message = UserMessage(content="What is it?", images=(ImagePart(media_type="image/png", data=data),))
    answer, _ = await ask(server, model, streamed, text("A cat."), messages=(message,))
    assert good(answer).message.content == "A cat."
    blocks = {block["type"]: block for block in server.seen[0].body["messages"][-1]["content"]}
    assert blocks["text"]["text"] == "What is it?"
    if model.startswith("anthropic/"):
        assert blocks["image"]["source"] == {"type": "base64", "media_type": "image/png", "data": data}
    else:
        assert blocks["image_url"]["image_url"]["url"] == f"data:image/png;base64,{data}"


@pytest.mark.req("MOD-09")
async def test_text_and_parallel_calls_come_back_with_usage(
    server: ModelServer, model: str, streamed: bool
) -> None:  # M18: the pieces of two calls come interleaved
    wanted = calls(
        Call("read_file", {"file_path": "x"}, id="a"),
        Call("read_file", {"file_path": "y"}, id="b"),
        say="I look.",
        usage=Billed(1000, 20, 400),
        interleave=True,
        chunk=3,
    )
    answer, shown = await ask(server, model, streamed, wanted)
    reply = good(answer)
    assert reply.message == AssistantMessage(
        content="I look.",
        tool_calls=(
            ToolCall(id="a", name="read_file", arguments={"file_path": "x"}),
            ToolCall(id="b", name="read_file", arguments={"file_path": "y"}),
        ),
    )
    assert reply.finish is FinishReason.TOOL_CALLS
    assert (reply.usage.input, reply.usage.output, reply.usage.cached) == (1000, 20, 400)
    assert reply.usage.cost_usd == pytest.approx((600 * 10 + 400 * 1 + 20 * 100) / 1e6)
    assert not reply.usage.estimated
    assert shown == ("I look." if streamed else "")
    assert server.seen[0].stream is streamed
    assert server.seen[0].body["model"] == model.partition("/")[2]


@pytest.mark.req("PRM-09")
@pytest.mark.parametrize("name", MODELS)
async def test_system_prompt_is_two_blocks_for_anthropic_and_one_string_else(
    server: ModelServer, name: str
) -> None:
    await ask(server, name, WHOLE, text("ok"))
    body = server.seen[0].body
    if name.startswith("anthropic/"):
        assert body["system"] == [
            {"type": "text", "text": "You code.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Today."},
        ]
    else:
        assert body["messages"][0] == {"role": "system", "content": "You code.\n\nToday."}


async def test_equal_requests_are_equal_bytes(server: ModelServer, model: str, streamed: bool) -> None:
    await ask(server, model, streamed, text("ok"))
    await ask(server, model, streamed, text("ok"))
    assert server.seen[0].raw == server.seen[1].raw


async def test_unreadable_arguments_never_run_and_replay_as_valid_json(
    server: ModelServer, model: str
) -> None:
    answer, _ = await ask(server, model, STREAMED, call("write_file", '{"path": "a.py", "content": "#!/usr'))
    (broken,) = good(answer).message.tool_calls
    assert broken.arguments == {}
    assert "not valid JSON" in broken.problem
    assert "#!/usr" in broken.problem
    history = (
        UserMessage(content="go"),
        good(answer).message,
        ToolMessage(call_id=broken.id, name="write_file", content="Error: cut", is_error=True),
    )
    answer, _ = await ask(server, model, WHOLE, text("ok"), messages=history)
    good(answer)
    assert "#!/usr" not in server.seen[1].raw.decode()


async def test_a_cut_answer_is_marked(server: ModelServer, model: str, streamed: bool) -> None:
    cut = call("write_file", {"content": "# Title"}, finish="length")
    assert good((await ask(server, model, streamed, cut))[0]).finish is FinishReason.LENGTH


async def test_a_filtered_answer_is_marked(server: ModelServer, model: str, streamed: bool) -> None:
    answer, _ = await ask(server, model, streamed, text("", finish="content_filter"))
    assert good(answer).finish is FinishReason.FILTERED


async def test_missing_and_double_call_ids_become_unique(server: ModelServer, streamed: bool) -> None:
    wanted = calls(Call("a", id=""), Call("b", id="t:1"), Call("c", id="t:1"), Call("d", id=""))
    reply = good((await ask(server, "openai/test", streamed, wanted))[0])
    ids = [made.id for made in reply.message.tool_calls]
    assert [made.name for made in reply.message.tool_calls] == ["a", "b", "c", "d"]
    assert len(set(ids)) == 4
    assert all(ids)
    assert ids[1] == "t:1"


async def test_thinking_makes_the_round_trip_byte_identical(server: ModelServer, streamed: bool) -> None:
    name = "anthropic/claude-test"
    wanted = call("read_file", {"file_path": "a"}, thinking=THINKING, chunk=4)
    first = good((await ask(server, name, streamed, wanted))[0])
    assert first.message.thinking == THINKING
    again = AssistantMessage.model_validate_json(first.message.model_dump_json())
    result = ToolMessage(call_id=first.message.tool_calls[0].id, name="read_file", content="")
    history = (UserMessage(content="go"), again, result)
    await ask(server, name, streamed, text("ok"), messages=history)
    assert server.seen[1].messages[1]["content"][:2] == list(THINKING)
    await ask(server, "openai/test", streamed, text("ok"), messages=history)
    assert "sig1" not in server.seen[2].raw.decode()


async def test_empty_contents_are_never_sent(server: ModelServer, model: str) -> None:
    history = (
        SystemMessage(stable="s", dynamic=""),
        UserMessage(content="go"),
        AssistantMessage(content="", tool_calls=(ToolCall(id="a", name="read_file"),)),
        ToolMessage(call_id="a", name="read_file", content=" "),
        AssistantMessage(content=""),
        UserMessage(content=""),
        UserMessage(content="on"),
    )
    good((await ask(server, model, WHOLE, text("ok"), messages=history))[0])
    sent = server.seen[0].raw.decode()
    assert "(no output)" in sent
    assert '"text": ""' not in sent
    assert '"content": ""' not in sent
    assert '"text":""' not in sent
    assert '"content":""' not in sent


USAGES = {
    "absent": text("hello", usage=None),
    "zeros": text("hello", usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    "nulls": text("hello", usage={"prompt_tokens": None, "completion_tokens": None}),
}


@pytest.mark.req("MOD-07")
@pytest.mark.parametrize("case", USAGES)
async def test_missing_usage_is_estimated_and_says_so(server: ModelServer, streamed: bool, case: str) -> None:
    reply = good((await ask(server, "openai/test", streamed, USAGES[case]))[0])
    assert reply.usage.estimated
    assert reply.usage.input > 0
    assert reply.usage.output == 2
    assert reply.usage.cost_usd > 0


async def test_running_usage_is_not_summed(server: ModelServer) -> None:
    wanted = text("hello " * 20, usage=Billed(50, 30), cumulative_usage=True)
    reply = good((await ask(server, "openai/test", STREAMED, wanted))[0])
    assert (reply.usage.input, reply.usage.output, reply.usage.estimated) == (50, 30, False)


BROKEN = {
    "reset": {"drop_after": 4},
    "reset in arguments": {"drop_after": 6},
    "end without finish": {"eof_after": 4},
    "error event": {"fail_after": 4, "error": "Overloaded", "error_type": "overloaded_error"},
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_stream_is_tried_again_and_leaves_one_clean_message(
    server: ModelServer, model: str, case: str
) -> None:  # M25
    broken = call("read_file", {"file_path": "half"}, say="Hello world, half", chunk=4, **BROKEN[case])
    answer, shown = await ask(server, model, STREAMED, broken, text("Hello world, whole"))
    reply = good(answer)
    assert reply.message == AssistantMessage(content="Hello world, whole")
    assert reply.tries == 2
    assert shown.endswith("[The connection broke; the answer starts again.]\nHello world, whole")


async def test_a_stalled_stream_times_out_and_is_tried_again(server: ModelServer, model: str) -> None:  # M25
    server.script = [text("Hello world", stall_after=2), text("done")]
    service = make_service(server, retry={"idle_s": 0.3})
    items = [item async for item in service.stream(make_request(model))]
    assert isinstance(items[-1], ModelReply)
    assert items[-1].message.content == "done"
    await service.close()


FAILURES = {
    "bad key": (failing(401), ErrorKind.AUTH, 1),
    "no rights": (failing(403), ErrorKind.AUTH, 1),
    "no such model": (failing(404), ErrorKind.MODEL, 1),
    "bad request": (failing(400, "messages: odd"), ErrorKind.MODEL, 1),
    "too long": (failing(400, "This model's maximum context length is 8192 tokens."), ErrorKind.CONTEXT, 1),
    "no credit": (
        failing(429, "You exceeded your current quota", kind="insufficient_quota"),
        ErrorKind.RATE_LIMIT,
        1,
    ),
    "limited": (failing(429, "slow down"), ErrorKind.RATE_LIMIT, 5),
    "down": (failing(500), ErrorKind.MODEL, 5),
    "gateway": (failing(502), ErrorKind.MODEL, 5),
    "overloaded": (failing(529, kind="overloaded_error"), ErrorKind.MODEL, 5),
    "reset": (text("never", drop_after=0), ErrorKind.MODEL, 5),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_failures_are_honest_and_bounded(
    server: ModelServer, model: str, streamed: bool, case: str
) -> None:
    reply, kind, tries = FAILURES[case]
    answer, shown = await ask(server, model, streamed, *[reply] * 9)
    assert isinstance(answer, ModelFailed)
    assert answer.error.kind is kind
    assert answer.tries == len(server.seen) == tries
    assert model in answer.error.message
    assert "test-key" not in answer.model_dump_json()
    assert shown == ""


async def test_retry_after_is_waited_out(server: ModelServer, model: str) -> None:
    answer, _ = await ask(
        server,
        model,
        WHOLE,
        failing(429, retry_after=0.3),
        Reply(status=429, headers={"retry-after-ms": "200"}),
        text("ok"),
    )
    reply = good(answer)
    assert reply.tries == 3
    assert reply.latency_s < 5


@pytest.mark.req("CFG-04")
async def test_the_key_goes_to_the_provider_only(server: ModelServer, model: str) -> None:
    await ask(server, model, WHOLE, text("ok"))
    sent = server.seen[0]
    key = sent.headers.get("x-api-key") or sent.headers["authorization"].removeprefix("Bearer ")
    assert key == "test-key"
    assert "test-key" not in sent.raw.decode()
