"""Property: a message that was accepted, from any thread at any moment, reaches the model once and in order (LOOP-19, C-15)."""

import asyncio
import threading
from pathlib import Path

import pytest
from opendev.agents.inbox import INBOX_SIZE, Inbox
from opendev.core.agent import AgentStatus
from opendev.core.chat import ModelReply, ModelRequest, UserMessage
from support.agents import Bench
from support.scripted_model import call, calls, says


async def one_round(tmp_path: Path, round_: int) -> None:
    """An agent that works and answers in turn, and a thread that sends forty messages meanwhile."""
    bench = Bench(tmp_path)
    accepted: list[str] = []
    refused: list[str] = []

    def reply(_request: ModelRequest) -> ModelReply:
        count = len(bench.model.requests)
        bench.model.add(reply)
        return calls(call("list_files", f"l{count}", path=".")) if count % 3 == 1 else says("done")

    bench.model.add(reply)
    task = bench.task(id=f"a{round_}")
    bench.agent = agent = bench.factory().agent_for(task)

    def sender() -> None:
        for number in range(40):
            text = f"m{number}"
            (accepted if agent.inject(text) else refused).append(text)

    thread = threading.Thread(target=sender)
    running = asyncio.create_task(agent.run(task, bench.token))
    await asyncio.sleep(0.001 * (round_ % 10))
    thread.start()
    report = await running
    await asyncio.to_thread(thread.join)
    assert report.status is AgentStatus.DONE
    sent = [m.content for m in bench.model.requests[-1].messages if isinstance(m, UserMessage)]
    assert [text for text in sent if text.startswith("m")] == accepted
    assert len(accepted) + len(refused) == 40
    assert not agent.inject("after the end")


@pytest.mark.req("LOOP-19")
@pytest.mark.req("C-15")
@pytest.mark.slow
async def test_no_accepted_message_is_lost_also_when_the_agent_goes_idle(tmp_path: Path) -> None:
    for round_ in range(30):
        await one_round(tmp_path, round_)


def test_closing_and_putting_at_once_never_lose_one() -> None:
    for _ in range(300):
        inbox, results = Inbox(), list[bool]()
        barrier = threading.Barrier(2)

        def put(
            inbox: Inbox = inbox, barrier: threading.Barrier = barrier, results: list[bool] = results
        ) -> None:
            barrier.wait()
            results.append(inbox.put("x"))

        thread = threading.Thread(target=put)
        thread.start()
        barrier.wait()
        closed = inbox.try_close()
        thread.join()
        assert closed is not results[0] or (results[0] is False and closed)
        assert len(inbox.drain()) == int(results[0])
        assert INBOX_SIZE == 10
