"""Siblings with one prompt prefix: the first goes ahead and warms the provider's cache."""

import asyncio

import pytest
from opendev.core.chat import ModelRequest, SystemMessage, UserMessage
from opendev.llm.prefix import KEPT, WORTH_CHARS, PrefixWarmer


def request(stable: str, question: str) -> ModelRequest:
    messages = (SystemMessage(stable=stable, dynamic=question), UserMessage(content=question))
    return ModelRequest(id=question, agent_id="a", model="anthropic/m", messages=messages)


async def order_of(warmer: PrefixWarmer, stable: list[str], hold_s: float = 0.05) -> list[str]:
    log: list[str] = []

    async def call(number: int) -> None:
        async with warmer.turn(request(stable[number], str(number))):
            log.append(f"start {number}")
            await asyncio.sleep(hold_s)
            log.append(f"end {number}")

    await asyncio.gather(*(call(number) for number in range(len(stable))))
    return log


@pytest.mark.req("PRM-09")
async def test_the_first_of_a_prefix_ends_before_its_siblings_start() -> None:
    warmer = PrefixWarmer()
    log = await order_of(warmer, ["x" * WORTH_CHARS] * 3)
    assert log[:2] == ["start 0", "end 0"]
    assert sorted(log[2:4]) == ["start 1", "start 2"]
    again = await order_of(warmer, ["x" * WORTH_CHARS] * 2)
    assert again[:2] == ["start 0", "start 1"]  # warm already


async def test_other_and_short_prefixes_do_not_wait() -> None:
    log = await order_of(PrefixWarmer(), ["a" * WORTH_CHARS, "b" * WORTH_CHARS, "short", "short"])
    assert log[:4] == ["start 0", "start 1", "start 2", "start 3"]


async def test_nobody_waits_longer_than_the_head_start_or_for_a_failed_first() -> None:
    warmer = PrefixWarmer(head_start_s=0.02)
    log = await order_of(warmer, ["x" * WORTH_CHARS] * 2, hold_s=0.2)
    assert log[:2] == ["start 0", "start 1"]
    with pytest.raises(RuntimeError):
        async with PrefixWarmer().turn(request("y" * WORTH_CHARS, "q")):
            raise RuntimeError


async def test_prefixes_are_bounded() -> None:
    warmer = PrefixWarmer()
    for number in range(KEPT + 5):
        async with warmer.turn(request(f"{number}" + "z" * WORTH_CHARS, "q")):
            pass
    assert len(warmer) == KEPT
