"""Dispatch: the order of the gates, one result for each call, failures as text (REG-09, LOOP-11, T-18, M06..M20)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from opendev.core.chat import ToolCall
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.interrupt import InterruptToken
from opendev.core.model import Frozen
from opendev.core.scope import Scope
from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
from opendev.policy.gate import Gate
from opendev.tools.catalog import BUILTIN
from opendev.tools.dispatch import Dispatcher
from opendev.tools.registry import ToolRegistry
from support.tool_context import EventLog, FakeAsker, make_context

Run = Callable[["Args", ToolContext], Awaitable[ToolResult]]


class Args(Frozen):
    x: str = ""
    n: int = 0
    key: str = ""


def tool(name: str, run: Run, *effects: Effect, keyed: bool = False) -> Tool[Args]:
    def resources(args: Args) -> tuple[str, ...]:
        return (args.key,) if keyed else ()

    return Tool(
        name=name, category="test", args=Args, run=run, effects=frozenset(effects), resources=resources
    )


@dataclass
class World:
    dispatcher: Dispatcher
    events: EventLog
    asker: Any
    root: Path

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events.events]


def world(root: Path, *tools: Tool[Any], level: ApprovalLevel = ApprovalLevel.AUTO, **other: Any) -> World:
    events, asker = EventLog(), other.pop("asker", FakeAsker())
    gate = Gate(
        level=level,
        mode=other.pop("mode", Mode.NORMAL),
        root=root,
        scope=Scope(),
        extra_roots=(),
        blocked_commands=(),
    )
    allowed = other.pop("allowed", None)
    context: dict[str, Any] = other
    dispatcher = Dispatcher(
        registry=ToolRegistry(tools or BUILTIN, allowed),
        gate=gate,
        make_context=lambda call_id: make_context(root, call_id=call_id, emit=events, **context),
        asker=asker,
        emit=events,
        clock=SystemClock(),
        agent="Coder",
    )
    return World(dispatcher, events, asker, root)


def call(name: str, id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments)


async def say(args: Args, _ctx: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text=args.x, summary="said")


@pytest.mark.req("LOOP-11")
async def test_results_come_in_call_order_and_a_failure_costs_nobody_else(tmp_path: Path) -> None:
    async def nap(args: Args, _ctx: ToolContext) -> ToolResult:
        await asyncio.sleep(args.n / 100)
        if args.x == "raise":
            raise ValueError("broken")
        return ToolResult(ok=True, text=f"slept {args.n}")

    found = world(tmp_path, tool("nap", nap, Effect.READ))
    results = await found.dispatcher.run(
        [call("nap", "a", n=6), call("nap", "b", n=1), call("nap", "c", x="raise"), call("nope", "d")]
    )
    assert [(r.call_id, r.is_error) for r in results] == [
        ("a", False),
        ("b", False),
        ("c", True),
        ("d", True),
    ]
    assert results[0].content == "slept 6"
    assert "ValueError: broken" in results[2].content
    assert found.dispatcher.stats.tool_calls == 4
    assert found.dispatcher.stats.failed == 2


@pytest.mark.req("LOOP-11")
@pytest.mark.req("C-30")
async def test_reads_run_together_writers_alone(tmp_path: Path) -> None:
    running: list[str] = []
    seen: dict[str, int] = {}

    def tracked(kind: str) -> Run:
        async def run(args: Args, _ctx: ToolContext) -> ToolResult:
            running.append(kind)
            seen[kind] = max(seen.get(kind, 0), len(running))
            await asyncio.sleep(0.02)
            running.remove(kind)
            return ToolResult(ok=True, text="x")

        return run

    found = world(
        tmp_path,
        tool("read", tracked("read"), Effect.READ),
        tool("write", tracked("write"), Effect.WRITE),
        tool("spawn", tracked("spawn"), Effect.SPAWN),
    )
    names = ["read"] * 8 + ["write"] * 3 + ["spawn"] * 7 + ["read"]
    results = await found.dispatcher.run([call(name, f"c{i}") for i, name in enumerate(names)])
    assert [r.call_id for r in results] == [f"c{i}" for i in range(len(names))]
    assert seen == {"read": 5, "write": 1, "spawn": 7}


async def test_calls_that_share_a_lock_key_never_overlap(tmp_path: Path) -> None:
    inside: list[str] = []

    async def run(args: Args, _ctx: ToolContext) -> ToolResult:
        assert args.key not in inside
        inside.append(args.key)
        await asyncio.sleep(0.01)
        inside.remove(args.key)
        return ToolResult(ok=True, text="x")

    found = world(tmp_path, tool("keyed", run, Effect.READ, keyed=True))
    results = await found.dispatcher.run([call("keyed", f"c{i}", key=f"k{i % 2}") for i in range(6)])
    assert not any(r.is_error for r in results)


@pytest.mark.req("REG-09")
async def test_a_call_with_unreadable_arguments_never_runs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("keep")
    found = world(tmp_path)
    broken = ToolCall(
        id="w", name="write_file", arguments={}, problem="Unterminated string at line 1 column 30"
    )
    wrong = call("read_file", "r", file_path="a.py", lines="all")
    results = await found.dispatcher.run([broken, wrong])
    assert [r.is_error for r in results] == [True, True]
    assert "line 1 column 30" in results[0].content
    assert "`lines`" in results[1].content
    assert (tmp_path / "a.py").read_text() == "keep"
    assert found.kinds() == ["tool_finished", "tool_finished"]


@pytest.mark.req("SUB-02")
async def test_the_allow_list_is_checked_at_execution(tmp_path: Path) -> None:
    found = world(tmp_path, allowed=("read_file",))
    (result,) = await found.dispatcher.run([call("write_file", file_path="a", content="x")])
    assert result.is_error
    assert "not available" in result.content
    assert not (tmp_path / "a").exists()
    assert found.dispatcher.denied


@pytest.mark.req("REG-06")
async def test_plan_mode_refuses_before_anything_else_is_asked(tmp_path: Path) -> None:
    found = world(tmp_path, level=ApprovalLevel.MANUAL, mode=Mode.PLAN)
    (result,) = await found.dispatcher.run([call("write_file", file_path="a", content="x")])
    assert "plan mode" in result.content
    assert found.asker.requests == []
    assert found.kinds() == ["gate_decided", "tool_finished"]


@pytest.mark.req("APR-01")
async def test_an_approved_call_runs_with_the_coerced_arguments(tmp_path: Path) -> None:
    found = world(tmp_path, tool("w", say, Effect.WRITE), level=ApprovalLevel.SEMI_AUTO)
    (result,) = await found.dispatcher.run([call("w", x="hi", n="3")])
    assert result.content == "hi"
    (request,) = found.asker.requests
    assert request.arguments == {"x": "hi", "n": 3, "key": ""}
    assert (request.agent, request.tool) == ("Coder", "w")
    assert "n: 3" in request.card
    assert found.kinds() == ["gate_decided", "tool_started", "tool_finished"]


@pytest.mark.req("APR-10")
@pytest.mark.parametrize(
    ("decision", "kind", "said"),
    [("deny", ErrorKind.DENIED, "the user denied"), ("no_answer", ErrorKind.UNANSWERED, "nobody answered")],
)
async def test_a_denial_and_silence_are_told_apart(
    tmp_path: Path, decision: str, kind: ErrorKind, said: str
) -> None:
    found = world(
        tmp_path, tool("w", say, Effect.WRITE), level=ApprovalLevel.MANUAL, asker=FakeAsker(decision=decision)
    )
    (result,) = await found.dispatcher.run([call("w", x="hi")])
    assert said in result.content
    assert ("denied" in result.content) == (decision == "deny")
    assert found.dispatcher.last_failure is not None
    assert found.dispatcher.last_failure.kind is kind
    assert found.dispatcher.denied == (decision == "deny")
    assert found.dispatcher.stats.unanswered == (decision == "no_answer")
    assert "tool_started" not in found.kinds()


class _Stale:
    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        return ApprovalAnswer(decision="once", digest="0" * 64)


class _Lost:
    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        raise ConnectionError("hub gone")


@pytest.mark.req("SAF-09")
@pytest.mark.parametrize(("asker", "said"), [(_Stale(), "other arguments"), (_Lost(), "hub gone")])
async def test_an_answer_that_does_not_fit_or_never_comes_is_a_no(
    tmp_path: Path, asker: Any, said: str
) -> None:
    found = world(tmp_path, tool("w", say, Effect.WRITE), level=ApprovalLevel.MANUAL, asker=asker)
    (result,) = await found.dispatcher.run([call("w", x="hi")])
    assert result.is_error
    assert said in result.content


class _Person:
    """Allows the first question, denies the second; notes how many are open at once."""

    def __init__(self) -> None:
        self.open = 0
        self.shown: list[str] = []

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.open += 1
        assert self.open == 1
        self.shown.append(request.arguments["x"])
        await asyncio.sleep(0.01)
        self.open -= 1
        return ApprovalAnswer(decision="once" if len(self.shown) == 1 else "deny", digest=request.digest)


async def test_questions_come_one_at_a_time_and_bind_to_their_call(tmp_path: Path) -> None:
    person = _Person()
    ran: list[str] = []

    async def run(args: Args, _ctx: ToolContext) -> ToolResult:
        ran.append(args.x)
        return ToolResult(ok=True, text="x")

    found = world(tmp_path, tool("r", run, Effect.READ), level=ApprovalLevel.MANUAL, asker=person)
    await found.dispatcher.run([call("r", "a", x="make build"), call("r", "b", x="pytest")])
    assert person.shown == ["make build", "pytest"]
    assert ran == ["make build"]


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_no_result_is_blank(tmp_path: Path, text: str) -> None:
    found = world(tmp_path, tool("r", say, Effect.READ))
    (result,) = await found.dispatcher.run([call("r", x=text)])
    assert (result.content, result.is_error) == ("(no output)", False)


@pytest.mark.req("TOR-05")
async def test_long_results_are_offloaded_and_secrets_are_in_neither_part(tmp_path: Path) -> None:
    secret = "gh" + "p_" + "A1b2" * 9
    long = f"head {secret}\n" + "line\n" * 3_000
    found = world(tmp_path, tool("r", say, Effect.READ))
    (result,) = await found.dispatcher.run([call("r", x=long)])
    assert "[Output offloaded: 3,001 lines" in result.content
    assert len(result.content) < 900
    path = next((tmp_path.parent / f"{tmp_path.name}-scratch/results").iterdir())
    assert str(path) in result.content
    assert secret not in result.content + path.read_text()
    assert path.read_text().endswith("line\nline\n")


async def test_a_scratch_folder_that_cannot_be_written_costs_the_middle_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    found = world(tmp_path, tool("r", say, Effect.READ), scratch=blocked / "scratch")
    (result,) = await found.dispatcher.run([call("r", x="a" * 9_000 + "z")])
    assert result.content.startswith("a")
    assert result.content.endswith("z")
    assert "could not be saved" in result.content


@pytest.mark.req("T-18")
async def test_cancelling_keeps_what_is_in(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def hang(args: Args, _ctx: ToolContext) -> ToolResult:
        started.set()
        await asyncio.sleep(60)
        return ToolResult(ok=True, text="never")

    found = world(tmp_path, tool("w", say, Effect.WRITE), tool("h", hang, Effect.WRITE))
    task = asyncio.create_task(
        found.dispatcher.run([call("w", "a", x="one"), call("h", "b"), call("w", "c")])
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(m.call_id, m.content) for m in found.dispatcher.finished] == [("a", "one")]
    assert found.kinds() == ["tool_started", "tool_finished", "tool_started", "tool_finished"]


async def test_a_tool_that_cancels_itself_is_a_failure_only(tmp_path: Path) -> None:
    async def odd(_args: Args, _ctx: ToolContext) -> ToolResult:
        raise asyncio.CancelledError

    found = world(
        tmp_path, tool("o", odd, Effect.WRITE), tool("r", odd, Effect.READ), tool("w", say, Effect.WRITE)
    )
    results = await found.dispatcher.run(
        [call("o", "a"), call("r", "b"), call("r", "c"), call("w", "d", x="on")]
    )
    assert [r.is_error for r in results] == [True, True, True, False]


async def test_an_interrupt_stops_the_calls_that_have_not_begun(tmp_path: Path) -> None:
    token = InterruptToken()

    async def stop(_args: Args, _ctx: ToolContext) -> ToolResult:
        token.set("user")
        return ToolResult(ok=True, text="stopped")

    found = world(tmp_path, tool("s", stop, Effect.WRITE), tool("w", say, Effect.WRITE), interrupt=token)
    results = await found.dispatcher.run([call("s", "a"), call("w", "b")])
    assert [r.is_error for r in results] == [False, True]
    assert "interrupted (user)" in results[1].content


async def test_errors_of_a_tool_keep_their_kind(tmp_path: Path) -> None:
    async def fails(args: Args, _ctx: ToolContext) -> ToolResult:
        errors: list[Exception] = [
            OpenDevError(ErrorKind.GIT, "no repo", "init it"),
            TimeoutError("slow"),
            FileNotFoundError("gone"),
            KeyError("k"),
        ]
        raise errors[args.n]

    found = world(tmp_path, tool("f", fails, Effect.WRITE))
    kinds: list[str] = []
    for number in range(4):
        (result,) = await found.dispatcher.run([call("f", n=number)])
        assert found.dispatcher.last_failure is not None
        kinds.append(found.dispatcher.last_failure.kind.value)
        assert result.summary.startswith("\u00d7 Error: ")
        assert len(result.summary) <= 200
    assert kinds == ["git", "timeout", "not_found", "internal"]
    await found.dispatcher.run([])
    assert found.dispatcher.last_failure is None


async def test_changed_files_add_up(tmp_path: Path) -> None:
    found = world(tmp_path)
    results = await found.dispatcher.run(
        [
            call("write_file", "a", file_path="a.py", content="1\n"),
            call("write_file", "b", file_path="b.py", content="2\n"),
        ]
    )
    assert [r.is_error for r in results] == [False, False]
    assert found.dispatcher.changed == {"a.py", "b.py"}


async def test_events_carry_no_secrets_and_no_floods(tmp_path: Path) -> None:
    secret = "AK" + "IA" + "ABCDEFGH12345678"
    found = world(tmp_path, tool("r", say, Effect.READ))
    await found.dispatcher.run([call("r", x=f"{secret} " + "y" * 100_000)])
    text = json.dumps([event.model_dump(mode="json") for event in found.events.events])
    assert secret not in text
    assert len(text) < 10_000
    assert all(event.agent == "agent1" and event.at for event in found.events.events)
