"""Detectors and guards: what the harness says between tools and the next call, and when it stops saying it (REM-03, 06..08)."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opendev.agents import completion
from opendev.agents.children import Children
from opendev.agents.react import STAGES
from opendev.agents.stages import action as action_module
from opendev.core.agent import AgentReport, AgentStatus
from opendev.core.approval import ApprovalLevel
from opendev.core.chat import MessageClass, ModelReply, ModelRequest, ToolMessage, UserMessage
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.events import Notice
from opendev.core.ports import CommandResult
from opendev.core.tool import ToolResult
from support.agents import Bench, ScriptedShell
from support.dialects import refusals
from support.scripted_model import call, calls, done, says
from support.tool_context import FakeSpawner

LIST = [calls(call("list_files", f"l{n}", path="." * (1 + n % 2))) for n in range(30)]
SPAWN = call("spawn_subagent", "s", agent="Code-Explorer", prompt="Look.", background=True)


def said(bench: Bench, text: str) -> int:
    """How often the last request holds a reminder with ``text``."""
    return sum(
        text in m.content
        for m in bench.model.requests[-1].messages
        if isinstance(m, UserMessage) and m.content.startswith("<system-reminder>")
    )


@pytest.mark.slow
@pytest.mark.req("REM-03")
@pytest.mark.req("REM-01")
async def test_five_answers_that_only_read_are_noticed_thrice_at_most(tmp_path: Path) -> None:
    names = [f"{'a' * (n + 1)}" for n in range(26)]
    reads = [calls(call("search", f"s{n}", pattern=name)) for n, name in enumerate(names)]
    bench = Bench(tmp_path, *reads[:4], says("Done."))
    await bench.run()
    assert said(bench, "answers only read") == 0
    bench = Bench(tmp_path, *reads[:5], says("Done."))
    await bench.run(id="a2")
    last = bench.model.requests[-1].messages[-1]
    assert isinstance(last, UserMessage)
    assert "Your last 5 answers only read." in last.content
    bench = Bench(tmp_path, *reads, says("Done."))
    assert (await bench.run(id="a3")).status is AgentStatus.DONE
    assert said(bench, "answers only read") == 3
    write = calls(call("write_file", "w", file_path="a.txt", content="x"))
    bench = Bench(tmp_path, *reads[:4], write, *reads[4:8], says("Done."))
    await bench.run(id="a4")
    assert said(bench, "answers only read") == 0


@pytest.mark.req("REM-03")
@pytest.mark.req("REM-06")
async def test_work_after_the_last_todo_is_told_once(tmp_path: Path) -> None:
    todo = calls(call("write_todos", todos=[{"title": "one"}]))
    finished = calls(call("complete_todo", todo_id="1"))
    bench = Bench(tmp_path, todo, finished, *LIST[:2], done())
    await bench.run()
    assert said(bench, "All todos are done") == 1
    assert "All todos are done" in str(bench.model.requests[2].messages[-1])


@pytest.mark.req("REM-03")
@pytest.mark.req("APR-10")
@pytest.mark.req("REM-07")
async def test_a_denied_call_that_is_retried_is_told_each_time_up_to_the_cap(tmp_path: Path) -> None:
    runs = [calls(call("run_command", f"c{n}", command=f"npm publish --tag t{n}")) for n in range(5)]
    bench = Bench(tmp_path, *runs, says("Denied."))
    bench.people.decisions = ["deny"] * 5
    report = await bench.run(approve=ApprovalLevel.MANUAL)
    assert said(bench, "was refused") == 3
    assert report.status is AgentStatus.FAILED
    assert bench.shell.commands == []


@pytest.mark.req("LOOP-12")
@pytest.mark.req("ERR-04")
async def test_the_same_failure_twice_forces_another_approach(tmp_path: Path) -> None:
    make = [calls(call("run_command", f"m{n}", command="make test")) for n in range(3)]
    edit = calls(call("write_file", "w", file_path="a.txt", content="x"))
    bench = Bench(tmp_path, make[0], edit, make[1], says("?"), done("no", "failure"))
    bench.shell = ScriptedShell(2, 2)
    await bench.run()
    first, second = bench.model.requests[1], bench.model.requests[3]
    assert "takes an approach" not in str(first.messages)
    reflection = str(second.messages[-1])
    assert "The same failure came 2 times from `run_command`" in reflection
    assert "take an approach that differs in kind" in reflection
    bench = Bench(
        tmp_path, make[0], edit, calls(call("run_command", "o", command="make other")), done("no", "failure")
    )
    bench.shell = ScriptedShell(2, 3)
    await bench.run(id="a2")
    assert said(bench, "The same failure") == 0


@pytest.mark.req("BLG-03", "LOOP-12")
async def test_two_equal_failures_force_a_reflection_and_the_identical_call_is_not_run_again(
    tmp_path: Path,
) -> None:
    make = [calls(call("run_command", f"m{n}", command="make test")) for n in range(3)]
    other = calls(call("run_command", "o", command="make test-one"))
    bench = Bench(tmp_path, *make, other, done("no", "failure"))
    bench.shell = ScriptedShell(2, 2, 0)
    await bench.run()
    reflection = str(bench.model.requests[2].messages[-1])
    for part in (
        "REFLECTION_REQUIRED",
        "the symptom",
        "the cause you suppose",
        "no repetition",
        "output of make test",
    ):
        assert part in reflection
    assert bench.shell.commands == ["make test", "make test", "make test-one"]
    assert "It was not run this time" in str(bench.model.requests[3].messages)


@pytest.mark.req("BLG-03")
@pytest.mark.parametrize(("names", "told"), [("abca", 1), ("abcda", 0)])
async def test_equal_failures_are_looked_for_among_the_latest_four(
    tmp_path: Path, names: str, told: int
) -> None:
    steps = [calls(call("run_command", f"m{n}", command=f"make {name}")) for n, name in enumerate(names)]
    bench = Bench(tmp_path, *steps, done("no", "failure"))
    bench.shell = ScriptedShell(*[2] * len(names))
    await bench.run()
    assert said(bench, "REFLECTION_REQUIRED") == told


@pytest.mark.req("BLG-01")
async def test_a_verifier_that_says_the_same_twice_forces_another_approach(tmp_path: Path) -> None:
    write = [calls(call("write_file", f"w{n}", file_path=f"{n}.txt", content="x")) for n in range(2)]
    bench = Bench(tmp_path, done(), write[0], done(), write[1], done())
    bench.shell = ScriptedShell(1, 1, 0)
    assert (await bench.run("Coder", verify="make check")).status is AgentStatus.DONE
    assert "The same failure" not in str(bench.model.requests[1].messages)
    assert "The same failure came 2 times from `make check`" in str(bench.model.requests[3].messages[-1])


@pytest.mark.req("LOOP-04")
async def test_every_tenth_iteration_the_open_todos_are_told(tmp_path: Path) -> None:
    todo = calls(call("write_todos", todos=[{"title": "one"}, {"title": "two"}]))
    steps = [calls(call("write_file", f"w{n}", file_path=f"{n}.txt", content="x")) for n in range(19)]
    bench = Bench(tmp_path, todo, *steps, done(), done(), done())
    await bench.run()
    assert said(bench, "Iteration 10. Todos that are open:") == 1
    assert said(bench, "Iteration 20. Todos that are open:") == 1


@pytest.mark.req("SUB-08")
@pytest.mark.req("REM-03")
async def test_reports_of_sub_agents_ask_for_a_synthesis(tmp_path: Path) -> None:
    pair = [call("spawn_subagent", f"s{n}", agent="Code-Explorer", prompt=f"Look {n}.") for n in range(2)]
    bench = Bench(tmp_path, calls(*pair), says("Both say x."))
    await bench.run()
    last = bench.model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    assert "2 sub-agent(s) reported." in last.content
    assert "merge the reports into one result" in last.content


def later(bench: Bench, polls: int, report: AgentReport | ErrorInfo) -> None:
    """The background agent ``sub1`` ends after so many looks."""

    class Spawner(FakeSpawner):
        looks = 0

        async def output(self, agent_id: str, wait_s: float) -> AgentReport | str | ErrorInfo:
            self.looks += 1
            return report if self.looks > polls else agent_id

    bench.spawner = Spawner(reply="sub1")


REPORT = AgentReport(
    id="sub1", agent="Code-Explorer", status=AgentStatus.DONE, text="It is in b.py.", tool_calls=3
)


@pytest.mark.req("LOOP-14")
@pytest.mark.req("SUB-09")
async def test_the_end_waits_for_a_background_sub_agent(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, calls(SPAWN), says("Done, I think."), says("It is in b.py, as the sub-agent says.")
    )
    later(bench, 3, REPORT)
    report = await bench.run()
    assert (report.status, report.turns) == (AgentStatus.DONE, 3)
    told = str(bench.model.requests[2].messages[-2:])
    assert "The background sub-agent sub1 ended." in told
    assert "It is in b.py." in told
    assert "sub-agent(s) reported" in told
    assert refusals(bench.model.requests) == []


async def test_a_report_that_is_in_joins_before_the_next_call_and_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(SPAWN), LIST[0], says("Done."))
    later(bench, 0, REPORT)
    await bench.run()
    assert "It is in b.py." in str(bench.model.requests[1].messages)
    assert said(bench, "The background sub-agent sub1 ended.") == 1


async def test_a_lost_background_sub_agent_is_told_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(SPAWN), says("Done."))
    later(bench, 0, ErrorInfo(kind=ErrorKind.NOT_FOUND, message="No sub-agent has the id sub1."))
    assert (await bench.run()).status is AgentStatus.DONE
    assert said(bench, "It has no report: No sub-agent has the id sub1.") == 1


@pytest.mark.req("REM-07")
async def test_children_that_never_end_are_waited_for_ten_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def short(self: Children, until: Callable[[], bool], wait_s: float = 0) -> tuple[object, ...]:
        return ()

    monkeypatch.setattr(Children, "wait", short)
    bench = Bench(tmp_path, calls(SPAWN), *[says(f"Done {n}.") for n in range(12)])
    bench.spawner = FakeSpawner(reply="sub1")
    report = await bench.run()
    assert (report.status, report.text) == (AgentStatus.DONE, "Done 10.")
    assert said(bench, "1 background sub-agent(s) still run: sub1.") == completion.MAX_CHILD_NUDGES == 10
    assert [e.text for e in bench.events if isinstance(e, Notice)] == [
        "The agent ends while 1 sub-agents of its own still run."
    ]


@pytest.mark.req("LOOP-19")
async def test_waiting_for_a_child_ends_when_a_message_or_an_interrupt_comes(tmp_path: Path) -> None:
    second, third = asyncio.Event(), asyncio.Event()

    def told(event: asyncio.Event, text: str) -> Callable[[ModelRequest], ModelReply]:
        def reply(_request: ModelRequest) -> ModelReply:
            event.set()
            return says(text)

        return reply

    bench = Bench(tmp_path, calls(SPAWN), told(second, "Done."), told(third, "B then."))
    bench.spawner = FakeSpawner(reply="sub1")
    running = asyncio.create_task(bench.run())
    await second.wait()
    assert bench.agent is not None
    assert bench.agent.inject("do B")
    await third.wait()
    assert bench.model.requests[2].messages[-1] == UserMessage(content="do B")
    bench.token.set("Esc")
    assert (await running).status is AgentStatus.CANCELLED


async def test_children_are_learnt_from_results_and_told_once() -> None:
    spawner = FakeSpawner()
    children = Children(spawner)
    children.note(ToolResult(ok=True, text="", data={"todos": []}))
    for id in ("a", "b"):
        children.note(ToolResult(ok=True, text="", data={"agent_id": id, "status": "running"}))
    children.note(ToolResult(ok=True, text="", data={"agent_id": "a", "status": "done"}))
    assert (children.running, children.take_returned(), children.take_returned()) == (("b",), 1, 0)
    assert await children.ended() == ()
    spawner.outputs["b"] = REPORT
    assert await children.ended() == (("b", REPORT),)
    assert (children.running, await children.ended()) == ((), ())
    assert await children.wait(lambda: False, wait_s=0.2) == ()


@pytest.mark.req("C-26")
@pytest.mark.req("REM-08")
@pytest.mark.req("LOOP-02")
@pytest.mark.req("LOOP-03")
async def test_the_nine_steps_come_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction check, interrupt check, thinking, sub-agents, drain, interrupt check, action, dispatch, persistence."""
    from opendev.agents.iteration import IterationContext
    from opendev.agents.stages import thinking as thinking_module
    from opendev.agents.transcript import Transcript
    from opendev.context.compaction import Compaction
    from opendev.tools.dispatch import Dispatcher

    order: list[str] = []

    def spy(owner: object, name: str, label: str) -> None:
        inner = getattr(owner, name)

        def wrapped(*args: object, **options: object) -> object:
            order.append(label)
            return inner(*args, **options)

        monkeypatch.setattr(owner, name, wrapped)

    spy(Compaction, "check", "compaction")
    spy(IterationContext, "interrupted", "interrupt")
    spy(IterationContext, "drain", "drain")
    spy(action_module, "subagents_ended", "sub-agents")
    spy(action_module, "ask_model", "action")
    spy(Dispatcher, "run", "dispatch")
    bench = Bench(tmp_path, LIST[0], says("Done."))
    await bench.run()
    assert [stage.__name__ for stage in STAGES] == [
        *("precheck", "thinking", "critique", "action", "execution", "post"),
    ]
    first = order[: order.index("compaction", order.index("compaction") + 1)]
    assert [step for step in first if step != "interrupt"][:6] == [
        *("drain", "compaction", "sub-agents", "drain", "action", "dispatch"),
    ]
    between = first[first.index("compaction") : first.index("sub-agents")]
    assert between.count("interrupt") == 3
    assert thinking_module.thinking in STAGES
    assert Transcript.flush is not None


@pytest.mark.req("REM-09")
async def test_the_loop_works_without_any_reminder_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_path: Path) -> dict[str, str]:
        return {}

    monkeypatch.setattr("opendev.context.reminders._sections", nothing)
    todo = calls(call("write_todos", todos=[{"title": "one"}]))
    bench = Bench(tmp_path, todo, says(""), says("done"), says("really done"))
    report = await bench.run()
    assert report.status is AgentStatus.DONE
    assert refusals(bench.model.requests) == []
    assert "Note (incomplete todos)" in str(bench.model.requests[-1].messages)


@pytest.mark.req("REM-02")
async def test_reminders_are_tagged_in_the_transcript_and_stand_before_the_next_call(tmp_path: Path) -> None:
    read = calls(call("read_file", "r", file_path="missing.txt"))
    bench = Bench(tmp_path, read, says("?"), says("Failure accepted: fine."))
    await bench.run("Code-Explorer")
    asked = bench.model.requests[2].messages
    assert isinstance(asked[-1], UserMessage)
    assert asked[-1].msg_class is MessageClass.DIRECTIVE
    assert "missing.txt" in asked[-1].content


@pytest.mark.req("ERR-01")
@pytest.mark.req("ERR-02")
@pytest.mark.req("ERR-05")
async def test_a_user_overrides_texts_and_adds_a_class_by_a_template_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    everywhere = bench.home / "reminders"
    here = bench.home / "projects" / str(bench.root.resolve()).replace("/", "-") / "reminders"
    for folder, text in (
        (
            everywhere,
            "--- file_not_found ---\nEVERYWHERE {tool}\n--- disk_full ---\npattern: no space left\nFree space: {message}\n",
        ),
        (here, "--- file_not_found ---\nHERE: {tool}; {message}; {{not a value}}; {unknown}\n"),
    ):
        folder.mkdir(parents=True)
        (folder / "mine.md").write_text(text)
    read = calls(call("read_file", "r", file_path="missing.txt"))
    run = calls(call("run_command", "c", command="dd"))
    bench.shell = FullDisk()
    bench.model.add(read, says("?"), run, says("?"), says("Failure accepted: yes."))
    await bench.run("Coder")
    assert "HERE: read_file; " in str(bench.model.requests[2].messages[-1])
    assert "missing.txt" in str(bench.model.requests[2].messages[-1])
    assert "Free space: " in str(bench.model.requests[4].messages[-1])
    assert "pattern:" not in str(bench.model.requests[4].messages[-1])


class FullDisk(ScriptedShell):
    async def run(self, *args: Any, **options: Any) -> CommandResult:
        found = await super().run(*args, **options)
        return found.model_copy(update={"exit_code": 1, "text": "dd: No space left on device"})


@pytest.mark.req("ERR-06")
@pytest.mark.req("T-18")
async def test_every_failure_of_a_tool_is_readable_and_paired(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.root / "a.txt").write_text("x\nx\nx\n")
    edit = call("edit_file", "e", file_path="a.txt", old_content="x", new_content="y")
    bench.model.add(
        calls(call("read_file", "r0", file_path="a.txt")),
        calls(
            call("read_file", "r", file_path="missing.txt"),
            edit,
            call("nonsense", "n"),
            call("run_command", "c", command="make"),
        ),
        done("no", "failure"),
    )
    bench.shell = ScriptedShell(2)
    await bench.run()
    results = [m for m in bench.model.requests[2].messages if isinstance(m, ToolMessage)][1:]
    assert [r.call_id for r in results] == ["r", "e", "n", "c"]
    assert all(r.is_error for r in results)
    for result, word in zip(results, ("missing.txt", "3", "nonsense", "2"), strict=True):
        assert word in result.content


@pytest.mark.req("LOOP-16")
@pytest.mark.req("LOOP-24")
async def test_the_report_has_summary_error_and_latency_and_each_request_is_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LIST[0], done("All listed."))
    report = await bench.run()
    assert (report.text, report.error, report.turns, report.tool_calls, report.model_calls) == (
        "All listed.",
        None,
        2,
        2,
        2,
    )
    assert report.wall_s > 0
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    assert "All listed." in raw
    first, second = bench.model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert "Do it." in str(second.messages)


@pytest.mark.req("LOOP-01")
@pytest.mark.req("C-15")
async def test_messages_before_the_run_join_the_conversation(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("A and B."))
    task = bench.task()
    agent = bench.factory().agent_for(task)
    assert agent.inject("B too")
    await agent.run(task, bench.token)
    assert [m.content for m in bench.model.requests[0].messages if isinstance(m, UserMessage)] == [
        "Do it.",
        "B too",
    ]


@pytest.mark.req("LOOP-08")
async def test_the_action_request_is_prompt_history_and_active_tools(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LIST[0], says("Done."))
    await bench.run()
    request: ModelRequest = bench.model.requests[1]
    assert [m.role for m in request.messages] == ["system", "user", "assistant", "tool"]
    assert bench.agent is not None
    assert request.tools == bench.agent.tool_schemas
    assert isinstance(LIST[0], ModelReply)
