"""The gate of one provider, shared by all agents: Retry-After for everybody, back-off with jitter, a circuit breaker (swarm.md 3.6)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..core.clock import Clock
from ..core.model import Frozen
from .failures import Failure

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
Notice = Callable[[str], None]
_PROBE_POLL_S = 0.05


class RetryPolicy(Frozen):
    """Tries of one call; back-off bounds, breaker and patience in seconds."""

    max_tries: int = 5
    base_s: float = 0.5
    cap_s: float = 60.0
    breaker_after: int = 8  # consecutive failures of the provider
    open_s: float = 5.0  # the breaker's first pause; doubles with each failed probe, up to cap_s
    max_wait_s: float = 300.0  # a longer Retry-After is given up at once
    idle_s: float = 120.0  # silence within a stream
    timeout_s: float = 600.0  # one try


class RateGate:
    """All calls to one provider pass here.

    After ``breaker_after`` failures in a row the breaker opens: one caller at a time probes, the others wait for its result, and a failed
    probe counts as a try of all who wait. So a provider that is down costs a bounded number of requests, however many agents there are.
    """

    def __init__(
        self,
        provider: str,
        policy: RetryPolicy,
        clock: Clock,
        *,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._provider = provider
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not a secret
        self._not_before = 0.0
        self._streak = 0
        self._failed_probes = 0  # ever: waiters count them as tries
        self._doublings = 0
        self._open_until = 0.0
        self._probing = False
        self._last: Failure | None = None

    @property
    def is_open(self) -> bool:
        """Whether the breaker holds calls back."""
        return self._streak >= self._policy.breaker_after

    async def run(
        self, attempt: Callable[[], Awaitable[T | Failure]], notice: Notice
    ) -> tuple[T | Failure, int]:
        """Try until it succeeds or is given up: the result or the last failure, and the number of tries (>= 1).

        A try is a request that was sent, or a failed probe it waited for. Only cancellation is raised.
        """
        tries = 0
        while True:
            probe, missed = await self._enter(self._policy.max_tries - tries, notice)
            tries += missed
            if tries >= self._policy.max_tries and self._last is not None:
                return self._last, tries
            tries += 1
            outcome = await self._one(attempt, probe=probe)
            if not isinstance(outcome, Failure):
                return outcome, tries
            wait = self._wait(outcome, tries)
            if wait is None:
                return outcome, tries
            notice(
                f"{outcome.error.message} Next try in {wait:.1f} s ({tries + 1} of {self._policy.max_tries})."
            )
            await self._sleep(wait)

    async def _enter(self, patience: int, notice: Notice) -> tuple[bool, int]:
        """Wait until a call may go: whether it is the probe, and how many probes of others failed meanwhile."""
        started = self._failed_probes
        told = False
        while (missed := self._failed_probes - started) < patience:
            now = self._clock.monotonic()
            hold = max(self._not_before, self._open_until if self.is_open else 0.0) - now
            if hold <= 0 and not (self.is_open and self._probing):
                self._probing = self._probing or self.is_open
                return self.is_open, missed
            if not told and hold > 1:
                notice(f"Calls to {self._provider} wait {hold:.0f} s.")
                told = True
            jitter = 1 + 0.1 * self._rng.random()
            await self._sleep(hold * jitter if hold > 0 else _PROBE_POLL_S)
        return False, patience

    async def _one(self, attempt: Callable[[], Awaitable[T | Failure]], *, probe: bool) -> T | Failure:
        try:
            outcome = await attempt()
        finally:
            if probe:
                self._probing = False
        if isinstance(outcome, Failure) and outcome.retryable:
            self._failed(outcome, probe=probe)
        else:  # a refusal shows that the provider is there
            self._streak = self._doublings = 0
        return outcome

    def _failed(self, failure: Failure, *, probe: bool) -> None:
        self._last = failure
        self._streak += 1
        self._failed_probes += 1 if probe else 0
        now = self._clock.monotonic()
        if failure.retry_after_s is not None and failure.retry_after_s <= self._policy.max_wait_s:
            self._not_before = max(self._not_before, now + failure.retry_after_s)
        if self.is_open:
            self._doublings += 1 if probe else 0
            pause = self._policy.open_s * 2 ** min(self._doublings, 10)
            self._open_until = now + min(self._policy.cap_s, pause)

    def _wait(self, failure: Failure, tries: int) -> float | None:
        """Seconds until the next try; None: give up."""
        if not failure.retryable or tries >= self._policy.max_tries:
            return None
        asked = failure.retry_after_s or 0.0
        if asked > self._policy.max_wait_s:
            return None
        backoff = min(self._policy.cap_s, self._policy.base_s * 2 ** (tries - 1))
        backoff *= 1 + self._rng.random() / 2
        return max(min(backoff, self._policy.cap_s), asked + self._rng.random() * min(1.0, asked / 4))
