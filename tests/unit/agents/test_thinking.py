"""Thinking before acting: levels, roles, no tools, bounded, and never in the way of the step (LOOP-05..07)."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.chat import (
    MessageClass,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    ThinkingLevel,
    UserMessage,
)
from opendev.core.errors import ErrorKind
from opendev.core.events import Notice
from opendev.core.ticket import Delete
from support.agents import Bench
from support.scripted_model import Step, call, calls, done, failed, says


class ByRole:
    """A model that answers each role from its own list; the last answer stays."""

    def __init__(self, **steps: list[Step]) -> None:
        self.requests: list[ModelRequest] = []
        self._steps = steps

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        self.requests.append(request)
        await asyncio.sleep(0)
        steps = self._steps.get(request.role.value) or [failed(f"no {request.role.value} model")]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        return step(request) if callable(step) else step

    def roles(self) -> list[str]:
        """The roles in order of the calls; the memory's own are left out."""
        return [r.role.value for r in self.requests if r.role is not Role.COMPACT]


def bench_at(tmp_path: Path, level: ThinkingLevel, **steps: list[Step]) -> tuple[Bench, ByRole]:
    bench = Bench(tmp_path)
    bench.settings = bench.settings.model_copy(
        update={
            "thinking": level,
            "models": {Role.ACTION: "a/act", Role.THINKING: "t/think", Role.CRITIQUE: "c/judge"},
        }
    )
    model = ByRole(**steps)
    bench.client = model
    return bench, model


def trace_in(request: ModelRequest) -> list[str]:
    return [
        m.content
        for m in request.messages
        if isinstance(m, UserMessage) and "Your thoughts about this step" in m.content
    ]


@pytest.mark.req("LOOP-05")
@pytest.mark.req("LOOP-07")
@pytest.mark.parametrize("level", [ThinkingLevel.LOW, ThinkingLevel.MEDIUM])
async def test_a_thought_is_a_call_of_its_own_without_tools(tmp_path: Path, level: ThinkingLevel) -> None:
    bench, model = bench_at(tmp_path, level, thinking=[says("List first.")], action=[says("Done.")])
    report = await bench.run()
    thought, action = model.requests
    assert model.roles() == ["thinking", "action"]
    assert (thought.tools, thought.model, thought.stream) == ((), "t/think", False)
    assert '"tools"' not in thought.model_dump_json(exclude_defaults=True)
    assert action.tools
    assert "Do it." in str(thought.messages[-1])
    assert trace_in(action) == [
        "<system-reminder>\nYour thoughts about this step. They are notes, not results: check what they assume.\nList first."
        "\n</system-reminder>"
    ]
    last = action.messages[-1]
    assert isinstance(last, UserMessage)
    assert last.msg_class is MessageClass.INTERNAL
    assert (report.status, report.model_calls) == (AgentStatus.DONE, 2)


@pytest.mark.req("LOOP-06")
async def test_only_high_criticises_and_writes_again(tmp_path: Path) -> None:
    bench, model = bench_at(
        tmp_path,
        ThinkingLevel.HIGH,
        thinking=[says("Draft one."), says("Draft two.")],
        critique=[says("You did not look at the tests.")],
        action=[done()],
    )
    await bench.run("Main", "Mend it.")
    assert model.roles() == ["thinking", "critique", "thinking", "action"]
    _, judge, refine, action = model.requests
    assert (judge.model, judge.tools, refine.tools) == ("c/judge", (), ())
    assert "Draft one." in str(judge.messages)
    assert "You did not look at the tests." in str(refine.messages)
    assert [trace.count("Draft two.") for trace in trace_in(action)] == [1]
    assert "Draft one." not in str(action.messages)


@pytest.mark.req("LOOP-06")
async def test_off_makes_no_call_and_recipes_and_sub_agents_never_think(tmp_path: Path) -> None:
    cases: tuple[tuple[ThinkingLevel, dict[str, Any]], ...] = (
        (ThinkingLevel.OFF, {}),
        (ThinkingLevel.HIGH, {"depth": 1}),
        (ThinkingLevel.HIGH, {"recipe": (Delete(path="a"),), "models": {Role.ACTION: "a/act"}}),
    )
    for level, fields in cases:
        bench, model = bench_at(tmp_path, level, action=[says("Done.")])
        await bench.run("Coder", id=f"a{len(fields)}{level.value}", **fields)
        assert set(model.roles()) == {"action"}


@pytest.mark.req("LOOP-05")
async def test_a_failed_thinking_model_costs_the_thought_and_not_the_step(tmp_path: Path) -> None:
    listing = calls(call("list_files", path="."))
    bench, model = bench_at(
        tmp_path,
        ThinkingLevel.HIGH,
        thinking=[failed("down", ErrorKind.MODEL)],
        action=[listing, says("Done.")],
    )
    report = await bench.run()
    assert report.status is AgentStatus.DONE
    assert model.roles() == ["thinking", "action", "thinking", "action"]
    notices = [event.text for event in bench.events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "The thinking model failed: down" in notices[0]


async def test_a_failed_critique_keeps_the_first_draft(tmp_path: Path) -> None:
    bench, model = bench_at(
        tmp_path, ThinkingLevel.HIGH, thinking=[says("Draft one.")], action=[says("Done.")]
    )
    await bench.run()
    assert model.roles() == ["thinking", "critique", "action"]
    assert "Draft one." in trace_in(model.requests[-1])[0]


async def test_an_obvious_step_is_taken_directly(tmp_path: Path) -> None:
    bench, model = bench_at(tmp_path, ThinkingLevel.HIGH, thinking=[says("DIRECT.")], action=[says("Done.")])
    await bench.run()
    assert model.roles() == ["thinking", "action"]
    assert trace_in(model.requests[-1]) == []
    assert "without further deliberation" in str(model.requests[-1].messages[-1])


@pytest.mark.req("MEM-05")
async def test_the_budget_of_thought_is_bounded(tmp_path: Path) -> None:
    wide = [calls(call("read_file", f"r{n}", file_path=f"f{n}.txt"), text="x" * 3_000) for n in range(40)]
    bench, model = bench_at(
        tmp_path, ThinkingLevel.LOW, thinking=[says("t" * 90_000)], action=[*wide, says("Done.")]
    )
    for n in range(40):
        (bench.root / f"f{n}.txt").write_text("word " * 3_000)
    await bench.run()
    thoughts = [r for r in model.requests if r.role is Role.THINKING]
    sizes = [sum(len(m.content) for m in r.messages if isinstance(m, UserMessage)) for r in thoughts]
    assert len(sizes) == 41
    assert max(sizes[10:]) < 1.3 * min(sizes[10:])
    assert max(sizes) < 40_000
    assert all((r.max_tokens or 0) <= 1_200 for r in thoughts)
    assert max(len(trace) for trace in trace_in(model.requests[-1])) < 2_500
    system = thoughts[0].messages[0]
    assert isinstance(system, SystemMessage)
    assert "read_file" not in system.stable


@pytest.mark.req("LOOP-17")
@pytest.mark.parametrize("role", ["thinking", "critique"])
async def test_an_interrupt_while_thinking_ends_before_the_action(tmp_path: Path, role: str) -> None:
    bench, model = bench_at(tmp_path, ThinkingLevel.HIGH)

    def stop(_request: ModelRequest) -> ModelReply:
        bench.token.set("Esc")
        return says("late")

    steps: dict[str, list[Step]] = {
        "thinking": [says("draft")],
        "critique": [says("fine")],
        "action": [says("x")],
    }
    model = bench.client = ByRole(**{**steps, role: list[Step]([stop])})
    report = await bench.run()
    assert report.status is AgentStatus.CANCELLED
    assert "action" not in model.roles()
