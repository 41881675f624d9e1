"""The ledger: reservations, caps, waiting, the journal after a crash (MOD-07, ACT-14, swarm.md 3.7)."""

import asyncio
from pathlib import Path

import pytest
from opendev.core.chat import Usage
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.llm.budget import Estimate, Ledger
from opendev.llm.cost import ASSUMED, Price
from opendev.store.atomic import JsonlLog

PRICE = Price(input=10, output=100)
CALL = Estimate(prompt=100, output=900, price=PRICE)  # $0.091 at most


def used(tokens: int) -> Usage:
    return Usage(input=tokens, cost_usd=PRICE.input * tokens / 1e6)


async def spend(ledger: Ledger, tokens: int, *scopes: str) -> None:
    await ledger.settle(await ledger.reserve(scopes, CALL), used(tokens), 1)


async def test_every_scope_of_a_call_is_charged_once() -> None:
    ledger = Ledger()
    await spend(ledger, 10, "run:r", "task:a")
    await spend(ledger, 5, "run:r", "task:b", "task:b")
    totals = ledger.totals()
    assert totals["calls"] == 2
    assert totals["usage"]["input"] == 15
    spent = {name: (row["usage"]["input"], row["calls"]) for name, row in totals["scopes"].items()}
    assert spent == {"run:r": (15, 2), "task:a": (10, 1), "task:b": (5, 1)}


async def test_a_token_cap_stops_before_the_next_call() -> None:
    ledger = Ledger()
    await ledger.open_scope("task:a", None, 2500)
    await spend(ledger, 1400, "task:a")
    await spend(ledger, 900, "task:a")
    with pytest.raises(OpenDevError, match=r"task:a is spent: 2300 of 2500 tokens") as caught:
        await ledger.reserve(("task:a",), CALL)
    assert caught.value.info.kind is ErrorKind.BUDGET
    await spend(ledger, 1, "task:b")  # another task goes on


async def test_near_the_cap_the_output_is_cut_to_what_is_left() -> None:
    ledger = Ledger()
    await ledger.open_scope("run:r", 0.05, None)
    reservation = await ledger.reserve(("run:r",), CALL)
    assert reservation.estimate.output == 490  # $0.05 less $0.001 for the prompt, at $100 a million
    await ledger.settle(reservation, Usage(output=490, cost_usd=0.049), 1)
    with pytest.raises(OpenDevError, match=r"\$0.0490 of \$0.0500"):
        await ledger.reserve(("run:r",), CALL)


async def test_an_assumed_price_holds_a_dollar_cap_and_a_free_call_a_token_cap() -> None:
    ledger = Ledger()
    await ledger.open_scope("run:r", 0.01, None)
    guessed = await ledger.reserve(("run:r",), Estimate(prompt=100, output=900, price=ASSUMED))
    assert guessed.estimate.output == 646  # $0.01 less $0.0003 for the prompt, at $15 a million
    await ledger.open_scope("run:t", None, 200)
    with pytest.raises(OpenDevError, match="token budget"):
        await ledger.reserve(("run:t",), Estimate(prompt=100, output=900, price=Price(input=0, output=0)))


async def test_calls_at_once_wait_for_room_instead_of_failing() -> None:
    ledger = Ledger()
    await ledger.open_scope("run:r", None, 2000)
    open_now = 0
    most = 0

    async def one() -> None:
        nonlocal open_now, most
        reservation = await ledger.reserve(("run:r",), CALL)
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0)
        open_now -= 1
        await ledger.settle(reservation, used(100), 1)

    await asyncio.gather(*(one() for _ in range(8)))
    assert most <= 2
    assert ledger.totals()["usage"]["input"] == 800


async def test_a_raised_cap_lets_waiting_calls_go() -> None:
    ledger = Ledger()
    await ledger.open_scope("run:r", None, 1000)
    await ledger.reserve(("run:r",), CALL)
    waiting = asyncio.create_task(ledger.reserve(("run:r",), CALL))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await ledger.open_scope("run:r", None, 5000)
    assert (await waiting).estimate == CALL


async def test_a_cancelled_wait_holds_nothing() -> None:
    ledger = Ledger()
    await ledger.open_scope("run:r", None, 1000)
    first = await ledger.reserve(("run:r",), CALL)
    waiting = asyncio.create_task(ledger.reserve(("run:r",), CALL))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ledger.settle(first, Usage(), 1)
    assert (await ledger.reserve(("run:r",), CALL)).estimate == CALL


async def test_the_journal_restores_totals_caps_and_calls_lost_in_a_crash(tmp_path: Path) -> None:
    journal = JsonlLog(tmp_path / "ledger.jsonl")
    before = Ledger(journal)
    await before.open_scope("task:a", None, 2500)
    await spend(before, 300, "task:a")
    totals = before.totals()
    await before.reserve(("task:a",), CALL)  # in the air when the process is killed
    with journal.path.open("a") as file:
        file.write('{"op": "settle", "id"')  # a torn line
    after = Ledger(journal)
    assert after.totals() | {"lost": None} == totals | {"lost": None}
    assert after.totals()["lost"]["calls"] == 1
    reservation = await after.reserve(("task:a",), CALL)
    assert reservation.estimate == CALL  # 300 spent + 1000 lost + 1000
    await after.settle(reservation, used(1000), 1)
    with pytest.raises(OpenDevError, match="2300 of 2500"):
        await after.reserve(("task:a",), CALL)
    assert Ledger(journal).totals() == after.totals()


async def test_a_cancelled_settlement_is_charged_and_reaches_the_journal(tmp_path: Path) -> None:
    journal = JsonlLog(tmp_path / "ledger.jsonl")
    ledger = Ledger(journal)
    reservation = await ledger.reserve((), CALL)
    task = asyncio.create_task(ledger.settle(reservation, used(7), 1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ledger.flush()
    assert ledger.totals()["usage"]["input"] == 7
    assert Ledger(journal).totals() == ledger.totals()


@pytest.mark.req("MOD-07")
async def test_a_call_lost_in_a_crash_also_counts_against_a_cap_in_dollars(tmp_path: Path) -> None:
    journal = JsonlLog(tmp_path / "ledger.jsonl")
    before = Ledger(journal)
    dear = Estimate(prompt=100_000, output=0, price=Price(input=10, output=10))  # 1 dollar
    await before.open_scope("task:a", 1.5, None)
    await before.reserve(("task:a",), dear)  # in the air when the process is killed
    after = Ledger(journal)
    with pytest.raises(OpenDevError, match=r"\$1\.0000 of \$1\.5000"):
        await after.reserve(("task:a",), dear)
