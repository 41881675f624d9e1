"""The short way to OpenAI-compatible servers: which models take it, and that litellm stays out (ray.md rule 6)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from opendev.llm.openai_direct import speaks_openai
from support.model_server import ModelServer, text

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("provider", "base", "model", "direct"),
    [
        ("openai", "http://127.0.0.1:1/v1", "openai/qwen3-coder", True),
        ("openai", "http://127.0.0.1:1/v1", "openai/gpt-4o", True),
        ("openai", "", "openai/gpt-4o", False),
        ("openai", "http://127.0.0.1:1/v1", "openai/gpt-5-mini", False),
        ("openai", "http://127.0.0.1:1/v1", "openai/o3", False),
        ("anthropic", "http://127.0.0.1:1", "anthropic/claude-x", False),
        ("hosted_vllm", "http://127.0.0.1:1/v1", "hosted_vllm/x", False),
    ],
)
def test_only_plain_models_of_a_server_of_ones_own_go_the_short_way(
    provider: str, base: str, model: str, direct: bool
) -> None:
    assert speaks_openai(provider, base, model) is direct


@pytest.mark.slow
def test_a_call_to_a_compatible_server_does_not_load_litellm() -> None:
    program = (
        "import asyncio, json, sys\n"
        "from opendev.actors.model_service import ModelService\n"
        "from support.model_requests import make_request\n"
        "async def main():\n"
        "    service = ModelService({'env': json.loads(sys.argv[1]), 'preload': ['openai/test']})\n"
        "    print((await service.complete(make_request('openai/test'))).message.content)\n"
        "    await service.close()\n"
        "asyncio.run(main())\n"
        "print('litellm' in sys.modules)\n"
    )
    with ModelServer([text("hello")]) as server:
        argv = [sys.executable, "-W", "error::ResourceWarning", "-c", program, json.dumps(server.env())]
        done = subprocess.run(
            argv, capture_output=True, text=True, env={"PYTHONPATH": str(TESTS)}, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\nFalse\n", "")
