"""The conversation on a real terminal, as a person has it: tmux, the installed command, a scripted model (issue E, item 4)."""

import asyncio
from collections.abc import Callable

import pytest
from support.command_line import Sandbox, marked
from support.model_server import ModelServer, Reply, call, text
from support.tmux import Tmux, needs_tmux
from support.waiting import until

pytestmark = [needs_tmux, pytest.mark.soak]
Serve = Callable[..., ModelServer]


def script() -> tuple[Reply, ...]:
    return (
        call("run_command", {"command": "echo made > made.txt"}),
        text("# Made\n\nThe file `made.txt` is there."),
        call("run_command", {"command": "sleep 97"}),
        text("I am back, and I remember."),
    )


@pytest.mark.req("TUI-02", "TUI-03", "TUI-05", "REPL-04", "CLI-01")
@pytest.mark.parametrize(("columns", "rows", "env"), [(80, 24, {}), (40, 20, {"NO_COLOR": "1"})])
async def test_a_day_at_the_terminal(
    sandbox: Sandbox, serve: Serve, columns: int, rows: int, env: dict[str, str]
) -> None:
    server = serve(*script())
    made = sandbox.project / "made.txt"
    with Tmux(sandbox.project, sandbox.environment() | env, columns=columns, rows=rows) as term:
        term.type("stty -a > before")
        term.type("opendev --plain")
        await term.sees("0% context")
        await _task_and_approval(term)
        await term.waits(made.exists, "the command did not run")
        await term.sees("is there.")
        await _idle(term)
        await _interrupt(term)
        if columns == 80:
            await _resize(term)
            await _away_and_back(term)
        term.type("/undo")
        await term.waits(lambda: not made.exists(), "nothing was undone")
        await term.sees("Undid step")
        (run_id,) = sandbox.runs()
        term.type("/exit")
        await term.rests()
        assert f"opendev --resume {run_id}" in term.everything().replace("\n", "")
        term.type("stty -a > after")
        term.type("opendev --plain --continue")
        await term.sees("0% context" if not server.seen else "context")
        term.type("do you remember?")
        await term.sees("I remember.")
        await _idle(term)
        term.key("C-d")
        await term.rests()
        term.type("stty -a > last")
        await until((sandbox.project / "last").exists)
        await term.rests()
    assert (sandbox.project / "before").read_text() == (sandbox.project / "after").read_text()
    assert (sandbox.project / "before").read_text() == (sandbox.project / "last").read_text()
    said = str(server.seen[-1].messages)
    assert "make it" in said
    assert "still there?" in said  # what was typed while the agent worked, also when it was interrupted
    assert "do you remember?" in said
    await until(lambda: marked(run_id) == [])
    assert sandbox.runs() == [run_id]


async def _task_and_approval(term: Tmux) -> None:
    term.type("make it")
    await term.sees("Allow once")
    assert "echo made > made.txt" in " ".join(term.everything().split())
    term.key("Down")  # from the refusal to the first choice
    await term.sees("› y")
    term.key("Enter")


async def _interrupt(term: Tmux) -> None:
    term.type("sleep a little")
    await term.sees("sleep 97")
    await term.sees("Working")
    term.type("still there?")
    await term.sees("queued")
    term.key("Escape")
    await term.sees("interrupted")
    await _idle(term)


async def _idle(term: Tmux) -> None:
    def idle() -> bool:
        shown = term.screen()  # one picture: between two of them the rows at the bottom are drawn anew
        return "% context" in shown and "Working" not in shown and "Stopping" not in shown

    await term.waits(idle, "it works on")


async def _resize(term: Tmux) -> None:
    for columns, rows in ((50, 10), (100, 30), (80, 24)):
        term.resize(columns, rows)
        await asyncio.sleep(0.3)
    await term.sees("context")
    assert term.screen().count("% context") == 1


async def _away_and_back(term: Tmux) -> None:
    term.type("a draft", enter=False)
    await term.sees("a draft")
    term.key("C-z")
    await term.rests()
    term.type("fg")
    await term.sees("% context")
    await term.sees("a draft")
    term.key("C-c")
    await asyncio.sleep(0.3)
