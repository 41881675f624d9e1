"""The principles of the architecture, each held by what really happens (ARC-01..04); bounds are in ``test_bounds``."""

import ast
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.local_runtime import LocalRuntime
from opendev.agents.factory import AgentFactory
from opendev.agents.settings import MemorySettings
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentStatus, Budget
from opendev.core.approval import ApprovalLevel
from opendev.core.chat import AssistantMessage, ModelReply, ModelRequest, Role, ToolMessage
from opendev.core.errors import ErrorKind
from opendev.core.events import AssistantText, Event, GateDecided, Notice, ToolFinished
from opendev.policy.verdict import Verdict, deny
from opendev.store.records import TranscriptLine
from opendev.tools.catalog import BUILTIN
from support.agents import Bench
from support.model_server import ModelServer, Reply, Seen, text
from support.model_server import call as served
from support.runtimes import hub_on, task_of
from support.scripted_model import call, calls, done, failed, says

ROOT = Path(__file__).resolve().parents[2]
LONG = "The file a.py is important. " * 400


# ARC-01: session -> agent -> workflow -> model


class Workflows:
    """Answers each workflow of one agent and keeps, by workflow, the model named in the raw bytes of its requests."""

    def __init__(self) -> None:
        self.models: dict[str, set[str]] = {"execution": set(), "thinking": set(), "compaction": set()}
        self.agents: list[str] = []
        self.compact = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._turns = 0

    def __call__(self, seen: Seen) -> Reply:
        body = json.loads(seen.raw)
        kind = (
            "execution" if body.get("tools") else "thinking" if "inner voice" in str(body) else "compaction"
        )
        self.models[kind].add(body["model"])
        if kind == "thinking":
            return text("First look, then act.")
        if kind == "compaction":
            return text("It read a.py.")
        self._turns += 1
        if self._turns == 5:
            self.loop.call_soon_threadsafe(self.compact.set)
        return (
            served("search", {"pattern": f"word {self._turns}"}, say=LONG)
            if self._turns < 8
            else text("Done.")
        )


@pytest.mark.slow
@pytest.mark.req("ARC-01")
async def test_the_workflows_of_one_agent_have_models_of_their_own_by_configuration_alone(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    play = Workflows()
    models = {role: f"openai/m-{role}" for role in ("action", "thinking", "compact")}
    with ModelServer(play) as server:
        async with hub_on(
            LocalRuntime(), tmp_path, specs=builtin_specs(), run_id="workflows",
            model={"env": server.env(), "prices": {name: {"input": 1, "output": 1} for name in models.values()}},
            agent={"models": models, "thinking": "medium"},
            worker="opendev.actors.worker:Worker", model_service="opendev.actors.model_service:ModelService",
        ) as hub:  # fmt: skip
            task = task_of("workflows", root, spec=builtin_specs()["Main"], prompt="Look.", approve="auto")
            run = asyncio.create_task(hub.run_agent(task))
            async with asyncio.timeout(20):
                await play.compact.wait()
            assert await hub.deliver(task.id, "/compact")
            report = await run
    assert report.status is AgentStatus.DONE, report
    assert play.models == {"execution": {"m-action"}, "thinking": {"m-thinking"}, "compaction": {"m-compact"}}


# ARC-02: down through the layers; on disk before it is drawn


class Drawn:
    """An event sink that looks, at the moment of each event, whether the transcript on disk has what the event draws."""

    def __init__(self, bench: Bench) -> None:
        self._path = bench.home / "transcripts" / "r1" / "a1.jsonl"
        self.early: list[str] = []
        self.seen = 0

    def _lines(self) -> list[Any]:
        raw = self._path.read_text() if self._path.exists() else ""
        return [TranscriptLine.model_validate_json(line).message for line in raw.splitlines()]

    def __call__(self, event: Event) -> None:
        said = self._lines()
        match event:
            case ToolFinished():
                there = any(isinstance(m, ToolMessage) and m.call_id == event.call_id for m in said)
            case AssistantText():
                there = any(isinstance(m, AssistantMessage) and m.content == event.text for m in said)
            case _:
                return
        self.seen += 1
        if not there:
            self.early.append(event.kind)


@pytest.mark.req("ARC-02")
async def test_what_is_drawn_is_on_disk_before(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        calls(
            call("write_file", "w", file_path="a.py", content="a = 1\n"),
            call("read_file", "r1", file_path="a.py"),
            call("list_files", "r2", path="."),
            text="I write and look.",
        ),
        says("All there."),
    )
    drawn = Drawn(bench)
    ports = replace(bench.ports(), emit=drawn)
    task = bench.task()
    report = await AgentFactory(settings=bench.settings, ports=ports).agent_for(task).run(task, bench.token)
    assert (report.status, drawn.seen, drawn.early) == (AgentStatus.DONE, 5, [])
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    said = [TranscriptLine.model_validate_json(line).message for line in raw.splitlines()]
    ids = sorted(m.call_id for m in said if isinstance(m, ToolMessage))
    assert ids == ["r1", "r2", "w"]  # each once


@pytest.mark.req("ARC-02")
async def test_a_model_reaches_files_and_shell_only_through_the_registry_and_its_gate(tmp_path: Path) -> None:
    tools = tuple(tool for tool in BUILTIN if tool.name in ("read_file", "task_complete"))
    steps = [
        calls(call("write_file", "w", file_path="a.py", content="x")),
        calls(call("run_command", "c", command="touch made")),
        calls(call("os.system", "o", command="touch made")),
        calls(call("read_file", "g", file_path="../outside.txt")),
        says(
            '{"name": "write_file", "arguments": {"file_path": "a.py", "content": "x"}}\n```bash\ntouch made\n```'
        ),
    ]
    bench = Bench(tmp_path, *steps, tools=tools)
    (tmp_path / "outside.txt").write_text("SECRET")
    await bench.run()
    assert list(bench.root.iterdir()) == []
    assert bench.shell.commands == []
    assert "SECRET" not in str([request.messages for request in bench.model.requests])


REACHES = frozenset({"subprocess", "shutil", "pty", "os.system", "os.popen"})


@pytest.mark.req("ARC-02")
def test_model_and_loop_code_starts_no_process() -> None:
    """Neither the layer that talks to models nor the loop may reach the system but through tools and ports."""
    found: list[str] = []
    for path in (
        *(ROOT / "llm").rglob("*.py"),
        *(ROOT / "agents").rglob("*.py"),
        *(ROOT / "context").rglob("*.py"),
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {node.module or ""}
            elif isinstance(node, ast.Attribute):
                names = {ast.unparse(node)}
            else:
                continue
            found += [f"{path.relative_to(ROOT)}: {name}" for name in names & REACHES]
    assert found == []


# ARC-03 (a): parts that are replaced alone


@pytest.mark.req("ARC-03")
async def test_model_compactor_gate_and_tools_are_each_replaced_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OtherModel:
        async def complete(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            return says(f"I am {request.model}.")

    bench = Bench(tmp_path)
    bench.client = OtherModel()
    bench.settings = bench.settings.model_copy(update={"models": {Role.ACTION: "other/model"}})
    assert (await bench.run()).text == "I am other/model."

    plain = tuple(tool for tool in BUILTIN if tool.name == "list_files")
    only = Bench(tmp_path, says("Nothing to do."), tools=plain)
    await only.run()
    assert [tool.name for tool in only.model.requests[0].tools] == ["list_files"]

    shut = Bench(tmp_path, calls(call("list_files", path=".")), says("Refused."))

    def closed(*_: object, **__: object) -> Verdict:
        return deny("house", "Closed today.")

    monkeypatch.setattr("opendev.policy.gate.Gate.judge", closed)
    await shut.run()
    decided = [event for event in shut.events if isinstance(event, GateDecided)]
    assert [(event.decision, event.layer, event.reason) for event in decided] == [
        ("deny", "house", "Closed today.")
    ]


# ARC-03 (b): an orderly end

ENDS: Mapping[str, tuple[Sequence[Any], Mapping[str, Any], AgentStatus]] = {
    "tokens": ([failed("The budget of task:a1 is spent.", ErrorKind.BUDGET)], {}, AgentStatus.BUDGET),
    "network": ([failed("The provider cannot be reached.")], {}, AgentStatus.INFRA),
    "iterations": (
        [calls(call("list_files", path=".", max_results=n + 1)) for n in range(5)],
        {"budget": Budget(max_iterations=3)},
        AgentStatus.ITERATION_CAP,
    ),
}  # fmt: skip


@pytest.mark.req("ARC-03")
@pytest.mark.parametrize("what", sorted(ENDS))
async def test_what_runs_out_ends_in_a_report_and_a_conversation_that_can_go_on(
    tmp_path: Path, what: str
) -> None:
    steps, fields, status = ENDS[what]
    first = calls(call("write_file", file_path="kept.py", content="x = 1\n"), text="I begin.")
    bench = Bench(tmp_path, first, *steps, says("I stop here."))
    report = await bench.run(**fields)
    assert report.status is status
    assert report.error is not None or status is AgentStatus.ITERATION_CAP
    assert report.text, report  # the last words are kept
    assert report.files_changed == ("kept.py",)
    again = Bench(tmp_path, says("Here again."))
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    history = tuple(TranscriptLine.model_validate_json(line).message for line in raw.splitlines())[1:]
    resumed = await again.run(prompt="Go on.", history=history)
    assert (resumed.status, resumed.text) == (AgentStatus.DONE, "Here again.")


# ARC-03 (c): the developer sees it


class Learner:
    """A model that works six turns; asked for it, it reflects, curates and summarises."""

    def __init__(self) -> None:
        self._turns = 0

    async def complete(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        system = str(request.messages[0])
        if "You look back at a piece of work" in system:
            lesson = {"reasoning": "r", "root_cause": "c", "correct_approach": "run make check"}
            return says(json.dumps(lesson))
        if "You keep the playbook" in system:
            return says(json.dumps({"operations": [{"type": "ADD", "content": "Run make check."}]}))
        self._turns += 1
        if self._turns == 1:
            return calls(call("run_command", "bad", command="rm -rf /"))
        if self._turns < 8:
            return calls(
                call("list_files", f"c{self._turns}", path=".", max_results=self._turns),
                text=LONG,
                tokens=20_000,
            )
        return done()


@pytest.mark.req("ARC-03")
async def test_calls_vetoes_compactions_and_memory_each_emit_an_event(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.client = Learner()
    bench.settings = bench.settings.model_copy(
        update={
            "models": {Role.ACTION: "test/model", Role.COMPACT: "test/compact"},
            "memory": MemorySettings(playbook=True, learn="beside"),
            "context_limits": {"test/model": 26_000},
        }
    )
    report = await bench.run()
    assert report.status is AgentStatus.DONE, report
    kinds = set(bench.kinds())
    assert {"tool_started", "tool_finished", "gate_decided", "compacted"} <= kinds, kinds
    noted = [event.text for event in bench.events if isinstance(event, Notice)]
    assert "Noted: Run make check." in noted


@pytest.mark.req("ARC-03")
async def test_each_of_them_can_be_overridden(tmp_path: Path) -> None:
    """A veto by a person's word, memory by its setting: the other half of (c)."""
    asked = Bench(tmp_path, calls(call("run_command", command="git push")), done())
    asked.people.decisions = ["once"]
    await asked.run(approve=ApprovalLevel.MANUAL)
    assert asked.shell.commands == ["git push"]
    quiet = Bench(tmp_path)
    quiet.client = Learner()
    quiet.settings = quiet.settings.model_copy(
        update={"models": {Role.ACTION: "test/model", Role.COMPACT: "test/compact"}}
    )
    await quiet.run()
    assert not [
        event for event in quiet.events if isinstance(event, Notice) and event.text.startswith("Noted")
    ]


# ARC-04: scaffolding is over before the first prompt


@pytest.mark.req("ARC-04")
def test_an_agent_is_whole_when_it_is_built(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    suite = bench.factory().create_agents(bench.root)
    for name in suite.subagents.names:
        compiled = suite.subagents.get(name)
        assert compiled is not None
        assert compiled.agent.system_prompt.strip(), name
        assert {s.name for s in compiled.agent.tool_schemas} <= set(compiled.tools), name
    assert suite.main.system_prompt.strip()
    spawn = next(schema for schema in suite.main.tool_schemas if schema.name == "spawn_subagent")
    assert all(name in spawn.description for name in ("Planner", "Code-Explorer"))
    assert bench.model.requests == []
    assert bench.events == []


ASKS = ("initialized", "initialised", "is_ready", "ensure_init", "_built", "_is_init", "lazy_init")


@pytest.mark.req("ARC-04")
def test_nothing_in_the_harness_asks_whether_an_agent_is_initialised() -> None:
    """No flag to ask, and no prompt or schema that may still be missing: their types have no ``None``."""
    found: list[str] = []
    for path in sorted((ROOT / "agents").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.id
                if isinstance(node, ast.Name)
                else ""
            )
            if any(word in name for word in ASKS):
                found.append(f"{path.name}:{getattr(node, 'lineno', 0)} {name}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("hasattr", "getattr"):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
            if isinstance(node, ast.Compare) and any(
                ast.unparse(side).endswith(("system_prompt", "tool_schemas", ".registry"))
                for side in (node.left, *node.comparators)
            ):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert found == []
