"""The model service: the one owner of models, keys, rate gates and the ledger of a node. A plain async class, local or a Ray actor."""

import asyncio
import gc
import json
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ..core.chat import ModelFailed, ModelReply, ModelRequest, Role, Usage
from ..core.clock import Clock, SystemClock
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import JsonObject
from ..llm.budget import Estimate, Ledger, Reservation
from ..llm.catalog import Catalog, ModelInfo
from ..llm.convert import provider_of
from ..llm.cost import ASSUMED, Price, prompt_tokens
from ..llm.failures import Failure
from ..llm.litellm_client import LiteLLMClient, Partial, close_clients
from ..llm.prefix import PrefixWarmer
from ..llm.recipes import MODEL as RECIPES
from ..llm.recipes import RecipeModel
from ..llm.replay import Replay, recorded_line
from ..llm.retry import RateGate, RetryPolicy
from ..store.atomic import JsonlLog

_BATCH_S = 0.04  # ray.md rule 8: the first text at once, then batches of 40 ms
_NOTICES = 100
_OUTPUT = 4096  # assumed where neither request nor catalogue limits the output
_BROKEN = "\n[The connection broke; the answer starts again.]\n"

Answer = ModelReply | ModelFailed


class ModelService:
    """Answers model requests for all agents of a node.

    ``settings``: ``env`` (provider keys and base URLs), ``journal`` (path of the ledger's file or None), ``retry`` (fields of
    ``RetryPolicy``), ``record`` and ``replay`` (paths or None), ``prices`` ({model: {"input", "output", "cached"}} per million
    tokens), ``assumed_price`` ({"input", "output"}: of a model whose price nobody knows), ``models_dev`` (path of a local catalogue or None),
    ``cache`` (folder of the provider cache or None), ``preload`` (models whose
    library is to be imported in the background now).
    """

    def __init__(self, settings: dict[str, Any], clock: Clock | None = None) -> None:
        self._env = cast("dict[str, str]", settings.get("env") or {})
        self._policy = RetryPolicy.model_validate(settings.get("retry") or {})
        self._clock = clock or SystemClock()
        models_dev = settings.get("models_dev")
        self._catalog = Catalog(
            cast("dict[str, JsonObject]", settings.get("prices") or {}),
            Path(models_dev) if models_dev else None,
            Path(settings["cache"]) if settings.get("cache") else None,
        )
        assumed = settings.get("assumed_price")
        self._assumed = Price(**assumed, assumed=True) if assumed else ASSUMED
        self._unpriced: set[str] = set()  # models the user was told about
        self._ledger = Ledger(_log(settings.get("journal")))
        self._record = _log(settings.get("record"))
        replay = settings.get("replay")
        self._replay = Replay(JsonlLog(Path(replay)), replay) if replay else None
        self._recipes = RecipeModel()
        self._prefixes = PrefixWarmer()
        self._slots: dict[tuple[Role, str], LiteLLMClient] = {}  # filled on first use (MOD-03)
        self._gates: dict[str, RateGate] = {}
        self._notices: deque[str] = deque(maxlen=_NOTICES)
        preload = cast("list[str]", settings.get("preload") or [])
        if preload and self._replay is None:
            threading.Thread(
                target=self._preload, args=(preload,), name="preload-models", daemon=True
            ).start()

    async def ping(self) -> dict[str, Any]:
        """The process id, and the role slots in use as ``role:provider``."""
        slots = sorted(f"{role.value}:{provider}" for role, provider in self._slots)
        return {"pid": os.getpid(), "slots": slots}

    async def complete(self, request: ModelRequest) -> Answer:
        """The whole answer. Every failure is a value; only cancellation is raised."""
        return await self._answer(request, None)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | Answer]:
        """Batches of text, then the reply or the failure as the last item. Leaving the loop cancels the call.

        When a stream breaks after some text, a line in brackets says so before the text starts again; the reply holds it once.
        """
        deltas = _Deltas()
        task = asyncio.create_task(self._answer(request, deltas))
        task.add_done_callback(deltas.close)
        try:
            async for batch in deltas.batches():
                yield batch
            yield await task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def open_scope(self, scope: str, max_cost_usd: float | None, max_tokens: int | None) -> None:
        """Set the budget of a scope (``run:<id>``, ``task:<id>``)."""
        await self._ledger.open_scope(scope, max_cost_usd, max_tokens)

    async def totals(self) -> dict[str, Any]:
        """``{"usage", "calls", "lost", "scopes": {scope: {"usage", "calls"}}}`` since the journal began (MOD-07)."""
        return self._ledger.totals()

    async def take_notices(self) -> tuple[str, ...]:
        """What is worth telling the user (waits, retries) since the last call; at most 100, the newest."""
        taken = tuple(self._notices)
        self._notices.clear()
        return taken

    async def close(self) -> None:
        """Write what is unwritten and close the connections."""
        try:
            await self._ledger.flush()
        finally:
            for client in self._slots.values():
                await client.close()
            await close_clients()

    async def _answer(self, request: ModelRequest, deltas: "_Deltas | None") -> Answer:
        if request.model == RECIPES:
            answer = await self._recipes.complete(request)
        elif self._replay is not None:
            answer = self._replay.answer(request)
        else:
            try:
                async with self._prefixes.turn(request):
                    answer = await self._call(request, deltas)
            except OpenDevError as error:
                answer = ModelFailed(error=error.info, tries=0)
        if self._record is not None:
            await asyncio.to_thread(self._record.append, recorded_line(request, answer))
        if deltas is not None and isinstance(answer, ModelReply):
            deltas.finish(answer.message.content)
        return answer

    async def _call(self, request: ModelRequest, deltas: "_Deltas | None") -> Answer:
        client = self._client(request)
        if problem := client.check_key():
            return ModelFailed(error=problem, tries=0)
        info = await asyncio.to_thread(self._catalog.info, request.model)
        price = info.price or self._assume(request.model)
        reservation = await self._ledger.reserve(request.scopes, _estimate(request, info, price))
        call = _Call(client, _limited(request, info, reservation), price, deltas)
        try:
            outcome, tries = await self._gate(request.model).run(call.attempt, self._notices.append)
        except BaseException:
            call.interrupted()
            raise
        finally:
            await self._ledger.settle(reservation, call.spent, call.sent)
        if isinstance(outcome, Failure):
            return ModelFailed(error=outcome.error, usage=call.spent, tries=tries)
        return outcome.model_copy(update={"tries": tries})

    def _assume(self, model: str) -> Price:
        """The price that stands in where nobody knows it; said once for each model."""
        price = self._assumed
        if model not in self._unpriced:
            self._unpriced.add(model)
            row = json.dumps({model: {"input": price.input, "output": price.output}})
            self._notices.append(
                f"The price of {model} is unknown; ${price.input:g} (input) and ${price.output:g} (output) per million tokens "
                f"are assumed. Set it: opendev config set prices '{row}'."
            )
        return price

    def _client(self, request: ModelRequest) -> LiteLLMClient:
        provider = provider_of(request.model)
        if not provider:
            raise OpenDevError(
                ErrorKind.CONFIG,
                f"The model {request.model!r} names no provider.",
                "Write it as provider/NAME, for example openai/gpt-5 or anthropic/claude-sonnet-4-5.",
            )
        slot = (request.role, provider)
        if slot not in self._slots:
            self._slots[slot] = self._new_client(provider)
        return self._slots[slot]

    def _new_client(self, provider: str) -> LiteLLMClient:
        return LiteLLMClient(
            provider, env=self._env, policy=self._policy, clock=self._clock, catalog=self._catalog
        )

    def _preload(self, models: Sequence[str]) -> None:
        for model in models:
            if model != RECIPES and (provider := provider_of(model)):
                self._new_client(provider).preload(model)
        if not gc.get_freeze_count():
            gc.freeze()  # what is loaded stays: later collections need not look at it
        gc.set_threshold(100_000, 20, 20)

    def _gate(self, model: str) -> RateGate:
        provider = provider_of(model)
        return self._gates.setdefault(provider, RateGate(provider, self._policy, self._clock))


class _Call:
    """The tries of one request, and what they used."""

    def __init__(
        self, client: LiteLLMClient, request: ModelRequest, price: Price, deltas: "_Deltas | None"
    ) -> None:
        self._client = client
        self._request = request
        self._price = price
        self._deltas = deltas
        self._partial = Partial()
        self.spent = Usage()
        self.sent = 0

    async def attempt(self) -> ModelReply | Failure:
        """One request on the wire."""
        self._partial = Partial()
        on_delta = self._deltas.begin() if self._deltas else None
        outcome = await self._client.attempt(self._request, self._price, self._partial, on_delta)
        self.sent += 1
        if isinstance(outcome, ModelReply):
            self.spent += outcome.usage
        elif self._partial.answer.written:  # a broken stream is billed as far as it came
            self.spent += self._partial.counts(self._request).usage(self._price)
        self._partial = Partial()
        return outcome

    def interrupted(self) -> None:
        """The call was cancelled: a request that is out is billed, at least its prompt."""
        if self._partial.sent:
            self.sent += 1
            self.spent += self._partial.counts(self._request).usage(self._price)


class _Deltas:
    """Text on its way to the consumer of ``stream``: the first piece at once, then batches."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ready = asyncio.Event()
        self._closed = asyncio.Event()
        self._said = False

    def begin(self) -> Callable[[str], None]:
        """A new try starts; text of a broken one is marked, not silently doubled (M25)."""
        if self._said:
            self._push(_BROKEN)
            self._said = False
        return self._add

    def finish(self, content: str) -> None:
        """The answer is known: an answer that did not stream (a recipe, a replay) is delivered whole."""
        if not self._said and content:
            self._add(content)

    def close(self, _task: object) -> None:
        """No more text will come."""
        self._closed.set()
        self._ready.set()

    async def batches(self) -> AsyncIterator[str]:
        """The text in batches, until ``close``."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            if self._pieces:
                batch, self._pieces = "".join(self._pieces), []
                yield batch
            if self._closed.is_set():
                break
            with suppress(TimeoutError):  # the end of the answer is not held up by a batch
                async with asyncio.timeout(_BATCH_S):
                    await self._closed.wait()
        if self._pieces:
            yield "".join(self._pieces)

    def _add(self, piece: str) -> None:
        self._said = True
        self._push(piece)

    def _push(self, piece: str) -> None:
        self._pieces.append(piece)
        self._ready.set()


def _log(path: str | None) -> JsonlLog | None:
    return JsonlLog(Path(path)) if path else None


def _estimate(request: ModelRequest, info: ModelInfo, price: Price) -> Estimate:
    limits = [limit for limit in (request.max_tokens, info.max_output) if limit]
    return Estimate(
        prompt=prompt_tokens(request), output=min(limits) if request.max_tokens else _OUTPUT, price=price
    )


def _limited(request: ModelRequest, info: ModelInfo, reservation: Reservation) -> ModelRequest:
    """The request with the output limit it may have: the model's own, and what its budgets still hold."""
    reserved = reservation.estimate.output
    asked = _estimate(request, info, reservation.estimate.price).output
    if request.max_tokens == reserved or (request.max_tokens is None and reserved == asked):
        return request
    return request.model_copy(update={"max_tokens": reserved})
