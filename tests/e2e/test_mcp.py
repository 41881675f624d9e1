"""MCP both ways, end to end: a prompt that uses a server and leaves none behind (X07); OpenDev as a server (`opendev mcp serve`)."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.manager import McpManager
from support.command_line import OPENDEV, Sandbox, end, marked, while_running
from support.model_server import ModelServer, call, text
from support.swarm_cli import CHECK, make_bench, put, task
from support.waiting import until

pytestmark = pytest.mark.slow
Serve = Callable[..., ModelServer]
PLAIN = str(Path(__file__).parents[1] / "support" / "plain_mcp_server.py")


def wrapped(sandbox: Sandbox, mode: str = "") -> None:
    """A server behind a shell, as `npx` and `uvx` are."""
    args = ["-c", f"{sys.executable} -S {PLAIN} {mode}; true"]
    path = sandbox.home / "opendev" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"plain": {"command": "/bin/sh", "args": args}}}))


@pytest.mark.req("MCP-02", "MCP-06", "MCP-07")
@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.soak])])
def test_a_prompt_uses_a_server_and_leaves_none(sandbox: Sandbox, serve: Serve, runtime: str) -> None:
    wrapped(sandbox)
    server = serve(
        call("search_tools", {"query": "echo", "detail": "full"}),
        call("mcp__plain__echo", {"text": "through the wall"}),
        call("task_complete", {"status": "success", "summary": "Done."}),
    )
    done = sandbox.run("-p", "Say it.", "--output", "json", "--approve", "auto", "--runtime", runtime)
    assert (done.code, done.report["status"]) == (0, "done"), done.stderr
    offered = [[tool["function"]["name"] for tool in seen.body["tools"]] for seen in server.seen]
    assert "mcp__plain__echo" not in offered[0]
    assert "mcp__plain__echo" in offered[1]
    assert "through the wall" in json.dumps(server.seen[2].messages[-1])
    (run,) = sandbox.runs()
    assert marked(run) == []


@pytest.mark.req("MCP-07")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_server_outlives_a_run_that_is_ended(
    sandbox: Sandbox, serve: Serve, number: signal.Signals
) -> None:
    wrapped(sandbox)
    serve(call("search_tools", {"query": "echo"}), text("never", latency_s=60))
    process = sandbox.start("-p", "Wait.", "--output", "json")
    while_running(process, lambda: bool(sandbox.runs()) and len(marked(sandbox.runs()[0])) >= 2)
    (run,) = sandbox.runs()
    end(process, number)
    asyncio.run(until(lambda: marked(run) == []))


@pytest.mark.req("MCP-09")
async def test_another_agent_runs_a_batch_through_the_server(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    try:
        tickets = bench.tickets(task("one", put("one.py", "X = 1\n")), verify=CHECK)
        env = bench.sandbox.environment()
        served = McpServer(
            name="opendev", command=str(OPENDEV), args=("mcp", "serve"), timeout=60_000, cwd=str(bench.repo)
        )
        manager = McpManager([served], env)
        manager.start()
        assert await manager.settled(60) == ()
        link = manager.link("opendev")
        assert [tool.name for tool in link.tools] == ["swarm_run", "swarm_status", "swarm_report"]
        wrong = await link.call("swarm_report", {"run": "../x"})
        assert (wrong.ok, "There is no run" in wrong.text) == (False, True)
        missing = await link.call("swarm_run", {"file": "none.toml"})
        assert (missing.ok, "no ticket file" in missing.text) == (False, True)
        started = await link.call("swarm_run", {"file": str(tickets), "runtime": "local"})
        assert started.ok, started.text
        run = json.loads(started.text)
        async with asyncio.timeout(60):
            while '"finished"' not in (await link.call("swarm_status", run)).text:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        report = await link.call("swarm_report", run)
        assert report.ok, report.text
        assert "one" in report.text
        await manager.close()
        assert bench.commits() != []
    finally:
        bench.close()
