"""The scripted model server itself, run alone as a program, and the door's silence towards the network."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from opendev.core.chat import ModelReply
from support.model_requests import make_request, make_service
from support.model_server import ModelServer, Reply, Seen, text

PROGRAM = Path(__file__).parents[1] / "support" / "model_server.py"


@pytest.mark.usefixtures("litellm_loaded")
async def test_it_plays_a_script_file_as_a_program(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    replies = [
        {
            "calls": [{"name": "read_file", "arguments": {"file_path": "a"}}],
            "usage": {"input": 9, "output": 3},
        }
    ]
    script.write_text(json.dumps({"replies": replies, "sessions": {"MARK-7": [{"text": "for seven"}]}}))
    command = [sys.executable, str(PROGRAM), "--script", str(script), "--log", str(log)]
    child = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdin is not None
    started = json.loads(await child.stdout.readline())
    service = make_service(env=started["env"])
    first = await service.complete(make_request())
    assert isinstance(first, ModelReply)
    assert first.message.tool_calls[0].arguments == {"file_path": "a"}
    marked = make_request("anthropic/claude-test")
    marked = marked.model_copy(
        update={"messages": (marked.messages[0].model_copy(update={"stable": "MARK-7"}), marked.messages[1])}
    )
    second = await service.complete(marked)
    assert isinstance(second, ModelReply)
    assert second.message.content == "for seven"
    await service.close()
    child.stdin.close()
    assert await child.wait() == 0
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["path"] for row in rows] == ["/v1/chat/completions", "/v1/messages"]
    assert rows[0]["billed"] == {"input": 9, "output": 3, "cached": 0}


async def test_a_function_may_answer_and_the_peak_is_counted() -> None:
    def echo(seen: Seen) -> Reply:
        return text(f"request {seen.number}", latency_s=0.2)

    with ModelServer(echo) as server:
        service = make_service(server)
        await asyncio.gather(*(service.complete(make_request()) for _ in range(3)))
        await service.close()
        assert server.peak == 3


_NO_NETWORK = """
import asyncio, json, socket, sys, warnings
warnings.simplefilter("error")
sys.path.insert(0, sys.argv[2])
strangers = []
class Watched(socket.socket):
    def connect(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            strangers.append(address)
        return super().connect(address)
socket.socket = Watched
real = socket.getaddrinfo
def look_up(host, *rest, **named):
    if host not in ("127.0.0.1", "localhost", None):
        strangers.append(host)
        raise OSError("no network in this test")
    return real(host, *rest, **named)
socket.getaddrinfo = look_up
from opendev.actors.model_service import ModelService
from support.model_requests import make_request
async def main():
    service = ModelService({"env": json.loads(sys.argv[1]), "preload": ["openai/test"]})
    for model in ("openai/test", "anthropic/claude-test"):
        async for item in service.stream(make_request(model)):
            last = item
        print(last.message.content)
    await service.close()
asyncio.run(main())
print(strangers)
"""


@pytest.mark.soak
def test_no_call_home_and_nothing_on_stderr() -> None:
    with ModelServer([text("one"), text("two")]) as server:
        command = [sys.executable, "-c", _NO_NETWORK, json.dumps(server.env()), str(PROGRAM.parents[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n[]\n", "")
