"""The model service: one ledger for all agents, budgets, shared gates, streaming in batches, record and replay (ACT-14, MOD-03)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from opendev.actors import model_service
from opendev.actors.model_service import ModelService
from opendev.core.chat import ModelFailed, ModelReply, Role, Usage, UserMessage
from opendev.core.errors import ErrorKind
from opendev.core.ticket import Run
from opendev.llm.recipes import MODEL, fence
from opendev.store.atomic import JsonlLog
from support.model_requests import make_request, make_service
from support.model_server import Billed, ModelServer, Reply, Seen, failing, text

MakeService = Callable[..., ModelService]


@pytest.fixture
async def services() -> AsyncIterator[MakeService]:
    made: list[ModelService] = []

    def make(*args: Any, **kwargs: Any) -> ModelService:
        made.append(make_service(*args, **kwargs))
        return made[-1]

    yield make
    for service in made:
        await service.close()


async def tokens(service: ModelService) -> tuple[int, int, int]:
    usage = Usage.model_validate((await service.totals())["usage"])
    return usage.input, usage.output, usage.cached


@pytest.mark.req("ACT-14")
async def test_totals_of_many_agents_agree_with_the_providers_bill(services: MakeService) -> None:
    replies = [text(f"answer {n}", usage=Billed(100 + n, 10 + n, n)) for n in range(12)]
    replies[3:3] = [failing(500), failing(429, retry_after=0.05)]
    with ModelServer(replies) as server:
        service = services(server)
        answers = await asyncio.gather(
            *(
                service.complete(make_request(agent_id=f"a{n}", scopes=("run:r", f"task:{n % 2}")))
                for n in range(12)
            )
        )
        assert all(isinstance(answer, ModelReply) for answer in answers)
        totals, bill = await service.totals(), server.billed()
        assert await tokens(service) == (bill.input, bill.output, bill.cached)
        assert totals["calls"] == len(server.seen) == 14
        assert totals["scopes"]["run:r"] == {"usage": totals["usage"], "calls": 14}
        by_task = [totals["scopes"][f"task:{n}"]["usage"]["input"] for n in range(2)]
        assert sum(by_task) == bill.input


@pytest.mark.slow
async def test_totals_survive_kill_9(services: MakeService, tmp_path: Path) -> None:
    journal = str(tmp_path / "ledger.jsonl")
    script = (
        "import asyncio, json, sys\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from opendev.actors.model_service import ModelService\n"
        "from support.model_requests import make_request, PRICES\n"
        "async def main():\n"
        "    service = ModelService({'env': json.loads(sys.argv[1]), 'journal': sys.argv[2], 'prices': PRICES})\n"
        "    for _ in range(3): await service.complete(make_request(scopes=('run:r',)))\n"
        "    print('third', flush=True)\n"
        "    await service.complete(make_request(scopes=('run:r',)))\n"
        "asyncio.run(main())\n"
    )

    def answer(seen: Seen) -> Reply:
        return text("ok", usage=Billed(100 * seen.number, 7), latency_s=30.0 if seen.number == 4 else 0.0)

    with ModelServer(answer) as server:
        tests = str(Path(__file__).parents[2])
        command = [sys.executable, "-c", script, json.dumps(server.env()), journal, tests]
        child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert await child.stdout.readline() == b"third\n"
        while len(server.seen) < 4:  # noqa: ASYNC110  # the server has no event for it
            await asyncio.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()
    restored = services(journal=journal)
    totals = await restored.totals()
    assert await tokens(restored) == (600, 21, 0)
    assert totals["calls"] == totals["scopes"]["run:r"]["calls"] == 3
    assert totals["lost"]["calls"] == 1


async def test_a_budget_stops_with_less_than_one_call_too_much(services: MakeService) -> None:
    with ModelServer([text("ok", usage=Billed(1000, 300))], repeat=True) as server:
        service = services(server)
        await service.open_scope("task:a", 0.2, None)  # one call costs $0.04
        answers = [
            await service.complete(make_request(scopes=("task:a",), max_tokens=2000)) for _ in range(8)
        ]
        failed = [a for a in answers if isinstance(a, ModelFailed)]
        assert {a.error.kind for a in failed} == {ErrorKind.BUDGET}
        assert "task:a" in failed[0].error.message
        spent = Usage.model_validate((await service.totals())["scopes"]["task:a"]["usage"]).cost_usd
        assert 0.15 < spent < 0.2 + 0.04
        assert len(server.seen) == len(answers) - len(failed)
        assert isinstance(await service.complete(make_request(scopes=("task:b",))), ModelReply)


@pytest.mark.parametrize(
    "model", ["openai/unpriced", pytest.param("anthropic/unpriced", marks=pytest.mark.xdist_group("litellm"))]
)
async def test_an_unpriced_model_is_charged_an_assumed_price_and_says_so_once(
    services: MakeService, model: str
) -> None:
    with ModelServer([text("ok", usage=Billed(1000, 100))], repeat=True) as server:
        service = services(server, assumed_price={"input": 20.0, "output": 200.0})
        await service.open_scope("task:a", 0.1, None)  # one call costs $0.04
        answers = [
            await service.complete(make_request(model, scopes=("task:a",), max_tokens=300)) for _ in range(4)
        ]
        paid = [answer for answer in answers if isinstance(answer, ModelReply)]
        assert [(a.usage.cost_usd, a.usage.estimated) for a in paid] == [(pytest.approx(0.04), True)] * 2
        failed = [answer for answer in answers if isinstance(answer, ModelFailed)]
        assert {answer.error.kind for answer in failed} == {ErrorKind.BUDGET}
        assert len(server.seen) == 2
        (notice,) = await service.take_notices()
        assert model in notice
        assert "$20 (input) and $200 (output)" in notice
        assert "opendev config set prices" in notice
        assert await service.complete(make_request(model))
        assert await service.take_notices() == ()


async def test_without_a_setting_three_and_fifteen_dollars_are_assumed(services: MakeService) -> None:
    with ModelServer([text("ok", usage=Billed(1000, 100))]) as server:
        answer = await services(server).complete(make_request("openai/unpriced"))
    assert isinstance(answer, ModelReply)
    assert (answer.usage.input, answer.usage.output, answer.usage.estimated) == (1000, 100, True)
    assert answer.usage.cost_usd == pytest.approx(0.0045)


async def test_one_limiter_for_all_agents(services: MakeService) -> None:
    with ModelServer([failing(429, "slow down")], repeat=True) as server:
        service = services(server)
        answers = await asyncio.gather(*(service.complete(make_request(agent_id=f"a{n}")) for n in range(16)))
        kinds = {a.error.kind for a in answers if isinstance(a, ModelFailed)}
        assert kinds == {ErrorKind.RATE_LIMIT}
        assert len(answers) == 16
        assert len(server.seen) <= 16 + 2 * 5
        notices = await service.take_notices()
        assert any("Next try in" in notice for notice in notices)
        assert len(notices) <= 100
        assert await service.take_notices() == ()


@pytest.mark.req("MOD-03")
async def test_slots_are_filled_on_first_use_and_keys_checked_then(services: MakeService) -> None:
    service = services()
    assert (await service.ping()) == {"pid": os.getpid(), "slots": []}
    answer = await service.complete(make_request("anthropic/claude-x", role=Role.COMPACT))
    assert isinstance(answer, ModelFailed)
    assert answer.error.kind is ErrorKind.AUTH
    assert "ANTHROPIC_API_KEY" in answer.error.hint
    assert (await service.ping())["slots"] == ["compact:anthropic"]


@pytest.mark.parametrize("model", ["gpt-5", "nonsense/model"])
async def test_a_wrong_model_name_is_a_sentence(services: MakeService, model: str) -> None:
    answer = await services().complete(make_request(model))
    assert isinstance(answer, ModelFailed)
    assert answer.error.kind is ErrorKind.CONFIG
    assert "provider/NAME" in answer.error.hint


async def test_text_streams_in_few_batches_the_first_at_once(services: MakeService) -> None:
    with ModelServer([text("word " * 40, chunk=5, pause_s=0.005)]) as server:
        items = [item async for item in services(server).stream(make_request())]
    *batches, reply = items
    assert isinstance(reply, ModelReply)
    assert "".join(cast("list[str]", batches)) == reply.message.content == "word " * 40
    assert 1 < len(batches) < 15
    assert len(cast("str", batches[0])) < 100


async def test_a_batch_does_not_hold_up_the_end_of_an_answer(
    services: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_service, "_BATCH_S", 60.0)
    with ModelServer([text("short")]) as server:
        async with asyncio.timeout(10):
            items = [item async for item in services(server).stream(make_request())]
    assert items[0] == "short"
    assert isinstance(items[-1], ModelReply)


async def test_leaving_a_stream_cancels_the_call_and_charges_what_came(services: MakeService) -> None:
    with ModelServer([text("word " * 1000, chunk=5, pause_s=0.01)]) as server:
        service = services(server)
        stream = service.stream(make_request())
        async for item in stream:
            assert isinstance(item, str)
            break
        await cast("Any", stream).aclose()
        totals = await service.totals()
        usage = Usage.model_validate(totals["usage"])
        assert (totals["calls"], usage.estimated) == (1, True)
        assert usage.input > 0
        assert 0 < usage.output < 1000


async def test_a_cancelled_call_frees_its_reservation(services: MakeService) -> None:
    with ModelServer([text("late", latency_s=5.0), text("ok")]) as server:
        service = services(server)
        await service.open_scope("task:a", None, 3000)
        hung = asyncio.create_task(service.complete(make_request(scopes=("task:a",), max_tokens=2500)))
        while not server.seen:  # noqa: ASYNC110  # the server has no event for it
            await asyncio.sleep(0.01)
        hung.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hung
        answer = await service.complete(make_request(scopes=("task:a",), max_tokens=2500))
        assert isinstance(answer, ModelReply)
        assert (await service.totals())["calls"] == 2


@pytest.mark.req("MOD-11")
async def test_a_recorded_run_replays_without_any_server(services: MakeService, tmp_path: Path) -> None:
    recording = str(tmp_path / "calls.jsonl")
    with ModelServer([text("one"), failing(401)]) as server:
        recorder = services(server, record=recording)
        recorded = [await recorder.complete(make_request()) for _ in range(2)]
    player = services(replay=recording)
    items = [item async for item in player.stream(make_request())]
    assert items == ["one", recorded[0]]
    assert await player.complete(make_request()) == recorded[1]
    assert isinstance(await player.complete(make_request()), ModelFailed)
    assert (await player.totals())["calls"] == 0
    assert "test-key" not in "".join(JsonlLog(Path(recording)).read())


async def test_recipes_cost_nothing_and_need_no_provider(services: MakeService) -> None:
    service = services()
    await service.open_scope("task:a", 0.01, 10)
    request = make_request(MODEL, UserMessage(content=fence([Run(command="make")])), scopes=("task:a",))
    answer = await service.complete(request)
    assert isinstance(answer, ModelReply)
    assert answer.message.tool_calls[0].arguments == {"command": "make"}
    assert (await service.totals())["calls"] == 0


async def test_a_full_disk_for_the_ledger_fails_closed(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with ModelServer([text("ok")]) as server:
        service = make_service(server, journal=str(blocker / "ledger.jsonl"))
        answer = await service.complete(make_request())
        assert isinstance(answer, ModelFailed)
        assert answer.error.kind is ErrorKind.INFRA
        assert server.seen == []
        blocker.unlink()
        assert isinstance(await service.complete(make_request()), ModelReply)
        await service.close()
    restored = make_service(journal=str(blocker / "ledger.jsonl"))
    assert (await restored.totals()) == (await service.totals())
