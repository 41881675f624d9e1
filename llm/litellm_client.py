"""The litellm door: one try of one call, whole or streamed. The only file that imports litellm, lazily (ray.md rule 6)."""

import asyncio
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from functools import cache
from typing import Any

from ..core.chat import ModelReply, ModelRequest
from ..core.clock import Clock
from ..core.errors import ErrorInfo, ErrorKind
from ..core.model import JsonObject
from .assembly import Assembly
from .catalog import Catalog
from .convert import provider_of, to_messages, to_tools
from .cost import Counts, Price, settle_counts
from .failures import Failure, classify
from .openai_direct import OpenAIDirect, load_openai, speaks_openai
from .retry import RetryPolicy

_NO_KEY = "none"  # local servers want no key, the OpenAI SDK wants one


@cache
def load_litellm() -> Any:
    """Import litellm (about 6 CPU-seconds the first time; call it in a thread), quiet and without any network."""
    # litellm reads its settings from the process environment while it is imported: there is no other way in.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # noqa: TID251
    os.environ.setdefault("LITELLM_LOG", "ERROR")  # noqa: TID251
    _silence()
    import litellm

    litellm.suppress_debug_info = True
    litellm.drop_params = True  # parameters that a model does not know are left out, not an error
    litellm.num_retries = 0
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _silence() -> None:
    """litellm uses pydantic in ways that warn, here and there on the first use of a class; where warnings are errors, calls would fail."""
    warnings.filterwarnings("ignore", message=".*ReadOnly. qualifier", category=UserWarning)
    warnings.filterwarnings("ignore", message="Accessing the 'model_", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"litellm(\.|$)")


class Partial:
    """How far a try came, also when it broke or was cancelled: for the estimate of what it cost."""

    def __init__(self) -> None:
        self.answer = Assembly()
        self.sent = False

    def counts(self, request: ModelRequest) -> Counts:
        """Tokens used so far; estimated where the provider did not report them."""
        return settle_counts(self.answer.counts, request, self.answer.written)


class LiteLLMClient:
    """Calls one provider. Keys and base URLs come from ``env`` and are passed explicitly, never logged (CFG-04)."""

    def __init__(
        self, provider: str, *, env: Mapping[str, str], policy: RetryPolicy, clock: Clock, catalog: Catalog
    ) -> None:
        variables = catalog.provider(provider)
        self._provider = provider
        self._key_name = variables.key
        self._key = env.get(variables.key, "")
        self._base = env.get(variables.base, "") or env.get(f"{provider.upper()}_API_BASE", "")
        self._key_needed = bool(variables.key) and provider in catalog.listed and not self._base
        self._secrets = tuple(
            value for value in env.values() if len(value) >= 8 and not value.startswith("http")
        )
        self._policy = policy
        self._clock = clock
        self._direct = OpenAIDirect()

    def preload(self, model: str) -> Any:
        """What answers for ``model``: the OpenAI SDK for a compatible server, litellm for everything else; imported once."""
        if speaks_openai(self._provider, self._base, model):
            load_openai()
            return self._direct
        litellm = load_litellm()
        _silence()
        return litellm

    async def close(self) -> None:
        """Close what this client opened itself; litellm's pool is everybody's (``close_clients``)."""
        await self._direct.close()

    def check_key(self) -> ErrorInfo | None:
        """The problem with the key, looked at on the first call only (MOD-03)."""
        if self._key or not self._key_needed:
            return None
        return ErrorInfo(
            kind=ErrorKind.AUTH,
            message=f"There is no API key for the provider {self._provider}.",
            hint=f"Set the environment variable {self._key_name}.",
        )

    async def attempt(
        self,
        request: ModelRequest,
        price: Price,
        partial: Partial,
        on_delta: Callable[[str], None] | None,
    ) -> ModelReply | Failure:
        """One try. ``on_delta`` gets the text as it comes; None asks for a whole answer. Only cancellation is raised."""
        door = await asyncio.to_thread(self.preload, request.model)
        started = self._clock.monotonic()
        partial.sent = True
        answer = partial.answer
        try:
            async with asyncio.timeout(self._policy.timeout_s):
                if on_delta is None:
                    answer.add_whole(await door.acompletion(**self._arguments(request, stream=False)))
                else:
                    await self._stream(door, request, answer, on_delta)
        except _provider_errors() as error:
            return classify(error, request.model, now=self._clock.now(), secrets=self._secrets)
        return ModelReply(
            message=answer.message(),
            finish=answer.reason(),
            usage=partial.counts(request).usage(price),
            model=request.model,
            latency_s=self._clock.monotonic() - started,
        )

    async def _stream(
        self, door: Any, request: ModelRequest, answer: Assembly, on_delta: Callable[[str], None]
    ) -> None:
        stream = await door.acompletion(**self._arguments(request, stream=True))
        async with aclosing(stream):
            while True:
                try:
                    async with asyncio.timeout(self._policy.idle_s):
                        chunk = await anext(stream)
                except StopAsyncIteration:
                    break
                if added := answer.add_chunk(chunk):
                    on_delta(added)
        # litellm makes figures up when none are reported; the raw chunks tell.
        if door is not self._direct and not any(
            getattr(chunk, "usage", None) for chunk in getattr(stream, "chunks", None) or ()
        ):
            answer.counts = None

    def _arguments(self, request: ModelRequest, *, stream: bool) -> JsonObject:
        chosen: JsonObject = {
            "model": request.model,
            "messages": to_messages(request.messages, anthropic=provider_of(request.model) == "anthropic"),
            "tools": to_tools(request.tools) or None,
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "api_key": self._key or (_NO_KEY if self._base else None),
            "api_base": self._base or None,
        }
        arguments = {name: value for name, value in chosen.items() if value is not None}
        arguments |= {"stream": stream, "num_retries": 0, "max_retries": 0, "drop_params": True}
        arguments["timeout"] = self._policy.timeout_s
        return arguments | ({"stream_options": {"include_usage": True}} if stream else {})


def _provider_errors() -> tuple[type[Exception], ...]:
    """What litellm raises: OpenAI's classes, now and then a transport's own, and slips over answers it did not foresee."""
    import aiohttp
    import httpx
    import openai

    slips = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, AssertionError)
    return (openai.OpenAIError, httpx.HTTPError, aiohttp.ClientError, TimeoutError, *slips)


async def close_clients() -> None:
    """Close litellm's pooled connections, if litellm was ever loaded, and forget them: it would hand out closed ones."""
    litellm: Any = sys.modules.get("litellm")
    close = getattr(litellm, "close_litellm_async_clients", None)
    if close is not None:
        with suppress(RuntimeError, OSError):
            await close()
        litellm.in_memory_llm_clients_cache.flush_cache()
