"""Building agents: eager, filtered, from data alone; prompts that siblings share (AGT-01..10, SUB-02, SUB-13, SUB-14)."""

import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import is_typeddict

import pytest
from opendev import agents
from opendev.agents.base import AgentInterface, BaseAgent
from opendev.agents.factory import AgentSuite
from opendev.agents.inbox import INBOX_SIZE, Inbox
from opendev.agents.main_agent import MainAgent
from opendev.agents.settings import AgentSettings
from opendev.agents.specs import SubAgentSpec, builtin_specs, custom_spec
from opendev.core.agent import AgentStatus, AgentTask
from opendev.core.approval import Mode
from opendev.core.chat import ModelFailed, ModelReply, ModelRequest, Role
from opendev.core.interrupt import InterruptToken
from opendev.core.model import Frozen
from opendev.core.ticket import Write
from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
from opendev.llm.recipes import RecipeModel
from opendev.tools.catalog import BUILTIN
from opendev.tools.registry import ToolRegistry
from support.agents import Bench
from support.scripted_model import call, calls, done, says


@pytest.mark.req("AGT-02")
@pytest.mark.req("AGT-07")
def test_the_suite_is_built_eagerly_without_a_model_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    custom = custom_spec(
        {"name": "Doc", "description": "Writes documentation.", "system_prompt": "You write docs."}
    )
    bench.settings = bench.settings.model_copy(update={"custom": (custom,)})
    suite = bench.factory().create_agents(bench.root)
    assert suite.subagents.names == (
        *sorted(set(builtin_specs()) - {"Main"}, key=str.casefold),
        "Doc",
    ) or set(suite.subagents.names) == (set(builtin_specs()) - {"Main"}) | {"Doc"}
    assert suite.main.system_prompt
    assert [schema.name for schema in suite.main.tool_schemas] == sorted(tool.name for tool in BUILTIN)
    spawn = next(schema for schema in suite.main.tool_schemas if schema.name == "spawn_subagent")
    assert "Doc: Writes documentation." in spawn.description
    assert "Code-Explorer: " in spawn.description
    assert bench.model.requests == []


@pytest.mark.req("AGT-04")
@pytest.mark.req("AGT-05")
def test_there_is_one_concrete_class_behind_one_protocol(tmp_path: Path) -> None:
    suite = Bench(tmp_path).factory().create_agents(tmp_path)
    explorer = suite.subagents.get("Code-Explorer")
    assert explorer is not None
    assert type(suite.main) is type(explorer.agent) is MainAgent
    assert BaseAgent.__subclasses__() == [MainAgent]
    assert isinstance(suite.main, AgentInterface)
    assert (suite.main.is_subagent, explorer.agent.is_subagent) == (False, True)
    assert BaseAgent.__abstractmethods__ == {
        "build_system_prompt",
        "build_tool_schemas",
        "call_llm",
        "run_sync",
    }


@pytest.mark.req("SUB-02")
@pytest.mark.req("ACT-03")
async def test_a_tool_outside_of_the_list_is_absent_and_refused(tmp_path: Path) -> None:
    write = call("write_file", "w", file_path="a.txt", content="x")
    bench = Bench(tmp_path, calls(write), says("Failure accepted: not mine."))
    await bench.run("Code-Explorer")
    offered = [tool.name for tool in bench.model.requests[0].tools]
    expected = set(builtin_specs()["Code-Explorer"].tools or ()) & {tool.name for tool in BUILTIN}
    assert set(offered) == expected
    assert not (bench.root / "a.txt").exists()


@pytest.mark.req("SUB-04")
def test_todos_stay_with_the_main_agent(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    greedy = builtin_specs()["Coder"].model_copy(update={"tools": ("read_file", "write_todos", "list_todos")})
    task = bench.task().model_copy(update={"spec": greedy})
    assert bench.factory().agent_for(task).registry.names == ("read_file",)


@pytest.mark.req("AGT-03")
def test_refresh_builds_both_again(tmp_path: Path) -> None:
    agent = Bench(tmp_path).factory().create_agents(tmp_path).main
    before = agent.system_prompt
    agent.adopt("You are somebody else.\n")
    assert agent.system_prompt.startswith("You are somebody else.")
    assert agent.system_prompt != before


async def test_the_stable_part_is_the_same_for_siblings_and_turns(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("list_files", path=".")), says("x"), says("y"))
    await bench.run("Code-Explorer", id="one", run_id="r-one")
    await bench.run("Code-Explorer", "Another task", id="two", run_id="r-two")
    systems = [request.messages[0] for request in bench.model.requests]
    assert len({s.stable for s in systems if s.role == "system"}) == 1
    assert len({json.dumps([t.model_dump() for t in r.tools]) for r in bench.model.requests}) == 1
    first = systems[0]
    assert first.role == "system"
    for volatile in (str(tmp_path), "r-one", "202"):
        assert volatile not in first.stable
    assert str(bench.root) in first.dynamic


@pytest.mark.req("SUB-13")
async def test_the_planner_writes_in_its_scratch_folder_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    plan = bench.home / "scratch" / "a1" / "plan.md"
    outside = call("write_file", "o", file_path="src.py", content="x")
    inside = call("write_file", "i", file_path=str(plan), content="# Goal")
    bench.model.add(calls(outside), calls(inside), done(f"plan_file_path: {plan}"))
    report = await bench.run("Planner")
    assert report.status is AgentStatus.DONE
    assert plan.read_text() == "# Goal"
    assert list(bench.root.iterdir()) == []
    assert report.files_changed == ()


@pytest.mark.req("SUB-14")
async def test_ask_user_calls_no_model(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.people.answers = ("Blue", "yes")
    prompt = json.dumps([{"text": "Colour?", "options": ["Red", "Blue"]}, {"text": "Sure?"}])
    report = await bench.run("Ask-User", prompt)
    assert (report.status, report.text) == (AgentStatus.DONE, "Colour?\n→ Blue\nSure?\n→ yes")
    assert (report.model_calls, bench.model.requests) == (0, [])
    bench.people.answers = None
    assert (await bench.run("Ask-User", "Ready?")).status is AgentStatus.UNANSWERED
    too_many = json.dumps([{"text": "?"}] * 5)
    assert (await bench.run("Ask-User", too_many)).status is AgentStatus.FAILED


async def test_a_recipe_runs_through_the_same_loop_without_a_model(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.settings = AgentSettings()
    bench.client = client = RecipeClient()
    report = await bench.run("Coder", "Make it.", recipe=(Write(path="d/a.txt", content="hi\n"),))
    assert (report.status, report.error) == (AgentStatus.DONE, None)
    assert (bench.root / "d" / "a.txt").read_text() == "hi\n"
    assert report.usage.cost_usd == 0
    assert client.requests[0].model == "offline/recipes"
    offered = {tool.name for tool in client.requests[0].tools}
    assert {"replace_text", "rewrite_code", "delete_file", "move_file"} <= offered
    plain = bench.factory().agent_for(bench.task("Coder"))
    assert "delete_file" not in plain.registry.names


class RecipeClient:
    """The real recipe model behind the port."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        self.requests.append(request)
        return await RecipeModel().complete(request)


def test_a_task_and_settings_survive_the_way_to_another_process(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    task = bench.task("Planner", mode=Mode.PLAN, models={Role.ACTION: "a/b"})
    assert AgentTask.model_validate_json(task.to_json()) == task
    settings = bench.settings.model_copy(update={"custom": (builtin_specs()["Coder"],)})
    assert AgentSettings.model_validate_json(settings.model_dump_json()) == settings


def test_run_sync_is_the_loop_for_callers_without_an_event_loop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Hi."))
    task = bench.task()
    assert bench.factory().agent_for(task).run_sync(task, InterruptToken()).text == "Hi."


@pytest.mark.req("AGT-06")
def test_the_inbox_is_bounded_and_tells_the_sender() -> None:
    inbox = Inbox()
    assert [inbox.put(str(n)) for n in range(INBOX_SIZE + 1)] == [True] * INBOX_SIZE + [False]
    assert not inbox.try_close()
    assert inbox.drain() == tuple(str(n) for n in range(INBOX_SIZE))
    assert not inbox.put("  ")
    assert inbox.try_close()
    assert not inbox.put("late")


@pytest.mark.req("AGT-01")
def test_the_abstract_agent_asks_for_exactly_four_things() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseAgent(AgentSettings(), ToolRegistry(()), Mode.NORMAL)  # type: ignore[abstract]
    assert list(inspect.signature(BaseAgent.__init__).parameters) == [
        "self",
        "config",
        "tool_registry",
        "mode",
    ]
    assert inspect.iscoroutinefunction(MainAgent.call_llm)
    assert not inspect.iscoroutinefunction(MainAgent.run_sync)


@pytest.mark.req("AGT-08")
def test_the_suite_holds_the_main_agent_and_the_manager(tmp_path: Path) -> None:
    suite = Bench(tmp_path).factory().create_agents(tmp_path)
    assert isinstance(suite, AgentSuite)
    assert (suite.main.is_subagent, suite.subagents.get("Planner") is None) == (False, False)


@pytest.mark.req("AGT-09")
def test_a_sub_agents_spec_is_a_typed_dict() -> None:
    assert is_typeddict(SubAgentSpec)
    assert SubAgentSpec.__required_keys__ == {"name", "description", "system_prompt"}
    assert SubAgentSpec.__optional_keys__ >= {"tools", "model"}


@pytest.mark.req("AGT-11")
@pytest.mark.req("AGT-12")
async def test_services_reach_tools_as_ports_and_a_sub_agent_gets_no_console_session_or_config(
    tmp_path: Path,
) -> None:
    seen: list[ToolContext] = []

    async def look(_args: Frozen, ctx: ToolContext) -> ToolResult:
        seen.append(ctx)
        return ToolResult(ok=True, text="seen")

    tool = Tool(name="list_files", category="file", args=Frozen, run=look, effects=frozenset({Effect.READ}))
    bench = Bench(tmp_path, calls(call("list_files")), says("ok"), tools=(tool,))
    await bench.run("Code-Explorer", depth=1)
    context = seen[0]
    assert context.ask is bench.people
    assert context.spawner is bench.spawner
    given = {field.name for field in fields(ToolContext)}
    assert not given & {
        "console",
        "session",
        "session_manager",
        "config",
        "settings",
        "model",
        "registry",
        "home",
    }
    for path in (Path(agents.__file__).parents[1] / "tools").rglob("*.py"):
        assert "from ..agents" not in path.read_text()
        assert "from ...agents" not in path.read_text()
