"""What a tool is handed (REG-05) and what of it a sub-agent gets (AGT-11, AGT-12): each service does what it is there for."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opendev.core.agent import AgentReport
from opendev.core.approval import ApprovalLevel, ApprovalRequest, Mode
from opendev.core.chat import Question
from opendev.core.events import Notice
from opendev.core.model import Frozen
from opendev.core.tool import Effect, Todo, Tool, ToolContext, ToolResult
from opendev.tools.catalog import BUILTIN
from opendev.tools.shell.process import ProcessShell
from support.agents import Bench
from support.scripted_model import Step, call, calls, says


class Probe:
    """A bench with the built-in tools and one more, ``probe``, that hands its context to ``look``."""

    def __init__(self, tmp_path: Path, *steps: Step, look: Any = None) -> None:
        self.contexts: list[ToolContext] = []

        async def run(_args: Frozen, ctx: ToolContext) -> ToolResult:
            self.contexts.append(ctx)
            said = await look(ctx) if look else "seen"
            return ToolResult(ok=True, text=str(said))

        tool = Tool(
            name="probe",
            category="misc",
            args=Frozen,
            run=run,
            effects=frozenset({Effect.READ}),
            description="Looks.",
        )
        self.bench = Bench(tmp_path, *steps, says("Done."), tools=(*BUILTIN, tool))

    async def run(self, **fields: Any) -> AgentReport:
        return await self.bench.run(**fields)

    def answer(self, number: int = 1) -> str:
        """What the model was told after its ``number``-th answer."""
        return str(self.bench.model.requests[number].messages[-1])


LOOK = calls(call("probe", "p1"))


@pytest.mark.req("REG-05")
async def test_mode_and_level_are_those_of_the_run(tmp_path: Path) -> None:
    probe = Probe(tmp_path, LOOK)
    probe.bench.people.decisions = ["once"]
    await probe.run(mode=Mode.PLAN, approve=ApprovalLevel.MANUAL)
    (ctx,) = probe.contexts
    assert (ctx.mode, ctx.approve) == (Mode.PLAN, ApprovalLevel.MANUAL)


@pytest.mark.req("REG-05")
async def test_an_approval_and_a_question_reach_a_person(tmp_path: Path) -> None:
    async def look(ctx: ToolContext) -> str:
        request = ApprovalRequest(
            id="1", agent_id="a", agent="", tool="probe", arguments={}, reason="", card="Go?"
        )
        answer = await ctx.ask.approve(request)
        return f"{answer.decision} {await ctx.ask.question((Question(text='Which?'),))}"

    probe = Probe(tmp_path, LOOK, look=look)
    probe.bench.people.decisions, probe.bench.people.answers = ["once"], ("this",)
    await probe.run()
    assert [request.card for request in probe.bench.people.asked] == ["Go?"]
    assert "once ('this',)" in probe.answer()


@pytest.mark.req("REG-05")
async def test_what_a_call_changed_is_known_for_undo_and_report(tmp_path: Path) -> None:
    probe = Probe(tmp_path, calls(call("write_file", "w", file_path="a.txt", content="x")))
    assert (await probe.run()).files_changed == ("a.txt",)


@pytest.mark.req("REG-05")
async def test_a_stop_is_seen_by_the_running_call(tmp_path: Path) -> None:
    async def look(ctx: ToolContext) -> str:
        probe.bench.token.set("stop")
        return str(ctx.interrupt.is_set)

    probe = Probe(tmp_path, LOOK, look=look)
    report = await probe.run()
    assert (report.status.value, probe.contexts[0].interrupt is probe.bench.token) == ("cancelled", True)


@pytest.mark.req("REG-05")
async def test_memo_and_scratch_last_from_call_to_call_and_the_transcript_keeps_both(tmp_path: Path) -> None:
    async def look(ctx: ToolContext) -> str:
        ctx.memo.todos.append(Todo(id=ctx.call_id, text="t", state="done"))  # type: ignore[arg-type]
        (ctx.scratch / ctx.call_id).write_text("kept")
        return str(sorted(path.name for path in ctx.scratch.iterdir()))

    probe = Probe(tmp_path, LOOK, calls(call("probe", "p2")), look=look)
    report = await probe.run()
    first, second = probe.contexts
    assert [todo.id for todo in second.memo.todos] == ["p1", "p2"]
    assert first.scratch == second.scratch
    assert probe.bench.root not in first.scratch.parents
    assert "['p1', 'p2']" in probe.answer(2)
    stored = await asyncio.to_thread(Path(report.transcript).read_text)
    assert stored.count('"call_id":"p') >= 2


@pytest.mark.req("REG-05")
async def test_events_reach_the_interface_while_the_call_runs(tmp_path: Path) -> None:
    async def look(ctx: ToolContext) -> str:
        ctx.emit(Notice(level="info", text="half-way"))
        return str(any(isinstance(event, Notice) for event in probe.bench.events))

    probe = Probe(tmp_path, LOOK, look=look)
    await probe.run()
    assert "True" in probe.answer()


@pytest.mark.req("REG-05")
async def test_a_file_that_changed_since_it_was_read_is_not_edited(tmp_path: Path) -> None:
    async def look(ctx: ToolContext) -> str:
        (ctx.root / "a.txt").write_text("somebody else's\n")
        return "changed"

    edit = call("edit_file", "e", file_path="a.txt", old_content="one", new_content="two")
    probe = Probe(tmp_path, calls(call("read_file", "r", file_path="a.txt")), LOOK, calls(edit), look=look)
    (probe.bench.root / "a.txt").write_text("one\n")
    await probe.run()
    assert "changed since" in probe.answer(3)
    assert (probe.bench.root / "a.txt").read_text() == "somebody else's\n"


@pytest.mark.req("REG-05")
@pytest.mark.req("AGT-11", "AGT-12")
async def test_a_sub_agent_gets_mode_and_approval_and_writes_only_its_own_session(tmp_path: Path) -> None:
    probe = Probe(tmp_path, LOOK)
    probe.bench.shell = ProcessShell(log_dir=tmp_path / "logs", marker={})
    main = await probe.run(id="m1")
    before = await asyncio.to_thread(Path(main.transcript).read_bytes)
    probe.bench.model.add(LOOK, says("Found."))
    child = probe.bench.task("Code-Explorer", id="s1", depth=1, parent="m1", mode=Mode.PLAN)
    spec = child.spec.model_copy(update={"tools": ("probe",), "model": "test/other"})
    child = child.model_copy(update={"spec": spec})
    report = await probe.bench.factory().agent_for(child).run(child, probe.bench.token)
    ctx = probe.contexts[1]
    assert (ctx.mode, ctx.ask, ctx.offers) == (Mode.PLAN, probe.bench.people, frozenset({"probe"}))
    assert ctx.memo is not probe.contexts[0].memo  # the main agent's todos are not its own
    assert probe.bench.model.requests[-1].model == "test/other"  # it carries its own configuration
    assert report.transcript != main.transcript
    assert await asyncio.to_thread(Path(main.transcript).read_bytes) == before
    told = [event for event in probe.bench.events if event.agent == "s1"]
    assert {"tool_started", "tool_finished", "agent_finished"} <= {event.kind for event in told} | {
        "agent_finished"
    }
    assert all(json.loads(event.to_json())["agent"] == "s1" for event in told)
