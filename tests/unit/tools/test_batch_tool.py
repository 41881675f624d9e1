"""batch_tool: several calls through the same gates, parallel or serial, one result each (BAT-01..03)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.chat import ToolCall
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind
from opendev.core.events import GateDecided, ToolFinished
from opendev.core.model import Frozen
from opendev.core.scope import Scope
from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
from opendev.policy.gate import Gate
from opendev.tools import batch_tool
from opendev.tools.batch_tool import MOST, unfolded
from opendev.tools.catalog import BUILTIN
from opendev.tools.dispatch import Dispatcher
from opendev.tools.registry import ToolRegistry
from support.agents import Bench
from support.scripted_model import call, calls, done, says
from support.tool_context import EventLog, FakeAsker, make_context


class World:
    """The real tools, or given ones, behind a dispatcher."""

    def __init__(self, root: Path, *tools: Tool[Any], **given: Any) -> None:
        self.root, self.events = root, EventLog()
        self.asker = given.pop("asker", FakeAsker())
        level = given.pop("level", ApprovalLevel.AUTO)
        mode = given.pop("mode", Mode.NORMAL)
        self.results: list[ToolResult] = []
        self.dispatcher = Dispatcher(
            registry=ToolRegistry(
                (*tools, batch_tool.TOOL) if tools else BUILTIN, given.pop("allowed", None)
            ),
            gate=Gate(level=level, mode=mode, root=root, scope=Scope()),
            make_context=lambda id: make_context(root, call_id=id, emit=self.events),
            asker=self.asker,
            emit=self.events,
            clock=SystemClock(),
            agent="Coder",
            on_result=self.results.append,
        )

    async def batch(self, *inner: tuple[str, dict[str, Any]], **options: Any) -> tuple[str, bool]:
        """The text of the result, and whether it is an error."""
        listed = [{"tool": name, "arguments": arguments} for name, arguments in inner]
        given = ToolCall(id="b", name="batch_tool", arguments={"calls": listed, **options})
        (message,) = await self.dispatcher.run([given])
        assert message.call_id == "b"
        return message.content, message.is_error


class Args(Frozen):
    n: int = 0


def probe(log: list[str]) -> Tool[Args]:
    async def run(args: Args, ctx: ToolContext) -> ToolResult:
        log.append(f"+{args.n}")
        await asyncio.sleep(0.01)
        log.append(f"-{args.n}")
        if args.n == 13:
            return ToolResult.failure("thirteen")
        return ToolResult(ok=True, text=f"{ctx.call_id} did {args.n}")

    return Tool(name="probe", category="test", args=Args, run=run, effects=frozenset({Effect.READ}))


def overlap(log: list[str]) -> int:
    running = most = 0
    for item in log:
        running += 1 if item[0] == "+" else -1
        most = max(most, running)
    return most


@pytest.mark.req("BAT-01")
@pytest.mark.req("BAT-03")
async def test_parallel_runs_five_at_once_and_keeps_the_order(tmp_path: Path) -> None:
    log: list[str] = []
    text, failed = await World(tmp_path, probe(log)).batch(*(("probe", {"n": n}) for n in range(8)))
    assert overlap(log) == 5
    assert not failed
    heads = [line for line in text.splitlines() if line.startswith("---")]
    assert heads == [f"--- {n} of 8: probe, ok ---" for n in range(1, 9)]
    assert [line for line in text.splitlines() if "did" in line] == [f"b.{n + 1} did {n}" for n in range(8)]


@pytest.mark.req("BAT-01")
@pytest.mark.req("BAT-03")
async def test_serial_goes_on_or_stops_after_a_failure_as_the_caller_says(tmp_path: Path) -> None:
    inner = [("probe", {"n": n}) for n in (1, 13, 2)]
    log: list[str] = []
    text, failed = await World(tmp_path, probe(log)).batch(*inner, mode="serial")
    assert log == ["+1", "-1", "+13", "-13", "+2", "-2"]
    assert failed
    assert "--- 3 of 3: probe, ok ---" in text
    log.clear()
    stopped = World(tmp_path, probe(log))
    text, failed = await stopped.batch(*inner, mode="serial", on_failure="stop")
    assert log == ["+1", "-1", "+13", "-13"]
    assert "--- 3 of 3: probe, failed ---\nError: not run: a call before it failed." in text
    assert stopped.dispatcher.last_failure is not None
    assert "2 of 3 calls failed, first probe: thirteen" in stopped.dispatcher.last_failure.message
    data = stopped.results[-1].data or {}
    assert [item["ok"] for item in data["results"]] == [True, False, False]


@pytest.mark.req("BAT-02")
async def test_each_inner_call_passes_every_gate(tmp_path: Path) -> None:
    asker = FakeAsker(decision="deny")
    found = World(tmp_path, level=ApprovalLevel.SEMI_AUTO, asker=asker)
    text, failed = await found.batch(
        ("write_file", {"file_path": "a.txt", "content": "x"}),
        ("write_file", {"file_path": "../out.txt", "content": "x"}),
        ("run_command", {"command": "rm -rf /"}),
        ("read_file", {"nonsense": 1}),
        ("nothing", {}),
        ("list_files", {}),
    )
    assert failed
    assert [request.tool for request in asker.requests] == [
        "write_file"
    ]  # the batch itself is not asked about
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - a test
    assert text.count(", failed ---") == 5
    assert "--- 6 of 6: list_files, ok ---" in text
    decided = [(e.tool, e.decision) for e in found.events.events if isinstance(e, GateDecided)]
    assert decided == [("write_file", "ask"), ("write_file", "deny"), ("run_command", "deny")]
    ends = [e.call_id for e in found.events.events if isinstance(e, ToolFinished)]
    assert ends == ["b.1", "b.2", "b.3", "b.4", "b.5", "b.6", "b"] or set(ends) == {
        *(f"b.{n}" for n in range(1, 7)),
        "b",
    }
    assert found.dispatcher.denied
    assert found.dispatcher.stats.tool_calls == 7


@pytest.mark.req("BAT-02")
async def test_no_nesting_the_allow_list_holds_and_the_number_is_capped(tmp_path: Path) -> None:
    found = World(tmp_path, allowed=("batch_tool", "list_files"))
    inner: dict[str, Any] = {"calls": [{"tool": "list_files", "arguments": {}}]}
    text, _ = await found.batch(("batch_tool", inner), ("read_file", {"file_path": "a"}), ("list_files", {}))
    assert "A batch cannot hold another batch." in text
    assert "The tool read_file is not available to this agent." in text
    assert "3 of 3: list_files, ok" in text
    many: list[tuple[str, dict[str, Any]]] = [("list_files", {}) for _ in range(MOST + 1)]
    text, failed = await found.batch(*many)
    assert failed
    assert "The tool did not run." in text
    text, failed = await found.batch()
    assert failed
    assert [message.call_id for _, message in found.dispatcher.inner] == []


@pytest.mark.req("REG-06")
async def test_plan_mode_keeps_it_shut(tmp_path: Path) -> None:
    found = World(tmp_path, mode=Mode.PLAN)
    text, failed = await found.batch(("list_files", {}))
    assert failed
    assert "plan mode" in text


async def test_headless_nobody_answers_for_an_inner_call(tmp_path: Path) -> None:
    found = World(tmp_path, level=ApprovalLevel.SEMI_AUTO, asker=FakeAsker(decision="no_answer"))
    await found.batch(("write_file", {"file_path": "a.txt", "content": "x"}))
    assert found.dispatcher.stats.unanswered == 1
    ((_, message),) = found.dispatcher.inner
    assert "nobody answered" in message.content
    assert found.results[-1].error is not None
    assert found.results[-1].error.kind is ErrorKind.TOOL


async def test_long_results_are_shortened_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 2_900)
    found = World(tmp_path)
    text, _ = await found.batch(*(("read_file", {"file_path": "long.txt"}) for _ in range(3)))
    assert text.count("[Output offloaded:") + text.count("characters") >= 1
    assert text.count("of 3: read_file, ok") == 3


def test_unfolding_survives_anything_a_model_writes() -> None:
    assert unfolded([ToolCall(id="a", name="search", arguments={"calls": []})])[0].name == "search"
    odd = ToolCall(
        id="b", name="batch_tool", arguments={"calls": [1, {"tool": 2}, {"tool": "x", "arguments": "y"}]}
    )
    assert [(one.id, one.name, one.arguments) for one in unfolded([odd])] == [
        ("b.1", "None", {}),
        ("b.2", "2", {}),
        ("b.3", "x", {}),
    ]
    assert unfolded([ToolCall(id="c", name="batch_tool", arguments={"calls": "no"})])[0].name == "batch_tool"
    renamed = ToolCall(id="d", name="batch_tool", arguments={"invocations": [{"tool": "search"}]})
    assert [one.name for one in unfolded([renamed])] == ["search"]


@pytest.mark.req("BAT-02")
async def test_a_repetition_inside_batches_is_noticed(tmp_path: Path) -> None:
    def batch(n: int) -> Any:
        again = {"tool": "read_file", "arguments": {"file_path": "a.txt"}}
        other = {"tool": "list_files", "arguments": {"max_results": n + 1}}
        return calls(call("batch_tool", f"b{n}", calls=[again, other]))

    bench = Bench(tmp_path, *(batch(n) for n in range(3)), says("Done."))
    (bench.root / "a.txt").write_text("x\n")
    assert (await bench.run()).status is AgentStatus.DONE
    assert "repeats an earlier call" in str(bench.model.requests[3].messages)
    assert "repeats an earlier call" not in str(bench.model.requests[2].messages)


async def test_what_a_batch_changes_is_in_the_report(tmp_path: Path) -> None:
    made = {"tool": "write_file", "arguments": {"file_path": "new.txt", "content": "x\n"}}
    bench = Bench(tmp_path, calls(call("batch_tool", "b", calls=[made])), done())
    report = await bench.run()
    assert report.files_changed == ("new.txt",)
    assert (bench.root / "new.txt").read_text() == "x\n"
