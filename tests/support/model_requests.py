"""Model requests and services for tests: small, with fast retries, pointed at a ``ModelServer``."""

from typing import Any

from opendev.actors.model_service import ModelService
from opendev.core.chat import Message, ModelRequest, SystemMessage, ToolSchema, UserMessage
from opendev.core.clock import Clock
from support.model_server import ModelServer

# By the OpenAI SDK, by litellm, and a model of OpenAI's with rules of its own, by litellm again.
MODELS = ("openai/test", "anthropic/claude-test", "openai/gpt-5-test")
FAST_RETRY = {"base_s": 0.01, "cap_s": 0.05, "open_s": 0.02}
PRICES = {model: {"input": 10.0, "output": 100.0, "cached": 1.0} for model in MODELS}
READ = ToolSchema(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"file_path": {"type": "string"}}},
)


def make_request(
    model: str = MODELS[0], *messages: Message, tools: tuple[ToolSchema, ...] = (READ,), **fields: Any
) -> ModelRequest:
    """A request; without messages one system prompt and one user message."""
    said = messages or (SystemMessage(stable="You code.", dynamic="Today."), UserMessage(content="go"))
    return ModelRequest.model_validate(
        {"id": "r1", "agent_id": "a1", "model": model, "messages": said, "tools": tools, **fields}
    )


def make_service(
    server: ModelServer | None = None, *, clock: Clock | None = None, **settings: Any
) -> ModelService:
    """A service that knows the server's address, has prices for the test models and retries fast."""
    retry = FAST_RETRY | settings.pop("retry", {})
    env = server.env() if server else {}
    return ModelService({"env": env, "retry": retry, "prices": PRICES, **settings}, clock)
