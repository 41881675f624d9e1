"""OpenAI-compatible servers without litellm: the official SDK loads in a fifth of its time (ray.md rule 6; bench/startup.py measures it)."""

import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from ..core.model import JsonObject

_OWN_RULES = re.compile(r"^(o\d|gpt-5|gpt-[6-9]|codex|chatgpt)")  # models whose parameters litellm translates
_FOR_LITELLM = ("api_key", "api_base", "num_retries", "max_retries", "drop_params")


def speaks_openai(provider: str, base: str, model: str) -> bool:
    """Whether ``model`` (provider/NAME) is served by an OpenAI-compatible server of the user's own, with plain parameters.

    OpenAI itself, and its models with rules of their own, go through litellm, which knows their differences.
    """
    return provider == "openai" and bool(base) and not _OWN_RULES.match(model.partition("/")[2])


def load_openai() -> Any:
    """Import the SDK (0.5 CPU-seconds the first time; call it in a thread)."""
    import openai

    return openai


class OpenAIDirect:
    """Takes the arguments of ``litellm.acompletion``; one HTTP client, kept for the life of the process or until ``close``."""

    def __init__(self) -> None:
        self._client: Any = None

    async def acompletion(self, **arguments: Any) -> Any:
        """A response, or an async generator of chunks. Raises the SDK's errors; ``ConnectionError`` for a stream without an end."""
        if self._client is None:
            self._client = load_openai().AsyncOpenAI(
                api_key=arguments["api_key"], base_url=arguments["api_base"], max_retries=0
            )
        body: JsonObject = {name: value for name, value in arguments.items() if name not in _FOR_LITELLM}
        body["model"] = str(body["model"]).partition("/")[2]
        answer = await self._client.chat.completions.create(**body)
        return _chunks(answer) if arguments["stream"] else answer

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(RuntimeError, OSError):
                await client.close()


async def _chunks(stream: Any) -> AsyncGenerator[Any]:
    ended = False
    try:
        async for chunk in stream:
            ended = ended or any(choice.finish_reason for choice in chunk.choices or ())
            yield chunk
    finally:
        await stream.close()
    if not ended:
        raise ConnectionError("The stream ended before the answer was complete.")
