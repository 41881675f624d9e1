"""The ledger under any interleaving: caps hold to the error of one call, totals are exact, the journal tells the same (MOD-07)."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.chat import Usage
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.llm.budget import Estimate, Ledger
from opendev.llm.cost import Price
from opendev.store.atomic import JsonlLog

PRICE = Price(input=10, output=100)
CALL = st.tuples(
    st.integers(1, 400), st.integers(1, 400), st.floats(0, 1), st.integers(0, 3), st.sampled_from("ab")
)
Call = tuple[int, int, float, int, str]


async def play(ledger: Ledger, call: Call) -> Usage | None:
    """One call that uses a share of what it may: its usage, or None when it was refused."""
    prompt, output, share, pauses, task = call
    estimate = Estimate(prompt=prompt, output=output, price=PRICE)
    try:
        reservation = await ledger.reserve(("run:r", f"task:{task}"), estimate)
    except OpenDevError as error:
        if error.info.kind is not ErrorKind.BUDGET:
            raise
        return None
    for _ in range(pauses):
        await asyncio.sleep(0)
    written = int(reservation.estimate.output * share)
    cost = (prompt * PRICE.input + written * PRICE.output) / 1e6
    usage = Usage(input=prompt, output=written, cost_usd=cost)
    await ledger.settle(reservation, usage, 1)
    return usage


@settings(max_examples=30, deadline=None)
@given(calls=st.lists(CALL, max_size=8), tokens=st.integers(0, 3000), dollars=st.floats(0, 0.2))
def test_caps_hold_and_totals_are_exact(calls: list[Call], tokens: int, dollars: float) -> None:
    async def scenario(path: Path) -> None:
        ledger = Ledger(JsonlLog(path))
        await ledger.open_scope("run:r", dollars, None)
        await ledger.open_scope("task:a", None, tokens)
        outcomes = await asyncio.gather(*(play(ledger, call) for call in calls))
        done = [usage for usage in outcomes if usage is not None]
        totals = ledger.totals()
        assert totals["calls"] == len(done)
        assert totals["usage"]["input"] == sum(u.input for u in done)
        assert totals["usage"]["output"] == sum(u.output for u in done)
        run = Usage.model_validate(totals["scopes"]["run:r"]["usage"])
        task = Usage.model_validate(totals["scopes"]["task:a"]["usage"])
        assert run.cost_usd <= dollars + 1e-9
        assert task.input + task.output <= tokens
        assert Ledger(JsonlLog(path)).totals() == totals

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder) / "ledger.jsonl"))
