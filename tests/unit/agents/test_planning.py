"""Plan mode: routing, the Planner's file, the decision, and what it changes for the run (LOOP-22, LOOP-23, SUB-12, SUB-13, C-08)."""

import asyncio
from pathlib import Path

import pytest
from opendev.context.detectors import wants_plan
from opendev.core.agent import AgentStatus
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from opendev.core.chat import ModelReply, ModelRequest, SystemMessage, UserMessage
from opendev.core.clock import SystemClock
from opendev.core.ticket import Delete
from opendev.store.plans import PlanShelf
from support.agents import Bench, People
from support.scripted_model import call, calls, done, failed, says

PLAN = """BEGIN PLAN
## Goal
Make a.txt and b.txt, so that the tests find both of them where they look.
## Context
none
## Files to modify
none
## New files
- a.txt
- b.txt
## Implementation steps
1. Write a.txt.
2. Write b.txt.
## Verification criteria
- test -f a.txt
## Risks
none
END PLAN
"""


def write(name: str) -> ModelReply:
    return calls(call("write_file", f"w-{name}", file_path=name, content="x"))


def bench_with_plan(tmp_path: Path) -> tuple[Bench, Path]:
    bench = Bench(tmp_path)
    path = bench.home / "plans" / "calm-making-river.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLAN)
    return bench, path


def present(path: Path, id: str = "p") -> ModelReply:
    return calls(call("present_plan", id, plan_file_path=str(path)))


TICK = [calls(call("complete_todo", f"t{n}", todo_id=str(n))) for n in (1, 2)]


def last(request: ModelRequest) -> str:
    return request.messages[-1].content if not isinstance(request.messages[-1], SystemMessage) else ""


@pytest.mark.req("LOOP-22")
@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("/plan a cache", True),
        ("Design a cache layer for the client", True),
        ("Please plan the migration to v2", True),
        ("Improve the architecture of the store", True),
        ("I need a plan for splitting the module", True),
        ("Write a detailed plan first, then do it", True),
        ("Fix the floor plan parser", False),
        ("What is the architecture of this project?", False),
        ("Explain the design of the store", False),
        ("The airplane test is red; mend it", False),
        ("Rename planet to world", False),
        ("/planets", False),
        ("", False),
    ],
)
def test_what_counts_as_a_wish_for_a_plan(prompt: str, expected: bool) -> None:
    assert wants_plan(prompt) is expected


@pytest.mark.req("LOOP-22")
async def test_planning_is_decided_once_per_prompt_and_only_for_the_main_agent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("list_files", path=".")), says("ok"))
    await bench.run(prompt="/plan a cache")
    asked = [m.content for m in bench.model.requests[-1].messages if isinstance(m, UserMessage)]
    assert asked[0] == "a cache"
    assert sum("asks for a plan first" in text for text in asked) == 1
    for agent, prompt, fields in (
        ("Coder", "Design a cache", {}),
        ("Main", "Design a cache", {"depth": 1}),
        ("Main", "Mend the cache", {}),
        ("Main", "Design a cache", {"recipe": (Delete(path="a"),), "models": {"action": "test/model"}}),
    ):
        bench = Bench(tmp_path, says("ok"))
        await bench.run(agent, prompt, id=f"{agent}{len(fields)}{prompt[:3]}", **fields)
        assert "asks for a plan first" not in str(bench.model.requests[0].messages)


@pytest.mark.req("LOOP-23")
@pytest.mark.req("C-08")
async def test_plan_mode_begins_with_the_planner_and_the_approval_ends_it(tmp_path: Path) -> None:
    bench, path = bench_with_plan(tmp_path)
    spawn = calls(call("spawn_subagent", "s", agent="Planner", prompt="Plan it."))
    bench.model.add(
        write("early.txt"), spawn, present(path), write("a.txt"), TICK[0], write("b.txt"), TICK[1]
    )
    bench.model.add(done("Both made."))
    bench.people.decisions = ["session"]
    report = await bench.run(mode=Mode.PLAN, approve=ApprovalLevel.SEMI_AUTO)
    assert (report.status, report.text) == (AgentStatus.DONE, "Both made.")
    assert sorted(p.name for p in bench.root.iterdir()) == ["a.txt", "b.txt"]
    assert "Spawn a `Planner` sub-agent" in last(bench.model.requests[0])
    assert [(r.agent, r.mode) for r in bench.spawner.requests] == [("Planner", Mode.PLAN)]
    assert [request.tool for request in bench.people.asked] == ["present_plan"]
    told = last(bench.model.requests[3])
    assert f"The plan {path} is approved; its edits are approved too" in told
    assert "- [todo] 1: Write a.txt." in told
    names = {tool.name for tool in bench.model.requests[0].tools}
    assert not {name for name in names if "plan_mode" in name}


@pytest.mark.req("BLG-06", "CMP-13")
async def test_the_approved_plan_and_its_steps_survive_a_compaction(tmp_path: Path) -> None:
    bench, path = bench_with_plan(tmp_path)
    looks = [calls(call("list_files", f"l{n}", path=".", max_results=n + 1)) for n in range(8)]

    def compact(_request: ModelRequest) -> ModelReply:
        assert bench.agent is not None
        assert bench.agent.inject("/compact")
        return looks[-1]

    bench.model.add(present(path), write("a.txt"), TICK[0], *looks[:-1], compact, done("no", "failure"))
    bench.people.decisions = ["session"]
    await bench.run()
    before, after = (str(request.messages[1:]) for request in bench.model.requests[-2:])
    assert "Carry them out in this order" in before
    assert "Carry them out in this order" not in after  # the messages that spoke of the plan are gone
    assert f"## Approved plan\\n{path}" in after
    assert "[done] 1: Write a.txt." in after
    assert "[todo] 2: Write b.txt." in after


@pytest.mark.req("APR-09")
@pytest.mark.req("TSK-06")
async def test_a_plain_approval_still_reviews_each_edit_and_commands_are_never_raised(tmp_path: Path) -> None:
    bench, path = bench_with_plan(tmp_path)
    bench.model.add(present(path), write("a.txt"), done("no", "failure"))
    bench.people.decisions = ["once", "deny"]
    await bench.run(approve=ApprovalLevel.SEMI_AUTO)
    assert [request.tool for request in bench.people.asked] == ["present_plan", "write_file"]
    bench, path = bench_with_plan(tmp_path)
    publish = calls(call("run_command", "c", command="npm publish"))
    bench.model.add(
        present(path), write("a.txt"), publish, TICK[0], TICK[1], write("c.txt"), done("no", "failure")
    )
    bench.people.decisions = ["session", "deny", "deny"]
    await bench.run(id="a2", approve=ApprovalLevel.SEMI_AUTO)
    # the edit passed, the command was asked, and after the last step edits are asked about again
    assert [request.tool for request in bench.people.asked] == ["present_plan", "run_command", "write_file"]


@pytest.mark.req("LOOP-23")
async def test_wanted_changes_go_back_to_the_planner(tmp_path: Path) -> None:
    class Reviewer(People):
        async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
            self.asked.append(request)
            decision = "deny" if len(self.asked) == 1 else "session"
            return ApprovalAnswer.model_validate(
                {"decision": decision, "digest": request.digest, "note": "Keep a.txt."}
            )

    bench, path = bench_with_plan(tmp_path)
    bench.people = Reviewer()
    again = calls(call("spawn_subagent", "s", agent="Planner", prompt="Keep a.txt.", resume="sub1"))
    bench.model.add(present(path), again, present(path, "p2"), TICK[0], TICK[1], done("Done."))
    report = await bench.run(mode=Mode.PLAN)
    assert report.status is AgentStatus.DONE
    assert "The user wants changes: Keep a.txt." in str(bench.model.requests[1].messages)
    assert len(bench.people.asked) == 2


@pytest.mark.req("C-08")
@pytest.mark.parametrize("level", [ApprovalLevel.SEMI_AUTO, ApprovalLevel.AUTO])
async def test_nobody_to_decide_ends_unanswered_and_nothing_is_written(
    tmp_path: Path, level: ApprovalLevel
) -> None:
    bench, path = bench_with_plan(tmp_path)
    bench.model.add(present(path), write("a.txt"), says(f"The plan is in {path}."))
    report = await bench.run(mode=Mode.PLAN, approve=level)
    assert report.status is AgentStatus.UNANSWERED
    assert report.error is not None
    assert list(bench.root.iterdir()) == []


async def test_the_end_is_refused_while_steps_of_the_plan_are_open(tmp_path: Path) -> None:
    bench, path = bench_with_plan(tmp_path)
    bench.model.add(present(path), says("Done."), says("Done."), says("Done."))
    await bench.run(approve=ApprovalLevel.AUTO)
    assert sum("2 todo(s) are open" in str(m) for m in bench.model.requests[-1].messages) == 2


@pytest.mark.req("SUB-12")
@pytest.mark.req("SUB-13")
@pytest.mark.parametrize("mode", [Mode.NORMAL, Mode.PLAN])
async def test_the_planner_writes_its_plan_file_and_nothing_else(tmp_path: Path, mode: Mode) -> None:
    bench = Bench(tmp_path)
    other = bench.home / "plans" / "of-somebody-else.md"

    def plan_of(request: ModelRequest) -> Path:
        system = request.messages[0]
        assert isinstance(system, SystemMessage)
        line = next(line for line in system.dynamic.splitlines() if "Plan file" in line)
        assert "Plan file" not in system.stable
        return Path(line.rsplit(": ", 1)[1])

    def three_writes(request: ModelRequest) -> ModelReply:
        names = (str(plan_of(request)), "src.py", str(other))
        return calls(
            *(call("write_file", f"w{n}", file_path=path, content=PLAN) for n, path in enumerate(names))
        )

    def end(request: ModelRequest) -> ModelReply:
        return done(f"plan_file_path: {plan_of(request)}")

    bench.model.add(three_writes, end, end)
    report = await bench.run("Planner", mode=mode, approve=ApprovalLevel.SEMI_AUTO, depth=1)
    assert report.status is AgentStatus.DONE
    path = Path(report.text.removeprefix("plan_file_path: "))
    assert await asyncio.to_thread(path.read_text) == PLAN
    assert path.parent == bench.home / "plans"
    assert not other.exists()
    assert list(bench.root.iterdir()) == []
    assert bench.people.asked == []
    system = bench.model.requests[0].messages[0]
    assert isinstance(system, SystemMessage)
    parts = (
        "Goal",
        "Context",
        "Files to modify",
        "New files",
        "Implementation steps",
        "Verification criteria",
        "Risks",
    )
    assert all(f"## {part}" in system.stable for part in parts)
    assert "plan_file_path" in system.stable
    again = Bench(tmp_path, failed("stop"))
    await again.run("Planner", mode=mode, depth=1)
    assert plan_of(again.model.requests[0]) == path


@pytest.mark.req("REM-10")
async def test_a_resumed_session_is_pointed_to_its_plan(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("first"), says("second"))
    bench.root.resolve()
    path = PlanShelf(bench.home, SystemClock()).reserve(agent="p", session="r1", project=bench.root.resolve())
    path.write_text(PLAN)
    await bench.run(prompt="one")
    assert str(path) not in str(bench.model.requests[0].messages)
    history = tuple(bench.model.requests[0].messages[1:])
    await bench.run(prompt="two", history=history)
    assert f"An earlier plan of this project is in {path}" in last(bench.model.requests[1])
