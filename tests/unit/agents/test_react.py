"""The loop: every branch of Algorithm 1 by a scripted model, with the real tools on a real folder (LOOP-21)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opendev.agents import react as react_module
from opendev.agents.iteration import IterationContext
from opendev.core.agent import AgentStatus, Budget
from opendev.core.approval import ApprovalLevel
from opendev.core.chat import (
    FinishReason,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    UserMessage,
)
from opendev.core.errors import ErrorKind
from opendev.core.events import AssistantText, Verified
from opendev.core.ports import CommandResult
from opendev.core.ticket import Delete
from opendev.tools.shell.process import ProcessShell
from support.agents import Bench, ScriptedShell
from support.scripted_model import call, calls, done, failed, pairs_are_whole, says


def texts(request: ModelRequest) -> str:
    return "\n".join(m.content for m in request.messages if not isinstance(m, SystemMessage))


READ = call("read_file", "r", file_path="missing.txt")


@pytest.mark.req("LOOP-13")
@pytest.mark.req("T-14")
async def test_text_without_calls_is_the_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("All is well."))
    report = await bench.run("Code-Explorer")
    assert (report.status, report.text, report.turns, report.model_calls) == (
        AgentStatus.DONE,
        "All is well.",
        1,
        1,
    )
    assert report.usage.input == 100
    assert report.error is None


@pytest.mark.req("LOOP-13")
async def test_task_complete_ends_with_what_was_really_changed(tmp_path: Path) -> None:
    write = call("write_file", "w", file_path="a.txt", content="hi\n")
    bench = Bench(tmp_path, calls(write, text="I write."), done("Wrote a.txt."))
    report = await bench.run("Coder")
    assert report.status is AgentStatus.DONE
    assert report.text == "Wrote a.txt."
    assert report.files_changed == ("a.txt",)
    assert (report.turns, report.tool_calls, report.model_calls) == (2, 2, 2)
    assert (bench.root / "a.txt").read_text() == "hi\n"
    assert bench.kinds()[0] == "assistant_text"
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    lines = [json.loads(line)["role"] for line in raw.splitlines()]
    assert lines == ["system", "user", "assistant", "tool", "assistant", "tool"]


async def test_a_reported_failure_is_a_failure(tmp_path: Path) -> None:
    report = await Bench(tmp_path, done("It cannot be done.", "failure")).run()
    assert report.status is AgentStatus.FAILED
    assert report.text == "It cannot be done."
    assert report.error is not None


@pytest.mark.req("LOOP-20")
@pytest.mark.req("ERR-04")
async def test_a_failed_tool_gets_three_reminders_then_the_honest_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(READ), *[says(f"try {n}") for n in range(4)])
    report = await bench.run("Code-Explorer")
    assert report.status is AgentStatus.FAILED
    assert report.text == "try 3"
    assert report.turns == 5
    assert report.error is not None
    assert "missing.txt" in report.error.message
    reminders = [m for m in bench.model.requests[-1].messages[1:] if "did not find its target" in str(m)]
    assert len(reminders) == 3
    assert all(isinstance(m, UserMessage) and m.content.startswith("<system-reminder>") for m in reminders)


async def test_a_failure_may_be_accepted_in_so_many_words(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, calls(READ), says("gone"), says("It is gone.\nFailure accepted: it never existed.")
    )
    assert (await bench.run("Code-Explorer")).status is AgentStatus.DONE


@pytest.mark.req("C-06")
@pytest.mark.req("LOOP-20")
async def test_a_success_ends_the_sequence_of_errors(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.root / "a.txt").write_text("x\n")
    good = call("read_file", "g", file_path="a.txt")
    bench.model.add(calls(READ), says("1"), says("2"), says("3"), calls(good), calls(READ), says("4"))
    bench.model.add(calls(good), says("end"))
    assert (await bench.run("Code-Explorer")).text == "end"


@pytest.mark.req("LOOP-12")
@pytest.mark.req("LOOP-14")
@pytest.mark.req("REM-06")
async def test_open_todos_defer_the_end_twice(tmp_path: Path) -> None:
    todos = call("write_todos", "t", todos=[{"title": "one"}, {"title": "two"}])
    bench = Bench(tmp_path, calls(todos), says("done"), says("done"), says("really done"))
    report = await bench.run()
    assert (report.status, report.text, report.turns) == (AgentStatus.DONE, "really done", 4)
    assert texts(bench.model.requests[-1]).count("2 todo(s) are open") == 2


@pytest.mark.req("LOOP-12")
async def test_an_empty_answer_gets_one_nudge_then_counts_as_empty(tmp_path: Path) -> None:  # M29
    bench = Bench(tmp_path, says(""), says(" ", FinishReason.FILTERED))
    report = await bench.run()
    assert report.status is AgentStatus.EMPTY
    assert report.error is not None
    assert '"assistant"' not in await asyncio.to_thread(Path(report.transcript).read_text)
    assert (await Bench(tmp_path, says(""), says("Done.")).run(id="a2")).status is AgentStatus.DONE


@pytest.mark.req("LOOP-15")
async def test_the_cap_forces_a_summary_without_tools(tmp_path: Path) -> None:
    reads = [calls(call("list_files", f"l{n}", path="." * (1 + n % 2))) for n in range(3)]
    bench = Bench(tmp_path, *reads, says("So far: nothing."))
    report = await bench.run(budget=Budget(max_iterations=3))
    assert report.status is AgentStatus.ITERATION_CAP
    assert report.text == "So far: nothing."
    assert (report.turns, report.model_calls) == (3, 4)
    last = bench.model.requests[-1]
    assert last.tools == ()
    assert "limit of 3 iterations" in texts(last)


@pytest.mark.req("SUB-05")
async def test_a_reading_sub_agent_has_fifteen_iterations(tmp_path: Path) -> None:  # C-02
    bench = Bench(tmp_path, *[calls(call("list_files", path=f"d{n}")) for n in range(15)], says("Sum."))
    assert (await bench.run("Code-Explorer")).turns == 15


@pytest.mark.req("C-05")
@pytest.mark.req("APR-09")
@pytest.mark.req("LOOP-09")
@pytest.mark.req("LOOP-10")
async def test_a_repetition_is_warned_of_then_asked_about(tmp_path: Path) -> None:  # C-05
    same = [calls(call("list_files", path=".")) for _ in range(4)]
    bench = Bench(tmp_path, *same, says("I stop."))
    bench.people.decisions = ["deny"]
    report = await bench.run()
    assert report.status is AgentStatus.DONE
    assert bench.kinds().count("tool_finished") == 2
    assert "[SYSTEM WARNING] You have called `list_files` 3 times" in texts(bench.model.requests[3])
    assert "was stopped (the user denied it)" in texts(bench.model.requests[4])
    assert [request.tool for request in bench.people.asked] == ["list_files"]
    assert pairs_are_whole(bench.model.requests) == []


async def test_an_allowed_repetition_runs_once_then_detection_starts_over(tmp_path: Path) -> None:
    same = [calls(call("list_files", path=".")) for _ in range(7)]
    bench = Bench(tmp_path, *same, says("I stop."))
    bench.people.decisions = ["once"]
    await bench.run()
    # runs, runs, warned, asked and allowed, runs, runs, warned
    assert bench.kinds().count("tool_finished") == 5
    assert len(bench.people.asked) == 1


async def test_a_repetition_that_nobody_decides_ends_unanswered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, *[calls(call("list_files", path=".")) for _ in range(20)])
    report = await bench.run()
    assert report.status is AgentStatus.UNANSWERED
    assert report.turns == 8
    assert pairs_are_whole(bench.model.requests) == []


@pytest.mark.req("LOOP-14")
async def test_a_cut_answer_runs_none_of_its_calls(tmp_path: Path) -> None:  # M16
    cut = calls(call("write_file", "w", file_path="R.md", content="# T"), finish=FinishReason.LENGTH)
    bench = Bench(tmp_path, cut, cut, cut)
    report = await bench.run("Coder")
    assert report.status is AgentStatus.FAILED
    assert not (bench.root / "R.md").exists()
    assert bench.kinds().count("tool_started") == 0
    second, third = bench.model.requests[1:]
    assert "The answer hit the output limit" in texts(second)
    assert "Write in parts" in texts(second)
    assert "below about 60 lines" in texts(third)
    assert pairs_are_whole(bench.model.requests) == []


async def test_a_cut_text_is_continued(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("one ", FinishReason.LENGTH), says("two"))
    report = await bench.run()
    assert (report.status, report.text) == (AgentStatus.DONE, "one two")


async def test_unreadable_arguments_never_run(tmp_path: Path) -> None:  # M08
    broken = call("write_file", "w").model_copy(update={"problem": "line 1 column 60: unterminated string"})
    bench = Bench(tmp_path, calls(broken), says("?"), done("no", "failure"))
    (bench.root / "a.py").write_text("x")
    await bench.run("Coder")
    assert not (bench.root / "w").exists()
    assert bench.kinds()[:2] == ["tool_finished", "assistant_text"]
    assert "could not be read" in texts(bench.model.requests[1])


async def test_a_call_written_as_text_is_not_run_and_not_the_end(tmp_path: Path) -> None:  # M14
    text = '<invoke name="write_file"><parameter name="file_path">a</parameter></invoke>'
    bench = Bench(tmp_path, *[says(text)] * 3)
    report = await bench.run("Coder")
    assert report.status is AgentStatus.FAILED
    assert report.turns == 3
    assert bench.kinds().count("tool_started") == 0


@pytest.mark.req("LOOP-19")
@pytest.mark.req("AGT-06")
async def test_a_message_at_the_very_end_is_not_lost(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def last_moment(_request: ModelRequest) -> ModelReply:
        assert bench.agent is not None
        assert bench.agent.inject("also do B")
        return says("finished")

    bench.model.add(last_moment, says("B is done too."))
    report = await bench.run()
    assert report.text == "B is done too."
    assert bench.model.requests[1].messages[-1] == UserMessage(content="also do B")
    assert bench.agent is not None
    assert not bench.agent.inject("too late")


@pytest.mark.req("LOOP-19")
@pytest.mark.parametrize("how", ["the model fails", "the cap is reached", "interrupted"])
async def test_a_message_beside_an_end_without_success_stays_in_the_conversation(
    tmp_path: Path, how: str
) -> None:
    bench = Bench(tmp_path)

    def last_moment(request: ModelRequest) -> ModelReply | ModelFailed:
        assert bench.agent is not None
        assert bench.agent.inject("also do B")
        if how == "interrupted":
            bench.token.set("stop")
        return says("So far: A.") if request.tools == () else failed("the provider is down")

    bench.model.add(*([calls(call("list_files", "l"))] if how == "the cap is reached" else []), last_moment)
    budget = Budget(max_iterations=1 if how == "the cap is reached" else None)
    report = await bench.run(budget=budget)
    assert report.status is not AgentStatus.DONE
    assert "also do B" in await asyncio.to_thread(Path(report.transcript).read_text)


@pytest.mark.req("LOOP-14")
@pytest.mark.req("BLG-01")
async def test_only_the_verifier_says_done(tmp_path: Path) -> None:
    write = call("write_file", "w", file_path="a.txt", content="x")
    bench = Bench(tmp_path, done(), calls(write), done("Now it works."))
    bench.shell = ScriptedShell(1, 0)
    report = await bench.run("Coder", verify="make check")
    assert (report.status, report.text) == (AgentStatus.DONE, "Now it works.")
    assert bench.shell.commands == ["make check", "make check"]
    assert "output of make check" in texts(bench.model.requests[1])
    assert bench.kinds().count("verified") == 2


async def test_three_claims_against_a_red_verifier_end_the_agent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, done(), done(), done(), done())
    bench.shell = ScriptedShell(1, 1, 1)
    report = await bench.run("Coder", verify="make check")
    assert report.status is AgentStatus.VERIFY_FAILED
    assert report.error is not None
    assert report.error.kind is ErrorKind.VERIFY
    assert report.turns == 3
    assert bench.shell.commands == ["make check"]  # nothing was done in between: the outcome stands


async def test_a_failed_model_ends_the_agent_with_its_last_words(tmp_path: Path) -> None:
    listing = calls(call("list_files", path="."), text="I look.")
    for kind, status in [
        (ErrorKind.BUDGET, AgentStatus.BUDGET),
        (ErrorKind.MODEL, AgentStatus.INFRA),
        (ErrorKind.AUTH, AgentStatus.INFRA),
        (ErrorKind.CONFIG, AgentStatus.FAILED),
    ]:
        report = await Bench(tmp_path, listing, failed("no", kind)).run(id=kind.value)
        assert (report.status, report.text) == (status, "I look.")
        assert report.error is not None
        assert report.error.kind is kind


async def test_without_a_model_the_report_says_how_to_configure_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.settings = bench.settings.model_copy(update={"models": {}})
    report = await bench.run()
    assert report.status is AgentStatus.FAILED
    assert report.error is not None
    assert report.error.kind is ErrorKind.CONFIG


async def test_too_long_a_request_is_summarised_once_and_sent_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, failed("too long", ErrorKind.CONTEXT), says("ok"))
    assert (await bench.run()).status is AgentStatus.DONE
    assert "compacted" in bench.kinds()


@pytest.mark.req("CMP-02")
@pytest.mark.parametrize("estimated", [False, True])
async def test_the_providers_count_drives_compaction_also_when_the_price_is_a_guess(
    tmp_path: Path, estimated: bool
) -> None:
    first = calls(call("list_files", path="."), tokens=95_000)
    first = first.model_copy(update={"usage": first.usage.model_copy(update={"estimated": estimated})})
    bench = Bench(tmp_path, first, says("ok"))
    bench.settings = bench.settings.model_copy(update={"context_limits": {"test/model": 100_000}})
    assert (await bench.run()).status is AgentStatus.DONE
    assert "compacted" in bench.kinds()


@pytest.mark.req("LOOP-17")
async def test_the_interrupt_is_polled_at_six_boundaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0
    inner = IterationContext.interrupted

    def counting(ctx: IterationContext) -> bool:
        nonlocal checks
        checks += 1
        return inner(ctx)

    monkeypatch.setattr(IterationContext, "interrupted", counting)
    await Bench(tmp_path, says("x")).run()
    assert checks == 6
    assert len(react_module.STAGES) == 6


async def test_an_interrupt_ends_a_running_call_and_pairs_stay_whole(tmp_path: Path) -> None:  # T-18, M01
    bench = Bench(
        tmp_path, calls(call("run_command", "a", command="ls"), call("run_command", "b", command="ls"))
    )
    bench.shell = ScriptedShell(hang=True)
    running = asyncio.create_task(bench.run())
    await bench.shell.began.wait()
    bench.token.set("Esc")
    report = await running
    assert report.status is AgentStatus.CANCELLED
    assert report.error is not None
    assert "Esc" in report.error.message
    assert bench.shell.cancelled == 1
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    lines = [json.loads(line) for line in raw.splitlines()]
    assert [m.get("call_id") for m in lines[-2:]] == ["a", "b"]


async def test_a_time_out_keeps_what_was_said_and_changed(tmp_path: Path) -> None:
    write = call("write_file", "w", file_path="a.txt", content="x")
    bench = Bench(tmp_path, calls(write, call("run_command", command="sleep"), text="Working."))
    bench.shell = ScriptedShell(hang=True)
    report = await bench.run("Coder", budget=Budget(timeout_s=0.3))
    assert (report.status, report.text) == (AgentStatus.TIMEOUT, "Working.")
    assert report.files_changed == ("a.txt",)
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    assert [json.loads(line).get("is_error") for line in raw.splitlines()][-2:] == [False, True]


async def test_a_bare_cancellation_is_passed_on_with_the_transcript_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("run_command", "a", command="ls")))
    bench.shell = ScriptedShell(hang=True)
    running = asyncio.create_task(bench.run())
    await bench.shell.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    raw = await asyncio.to_thread((bench.home / "transcripts/r1/a1.jsonl").read_text)
    assert json.loads(raw.splitlines()[-1])["call_id"] == "a"


async def test_an_approval_nobody_gives_is_told_and_ends_unanswered(tmp_path: Path) -> None:
    run = call("run_command", command="npm publish")
    for ending in (says("I could not publish."), done("Published, I think.")):
        bench = Bench(tmp_path, calls(run), ending)
        report = await bench.run(approve=ApprovalLevel.MANUAL, id=ending.message.content[:1] or "x")
        assert report.status is AgentStatus.UNANSWERED
        assert bench.shell.commands == []
        assert "nobody answered" in texts(bench.model.requests[1])


async def test_a_denied_call_is_not_asked_for_again_and_is_no_success(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("run_command", command="npm publish")), says("Denied."))
    bench.people.decisions = ["deny"]
    report = await bench.run(approve=ApprovalLevel.MANUAL)
    assert report.status is AgentStatus.FAILED
    assert report.error is not None
    assert report.error.kind is ErrorKind.DENIED
    assert "was refused" in texts(bench.model.requests[1])


async def test_completion_beside_a_failed_call_is_not_believed(tmp_path: Path) -> None:
    both = calls(READ, call("task_complete", status="success", summary="ok"))
    bench = Bench(tmp_path, both, done("Checked."))
    report = await bench.run("Coder")
    assert (report.text, report.turns) == ("Checked.", 2)


async def test_only_the_foreground_agent_streams_and_events_carry_their_stamp(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Hello"))
    await bench.run(stream=True)
    assert bench.kinds() == ["text_delta", "assistant_text"]
    event = bench.events[1]
    assert isinstance(event, AssistantText)
    assert (event.run, event.agent, event.text) == ("r1", "a1", "Hello")
    assert event.at
    bench = Bench(tmp_path, says("Hello"))
    await bench.run()
    assert bench.kinds() == ["assistant_text"]
    assert not bench.model.requests[0].stream


async def test_a_resumed_agent_keeps_its_context(tmp_path: Path) -> None:  # SUB-09, C-34
    bench = Bench(tmp_path, says("first"), says("second"))
    await bench.run("Code-Explorer", "Q1")
    history = (*bench.model.requests[0].messages[1:],)
    await bench.run("Code-Explorer", "Q2", history=history, models={Role.ACTION: "other/model"})
    assert texts(bench.model.requests[1]) == "Q1\nQ2"
    assert bench.model.requests[1].model == "other/model"
    await bench.run("Code-Explorer", "Q3", id="fresh")
    assert texts(bench.model.requests[2]) == "Q3"


async def test_a_wrong_tool_name_is_a_slip_that_can_be_mended(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("write_file", file_path="a", content="x")), says("?"), says("still"))
    bench.model.add(calls(call("list_files", path=".")), says("Here is the answer."))
    report = await bench.run("Code-Explorer")
    assert (report.status, report.text) == (AgentStatus.DONE, "Here is the answer.")
    assert "not available to this agent" in texts(bench.model.requests[1])


async def test_secrets_in_the_verifiers_output_do_not_reach_the_model(tmp_path: Path) -> None:
    bench = Bench(tmp_path, done(), done(), done())
    bench.shell = ScriptedShell(1)
    secret = "sk-ant-" + "a1B2" * 12
    await bench.run("Coder", verify=f"echo {secret}")
    assert secret not in texts(bench.model.requests[1]).split("Its output:")[1]


async def test_an_explicit_cap_also_binds_a_recipe(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("list_files", path=".")), says("cut"))
    report = await bench.run(
        "Coder",
        recipe=(Delete(path="a"),),
        budget=Budget(max_iterations=1),
        models={Role.ACTION: "test/model"},
    )
    assert (report.status, report.turns) == (AgentStatus.ITERATION_CAP, 1)


async def test_commands_and_verification_run_for_real_in_the_root(tmp_path: Path) -> None:
    make = call("run_command", command="echo made > a.txt")
    bench = Bench(tmp_path, done(), calls(make), done("Made."))
    marks = {"OPENDEV_RUN": "r1", "OPENDEV_AGENT": "a1"}
    bench.shell = ProcessShell(log_dir=tmp_path / "logs", marker=marks)
    report = await bench.run("Coder", verify="cat a.txt && exit ${CODE:-9}", env={"CODE": "0"})
    assert (report.status, report.text) == (AgentStatus.DONE, "Made.")
    assert (bench.root / "a.txt").read_text() == "made\n"
    outcomes = [e.result for e in bench.events if isinstance(e, Verified)]
    assert [(o.exit_code, o.outcome) for o in outcomes] == [(1, "fail"), (0, "pass")]


async def test_what_fails_on_the_way_out_of_an_interrupt_is_no_error(tmp_path: Path) -> None:
    class Stubborn(ScriptedShell):
        async def run(self, *args: Any, **options: Any) -> CommandResult:
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                raise OSError("too late")

    bench = Bench(tmp_path, done())
    bench.shell = shell = Stubborn()
    running = asyncio.create_task(bench.run("Coder", verify="x"))
    await shell.began.wait()
    bench.token.set("stop")
    assert (await running).status is AgentStatus.CANCELLED


async def test_another_way_that_worked_makes_up_for_an_approval_nobody_gave(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("run_command", command="touch a.txt")))
    bench.model.add(calls(call("write_file", file_path="a.txt", content="x")), done("Made it otherwise."))
    bench.people.decisions = ["no_answer", "once"]
    assert (await bench.run(approve=ApprovalLevel.MANUAL)).status is AgentStatus.DONE
