"""The shared rate gate with a clock of its own: waits, bounds, breaker (M23, swarm.md 3.6)."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable

import pytest
from opendev.configs.schema import Retry
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.llm.failures import Failure
from opendev.llm.retry import RateGate, RetryPolicy

POLICY = RetryPolicy(base_s=0.5, cap_s=60, breaker_after=8, open_s=5)


class FakeTime:
    """A clock that moves when everybody sleeps."""

    def __init__(self) -> None:
        self.t = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.t

    def monotonic(self) -> float:
        return self.t

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        until = self.t + seconds
        await asyncio.sleep(0)
        self.t = max(self.t, until)


def failure(
    kind: ErrorKind = ErrorKind.RATE_LIMIT, after: float | None = None, retryable: bool = True
) -> Failure:
    info = ErrorInfo(kind=kind, message="It failed.")
    return Failure(error=info, retryable=retryable, retry_after_s=after)


def gate(time: FakeTime, policy: RetryPolicy = POLICY) -> RateGate:
    return RateGate("p", policy, time, sleep=time.sleep, rng=random.Random(1))


def playing(
    outcomes: list[Failure | str], sent: list[float], time: FakeTime
) -> Callable[[], Awaitable[Failure | str]]:
    async def attempt() -> Failure | str:
        sent.append(time.t)
        await asyncio.sleep(0)
        return outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]

    return attempt


async def turns() -> None:
    """Let every task run until it really waits."""
    for _ in range(50):
        await asyncio.sleep(0)


def quiet(_text: str) -> None:
    pass


async def test_retry_after_is_a_lower_bound() -> None:
    time, sent = FakeTime(), list[float]()
    outcome = await gate(time).run(playing([failure(after=2), failure(after=1.5), "ok"], sent, time), quiet)
    assert outcome == ("ok", 3)
    assert sent[1] - sent[0] >= 2
    assert sent[2] - sent[1] >= 1.5


async def test_retry_after_of_one_agent_holds_all_back() -> None:
    time, sent, others = FakeTime(), list[float](), list[float]()
    shared = gate(time)
    first = asyncio.create_task(shared.run(playing([failure(after=30), "ok"], sent, time), quiet))
    await turns()
    assert time.slept
    await shared.run(playing(["ok"], others, time), quiet)
    assert others[0] >= 30
    assert await first == ("ok", 2)


async def test_back_off_grows_and_tries_are_bounded() -> None:
    time, sent = FakeTime(), list[float]()
    told: list[str] = []
    outcome, tries = await gate(time).run(playing([failure()], sent, time), told.append)
    assert isinstance(outcome, Failure)
    assert tries == len(sent) == 5
    gaps = [b - a for a, b in itertools.pairwise(sent)]
    assert all(low <= gap <= low * 1.5 for gap, low in zip(gaps, (0.5, 1, 2, 4), strict=True))
    assert len(told) == 4
    assert "(2 of 5)" in told[0]


async def test_waits_never_exceed_the_cap() -> None:
    time, sent = FakeTime(), list[float]()
    policy = POLICY.model_copy(update={"max_tries": 12, "breaker_after": 100})
    await gate(time, policy).run(playing([failure()], sent, time), quiet)
    assert max(time.slept) <= 60


async def test_a_refusal_is_not_tried_again() -> None:
    time, sent = FakeTime(), list[float]()
    refused = failure(ErrorKind.AUTH, retryable=False)
    assert await gate(time).run(playing([refused], sent, time), quiet) == (refused, 1)
    assert len(sent) == 1


async def test_too_long_a_retry_after_is_given_up_at_once() -> None:
    time, sent = FakeTime(), list[float]()
    outcome, tries = await gate(time).run(playing([failure(after=3600)], sent, time), quiet)
    assert isinstance(outcome, Failure)
    assert (tries, time.t) == (1, 0.0)


async def test_many_agents_at_a_dead_provider_send_a_bounded_number_of_requests() -> None:
    time, sent = FakeTime(), list[float]()
    shared = gate(time)
    outcomes = await asyncio.gather(*(shared.run(playing([failure()], sent, time), quiet) for _ in range(64)))
    assert all(isinstance(outcome, Failure) and tries == 5 for outcome, tries in outcomes)
    assert shared.is_open
    assert len(sent) <= 64 + 2 * POLICY.max_tries  # without the breaker: 320


async def test_one_good_probe_closes_the_breaker_for_all() -> None:
    time, sent = FakeTime(), list[float]()
    shared = gate(time)
    await asyncio.gather(*(shared.run(playing([failure()], sent, time), quiet) for _ in range(8)))
    assert shared.is_open
    down = time.t
    outcomes = await asyncio.gather(*(shared.run(playing(["ok"], sent, time), quiet) for _ in range(10)))
    assert outcomes == [("ok", 1)] * 10
    assert not shared.is_open
    assert time.t - down <= 60 * 1.1 + 1


async def test_waits_can_be_cancelled_and_a_cancelled_probe_frees_its_place() -> None:
    class Slow(FakeTime):
        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(3600)

    time = Slow()
    waiting = asyncio.create_task(gate(time).run(playing([failure()], [], time), quiet))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    time = FakeTime()
    shared = gate(time, POLICY.model_copy(update={"breaker_after": 1, "max_tries": 1}))
    await shared.run(playing([failure()], [], time), quiet)
    assert shared.is_open

    async def hang() -> str:
        await asyncio.sleep(3600)
        return "late"

    probe = asyncio.create_task(shared.run(hang, quiet))
    await turns()
    assert time.t >= 5
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await shared.run(playing(["ok"], [], time), quiet) == ("ok", 1)


def test_every_setting_of_retries_reaches_the_policy() -> None:
    given = Retry(max_tries=2, base_s=1, cap_s=2, breaker_after=3, open_s=7)
    policy = RetryPolicy.model_validate(given.model_dump())
    assert policy.model_dump().items() >= given.model_dump().items()
    assert policy.open_s == 7
