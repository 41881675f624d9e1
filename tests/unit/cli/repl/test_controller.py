"""The conversation: turns, injection, interrupts, questions, recovery and a clean end, on a scripted model (TUI-07, REPL-01, REPL-05)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.worker import RUN_MARK
from opendev.core.approval import ApprovalAnswer, Mode
from opendev.core.errors import OpenDevError
from opendev.core.ops import AnswerApproval, AnswerQuestion, Interrupt, Prompt
from opendev.tools.shell.reap import family
from opendev.ui.repl.ports import Conversation
from support.model_server import ModelServer, call, text
from support.waiting import until

from .conftest import MODEL, Opened

Open = Callable[..., Opened]
Folders = tuple[Path, Path]
ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.req("REPL-01", "SES-01", "TUI-04", "TUI-05")
async def test_turns_are_one_conversation_and_its_figures_are_live(talk: Open) -> None:
    with ModelServer([text("Hello."), text("Four.")]) as server:
        async with talk(server) as one:
            assert (await one.say("Hi.")).success
            assert (await one.say("Two and two?")).success
            status = one.repl.status()
            billed = server.billed()
            assert (status.usage.input, status.usage.output) == (billed.input, billed.output)
            assert status.usage.cost_usd > 0
            assert 0.01 < status.context < 1
            assert (status.busy, status.model, status.mode) == (False, MODEL, Mode.NORMAL)
            run = one.repl.room.held.id
        assert [m["content"] for m in server.seen[1].messages if m["role"] == "user"] == [
            "Hi.",
            "Two and two?",
        ]
    kinds = [
        event.kind for event in one.events if event.kind in ("run_started", "assistant_text", "run_finished")
    ]
    assert kinds == ["run_started", "assistant_text", "run_finished"] * 2
    assert {event.run for event in one.events} == {run}
    assert family(marker={RUN_MARK: run}) == ()


@pytest.mark.req("TUI-07")
async def test_what_is_typed_while_it_works_reaches_it_and_is_never_lost(talk: Open) -> None:
    replies = [call("run_command", {"command": "sleep 0.3"}), text("Both."), text("A turn of its own.")]
    with ModelServer(replies) as server:
        async with talk(server) as one:
            await one.repl.submit("Begin.")
            await one.seen("tool_started")
            assert (await one.repl.submit("Also this.")).data == {"queued": True}
            await one.repl.turns.idle()
            hub = await one.repl.room.ready()
            await hub.submit(Prompt(text="Just when it ended."))  # as an interface may, a moment too late
            await one.seen("run_finished", 2)
        assert server.seen[1].says("Also this.")
        assert server.seen[2].says("Just when it ended.")


@pytest.mark.req("TUI-03", "TUI-07")
async def test_an_interrupt_stops_the_turn_and_the_next_one_goes_on(talk: Open, folders: Folders) -> None:
    replies = [call("run_command", {"command": "echo $$ > pid; sleep 100"}), text("Here I am.")]
    with ModelServer(replies) as server:
        async with talk(server) as one:
            await one.repl.submit("Wait.")
            await until(lambda: (folders[0] / "pid").exists())
            await one.repl.submit("No, look at b.")
            turns: Any = one.repl.turns
            await turns._sender  # the agent has it, and does not look yet
            await one.repl.act(Interrupt())
            await one.repl.turns.idle()
            assert (await one.seen("run_finished")).status == "cancelled"
            assert family(marker={RUN_MARK: one.repl.room.held.id}) == ()
            assert "kept for your next message: No, look at b." in (await one.seen("notice")).text
            await one.say("Are you there?")
        assert server.seen[-1].says("No, look at b.")
        assert (await one.seen("run_finished", 2)).status == "done"
        assert server.seen[-1].says("Wait.")


@pytest.mark.req("TUI-03")
async def test_a_turn_that_has_not_begun_can_be_interrupted_too(talk: Open) -> None:
    with ModelServer([text("Later.")]) as server:
        async with talk(server) as one:
            await one.repl.submit("Now.")  # the hub is still opening
            await one.repl.act(Interrupt())
            await one.repl.turns.idle()
            assert "Interrupted before the agent started." in (await one.seen("notice")).text
            assert server.seen == []
            await one.say("Again.")
            assert (await one.seen("run_finished", 2)).status == "done"


@pytest.mark.req("TUI-02")
async def test_approvals_and_questions_are_answered_once(talk: Open, folders: Folders) -> None:
    asked = {
        "questions": [
            {
                "question": "Which?",
                "header": "W",
                "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}],
            }
        ]
    }
    replies = [call("run_command", {"command": "touch made"}), call("ask_user", asked), text("Done.")]
    with ModelServer(replies) as server:
        async with talk(server, approval="manual") as one:
            await one.repl.submit("Make it.")
            request = (await one.seen("approval_asked")).request
            yes = AnswerApproval(
                request_id=request.id, answer=ApprovalAnswer(decision="once", digest=request.digest)
            )
            await one.repl.act(yes)
            with pytest.raises(OpenDevError):
                await one.repl.act(yes)
            question = await one.seen("question_asked")
            await one.repl.act(AnswerQuestion(request_id=question.request_id, texts=("b",)))
            await one.repl.turns.idle()
        assert (folders[0] / "made").exists()
        assert server.seen[2].says("b")


@pytest.mark.req("TUI-07")
async def test_a_prompt_passes_hooks_and_mentions_before_the_model(talk: Open, folders: Folders) -> None:
    project, home = folders
    home.mkdir()
    refuse = "grep -q secret && { echo not that >&2; exit 2; }; exit 0"
    hooks = {"UserPromptSubmit": [{"hooks": [{"command": refuse}]}]}
    (home / "settings.json").write_text(json.dumps({"hooks": hooks}))
    (project / "notes.txt").write_text("the sun is a star")
    with ModelServer([text("I see.")]) as server:
        async with talk(server) as one:
            await one.say("tell the secret")
            assert "not that" in one.notices
            assert server.seen == []
            await one.say("read @notes.txt")
        assert server.seen[0].says("the sun is a star")
        assert not server.seen[0].says("tell the secret")


@pytest.mark.req("REPL-05")
async def test_a_mode_is_read_by_the_next_query_only(talk: Open, folders: Folders) -> None:
    write = call("write_file", {"file_path": "a.txt", "content": "x"})
    replies = [call("run_command", {"command": "sleep 0.2"}), write, text("One."), write, text("Two.")]
    with ModelServer(replies) as server:
        async with talk(server) as one:
            await one.repl.submit("Write.")
            await one.seen("tool_started")
            assert one.repl.toggle_mode() is Mode.PLAN
            assert one.repl.status().mode is Mode.PLAN
            await one.repl.turns.idle()
            assert (folders[0] / "a.txt").exists()  # the query at work was not changed
            (folders[0] / "a.txt").unlink()
            await one.say("Write again.")
            assert not (folders[0] / "a.txt").exists()
            assert (await one.say("/mode normal")).success
            assert one.repl.status().mode is Mode.NORMAL


@pytest.mark.req("MOD-07")
async def test_without_a_model_it_says_so_and_one_can_be_chosen(
    talk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([text("Hello.")]) as server:
        for name, value in server.env().items():
            monkeypatch.setenv(name, value)
        async with talk() as one:
            await one.say("Hi.")
            assert "No model is configured" in one.notices
            assert (await one.say(f"/models {MODEL}")).success
            await one.say("Hi.")
            assert (await one.seen("run_finished", 2)).status == "done"


async def test_a_model_service_that_dies_is_started_again(talk: Open) -> None:
    with ModelServer([text("One."), text("Two.")]) as server:
        async with talk(server) as one:
            await one.say("First.")
            hub = await one.repl.room.ready()
            service: Any = hub.model
            await service.end("it was killed")
            await one.say("Second.")
            assert "started again" in one.notices
            assert (await one.seen("run_finished", 2)).status == "done"
            assert one.repl.status().usage.input == server.billed().input
        assert server.seen[1].says("First.")


@pytest.mark.req("SHL-11", "SHL-14", "TUI-04")
async def test_background_tasks_live_between_turns_and_end_with_the_session(talk: Open) -> None:
    start = call("run_command", {"command": "echo up; sleep 300", "background": True})
    with ModelServer([start, text("It runs."), call("list_processes", {}), text("Still.")]) as server:
        async with talk(server) as one:
            await one.say("Start it.")
            assert one.repl.status().tasks == 1
            await one.say("Does it run?")
            assert server.seen[3].says("running")
            id = next(iter(one.repl.room.figures.tasks))
            assert id in (await one.say("/tasks")).message
            assert (await one.say(f"/tasks output {id}")).message == "up"
            assert (await one.say("/tasks kill nobody")).success is False
            assert (await one.say(f"/tasks kill {id}")).success
            await until(lambda: one.repl.status().tasks == 0)
            assert family(marker={RUN_MARK: one.repl.room.held.id}) == ()


@pytest.mark.req("SES-08", "SES-09", "REPL-04")
async def test_clear_begins_anew_and_resume_brings_words_mode_and_cost_back(talk: Open) -> None:
    with ModelServer([text("Hello Ann."), text("New."), text("Ann.")]) as server:
        async with talk(server) as one:
            await one.say("I am Ann.")
            first, cost = one.repl.status().session_id, one.repl.status().usage
            cleared = await one.say("/clear")
            assert cleared.data == {"clear": True}
            assert one.repl.status().usage.input == 0
            await one.say("Who am I?")
            assert not server.seen[1].says("Ann")
            second = one.repl.status().session_id
            assert second != first
            resumed = await one.say(f"/resume {first[:5]}")
            assert "> I am Ann." in resumed.message
            assert one.repl.status().usage == cost
            assert (await one.say("/resume nobody")).success is False
            assert one.repl.status().session_id == first
        async with talk(server, resume="") as two:  # another start: the newest
            assert two.repl.status().session_id in (first, second)
            await two.say(f"/resume {first}")
            await two.say("Who am I?")
            assert server.seen[2].says("I am Ann.")
            assert two.repl.status().usage.input > cost.input


async def test_a_command_that_changes_the_session_waits_for_nobody(talk: Open) -> None:
    with ModelServer([call("run_command", {"command": "sleep 0.5"}), text("Done.")]) as server:
        async with talk(server) as one:
            await one.repl.submit("Work.")
            await one.seen("tool_started")
            refused = await one.repl.submit("/clear")
            assert (refused.success, "Interrupt it first" in refused.message) == (False, True)
            await one.repl.turns.idle()


@pytest.mark.req("CMP-15")
@pytest.mark.slow
async def test_compact_between_two_turns_sums_up_at_once(talk: Open) -> None:
    def answer(seen: Any) -> Any:
        if seen.says("<messages>"):
            return text("## Goal\nTalk.\n## State\nMany words were said about the old lighthouse.")
        return text(f"Answer {seen.number}. " + "word " * 200)

    with ModelServer(answer) as server:
        async with talk(server) as one:
            assert "nothing to sum up" in (await one.say("/compact")).message
            await one.say("Turn 0.")
            await one.say("/compact")
            assert "too little" in one.notices
            for number in range(1, 8):
                await one.say(f"Turn {number}.")
            await one.say("/compact")
            compacted = one.all("compacted")[-1]
            assert compacted.after < compacted.before
            await one.say("And now?")
        last = server.seen[-1]
        assert [last.says(part) for part in ("old lighthouse", "Answer 7.", "Answer 1.")] == [
            True,
            True,
            False,
        ]


@pytest.mark.req("CFG-09")
async def test_two_conversations_share_no_manager(talk: Open) -> None:
    async with talk(model="openai/a") as one, talk(model="openai/b") as two:
        await one.say("/mode plan")
        await one.say("/thinking high")
        await one.say("/approve manual")
        assert (one.repl.status().model, two.repl.status().model) == ("openai/a", "openai/b")
        assert (one.repl.status().mode, two.repl.status().mode) == (Mode.PLAN, Mode.NORMAL)
        assert two.repl.approvals.level == "auto"
        assert one.repl.approvals.level == "manual"
        assert two.repl.config.project.config.thinking.level == "off"
        assert one.repl.sessions.held.id != two.repl.sessions.held.id


@pytest.mark.req("TUI-01")
async def test_a_front_end_needs_the_port_and_agents_know_none(talk: Open) -> None:
    with ModelServer([text("Hello.")]) as server:
        async with talk(server) as one:
            port: Conversation = one.repl  # checked by the type checker
            events = port.events()
            await port.submit("Hi.")
            kinds: list[str] = []
            async for event in events:
                kinds.append(event.kind)
                if event.kind == "run_finished":
                    break
            assert {"run_started", "text_delta", "agent_finished"} <= set(kinds)
            assert {command.name for command in port.commands()} > {"help", "exit"}
    for room in ("agents", "actors", "tools", "context", "swarm"):
        for path in (ROOT / room).rglob("*.py"):
            assert "..ui" not in path.read_text(), path


@pytest.mark.req("REPL-04", "SES-04")
async def test_leaving_in_the_middle_ends_everything_and_the_session_goes_on_later(
    talk: Open, folders: Folders
) -> None:
    server_of = call("run_command", {"command": "sleep 300", "background": True})
    stuck = call("run_command", {"command": "touch begun; sleep 300"})
    with ModelServer([server_of, stuck, text("Here again.")]) as server:
        async with talk(server) as one:
            await one.repl.submit("Begin.")
            await until(lambda: (folders[0] / "begun").exists())
            left = await one.repl.submit("/exit")
            assert (left.leave, "1 background task is ended" in left.message) == (True, True)
            run = one.repl.room.held.id
        assert family(marker={RUN_MARK: run}) == ()
        assert one.all("run_finished")[-1].status == "cancelled"
        async with talk(server, resume=run) as two:
            assert "> Begin." in (await two.seen("notice")).text
            await two.say("Go on.")
            assert (await two.seen("run_finished")).status == "done"
        assert server.seen[2].says("Begin.")


async def test_a_defect_in_a_turn_is_told_and_ends_it(talk: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([text("Fine.")]) as server:
        async with talk(server) as one:

            def broken(*_: object) -> None:
                raise ZeroDivisionError("nobody expected it")

            with monkeypatch.context() as patch:
                patch.setattr("opendev.cli.repl.room.foreground_task", broken)
                await one.say("Hi.")
            assert "nobody expected it" in one.notices
            await one.say("Hi.")
            assert (await one.seen("run_finished", 2)).status == "done"
