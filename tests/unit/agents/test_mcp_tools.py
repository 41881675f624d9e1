"""An agent and the tools of a real MCP server: nothing sent before discovery, then exactly what was found (MCP-01, 02, 06, 08)."""

import hashlib
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from opendev.actors.servers import SharedServers
from opendev.agents.settings import AgentPorts
from opendev.agents.specs import builtin_specs
from opendev.context.pressure import estimate
from opendev.core.chat import ToolMessage
from opendev.core.clock import SystemClock
from opendev.core.tool import Skill
from opendev.tools.mcp.config import McpServer
from opendev.tools.mcp.manager import McpManager
from opendev.tools.shell.reap import family
from support.agents import Bench
from support.scripted_model import call, calls, done

SERVER = Path(__file__).parents[2] / "support" / "plain_mcp_server.py"
MARK = {"OPENDEV_RUN": "test-mcp-agents"}


def server(mode: str = "many") -> McpServer:
    return McpServer(name="plain", command=sys.executable, args=("-S", str(SERVER), mode))


class McpBench(Bench):
    manager: McpManager

    def ports(self) -> AgentPorts:
        return replace(super().ports(), mcp=self.manager)


@pytest.fixture
async def manager() -> AsyncIterator[McpManager]:
    made = McpManager([server()], {"PATH": "/usr/bin:/bin", **MARK})
    made.start()
    await made.settled(10)
    yield made
    await made.close()


def bench(tmp_path: Path, manager: McpManager, *steps: object) -> McpBench:
    made = McpBench(tmp_path, *steps)  # type: ignore[arg-type]
    made.manager = manager
    made.settings = made.settings.model_copy(update={"mcp": (server(),)})
    return made


def sent(made: Bench, turn: int) -> list[str]:
    return [tool.name for tool in made.model.requests[turn].tools if tool.name.startswith("mcp__")]


@pytest.mark.req("MCP-01", "MCP-02", "MCP-06", "MCP-08")
async def test_a_schema_is_sent_from_the_call_after_its_discovery_on(
    tmp_path: Path, manager: McpManager
) -> None:
    made = bench(
        tmp_path,
        manager,
        calls(call("search_tools", query="echo", detail="brief")),
        calls(call("search_tools", query="echo", detail="full")),
        calls(call("mcp__plain__tool_7", text="direct")),
        done(),
    )
    report = await made.run()
    assert report.error is None
    assert sent(made, 0) == sent(made, 1) == []
    assert sent(made, 2) == ["mcp__plain__echo"]
    assert sent(made, 3) == ["mcp__plain__echo", "mcp__plain__tool_7"]
    result = made.model.requests[3].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "direct" in result.content
    names = [tool.name for tool in made.model.requests[3].tools]
    assert names == sorted(set(names))
    first = made.model.requests[0]
    assert (
        "# MCP servers\n\nFind their tools with search_tools: plain"
        in first.messages[0].model_dump()["dynamic"]
    )
    without = Bench(tmp_path, done())
    await without.run()
    plain = without.model.requests[0]
    grown = estimate(first.messages, first.tools) - estimate(plain.messages, plain.tools)
    assert grown < 0.01 * 128_000


@pytest.mark.req("MCP-06")
async def test_a_direct_call_waits_for_a_server_that_is_still_starting(tmp_path: Path) -> None:
    manager = McpManager([server("")], {"PATH": "/usr/bin:/bin", **MARK})
    manager.start()
    try:
        made = bench(
            tmp_path, manager, calls(call("mcp__plain__echo", text="early"), call("mcp__gone__x")), done()
        )
        await made.run()
        first, second = made.model.requests[1].messages[-2:]
        assert isinstance(first, ToolMessage)
        assert isinstance(second, ToolMessage)
        assert "early" in first.content
        assert "There is no tool named 'mcp__gone__x'" in second.content
    finally:
        await manager.close()


@pytest.mark.req("MCP-07", "SUB-02")
async def test_a_sub_agent_calls_only_what_its_list_allows(tmp_path: Path, manager: McpManager) -> None:
    made = bench(tmp_path, manager, calls(call("mcp__plain__echo", text="x")), done())
    explorer = builtin_specs()["Code-Explorer"]
    await made.run("Code-Explorer")
    refused = made.model.requests[1].messages[-1]
    assert isinstance(refused, ToolMessage)
    assert "not available to this agent" in refused.content

    shared = SharedServers((server(""),), {"PATH": "/usr/bin:/bin", **MARK}, SystemClock())
    task = made.task("Code-Explorer")
    async with shared.used_by(task, lambda _event: None) as given:
        assert given is None
    wider = explorer.model_copy(update={"tools": (*(explorer.tools or ()), "mcp__plain__e*")})
    task = task.model_copy(update={"spec": wider})
    async with shared.used_by(task, lambda _event: None) as given:
        assert given is not None
        await given.settled(10)
        made = bench(tmp_path, given, calls(call("mcp__plain__echo", text="x")), done())
        agent = made.factory().agent_for(task)
        await agent.run(task, made.token)
        allowed = made.model.requests[1].messages[-1]
        assert isinstance(allowed, ToolMessage)
        assert not allowed.is_error
    assert len(family(marker=MARK)) == 1  # the fixture's: the shared one ended with its last agent


@pytest.mark.req("PRM-14", "AGT-07", "AGT-08", "SKL-03")
async def test_skills_are_in_the_prompt_and_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "review.md"
    path.write_text("---\nname: review\ndescription: Use when reviewing.\n---\nLook twice.\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    skill = Skill(
        name="review", description="Use when reviewing.", path=str(path), digest=digest, tier="user"
    )
    made = Bench(tmp_path, calls(call("use_skill", name="review")), done())
    made.settings = made.settings.model_copy(update={"skills": (skill,)})
    await made.run()
    system = made.model.requests[0].messages[0]
    assert "- review: Use when reviewing." in system.model_dump()["dynamic"]
    result = made.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "Look twice." in result.content
    assert made.factory().create_agents(made.root).skills.by_name == {"review": skill}
