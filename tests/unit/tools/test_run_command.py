"""run_command: what the model is told of a command (SHL-01, 03, 07, 08, 09; cases P01, P05, P15, P17, P23)."""

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import ToolOutput
from opendev.core.ports import CommandResult
from opendev.core.tool import Limits, ToolContext
from opendev.tools.run_command import TOOL, Args, prepare, run
from opendev.tools.shell.process import ProcessShell
from opendev.tools.shell.reap import family, kill_marked
from support.tool_context import EventLog, FakeShell, make_context


@pytest.fixture
def marker() -> dict[str, str]:
    return {"OPENDEV_RUN": uuid.uuid4().hex}


@pytest.fixture
async def ctx(tmp_path: Path, marker: dict[str, str]) -> AsyncIterator[ToolContext]:
    root = tmp_path / "project"
    root.mkdir()
    shell = ProcessShell(log_dir=tmp_path / "logs", marker=marker)
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    yield make_context(root, shell=shell, env=env)
    await kill_marked(marker)
    await shell.close()


@pytest.mark.req("SHL-09")
async def test_success_and_failure_carry_output_and_code(ctx: ToolContext) -> None:
    good = await run(Args(command="echo hello"), ctx)
    assert good.ok
    assert good.text.startswith("hello\n[exit code 0 after ")
    assert good.data == {"exit_code": 0, "signal": None, "ended": "exit", "log": "", "survivors": []}
    bad = await run(Args(command="echo oops >&2; exit 4"), ctx)
    assert not bad.ok
    assert bad.error is not None
    assert bad.error.kind is ErrorKind.TOOL
    assert "oops\n[exit code 4 after " in bad.text
    assert bad.data == {"exit_code": 4, "signal": None, "ended": "exit", "log": "", "survivors": []}
    assert (await run(Args(command="true"), ctx)).text.startswith("(no output)\n[exit code 0")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "sh -c 'echo 2 failed; exit 1' | tail -1",
            "exit code 0 after {}, of the last command of the pipe; the other",
        ),
        ("false; echo done", "exit code 0 after {}, of the last command that ran"),
        ("false || true", "exit code 0 after {}, of the last command that ran"),
        ("(exit 3) & wait", "exit code 0 after {}, of the last command that ran"),
        ("kill -9 $$", "killed by signal 9 (SIGKILL) after {}, exit code 137"),
        ("sh -c 'kill -9 $$'; exit $?", "(if a signal ended it, signal 9 (SIGKILL))"),
        ("exit 255", "exit code 255 after {}"),
    ],
)
async def test_p15_wording_claims_only_what_is_known(ctx: ToolContext, command: str, words: str) -> None:
    result = await run(Args(command=command), ctx)
    for part in words.split("{}"):
        assert part in result.text
    assert "succeed" not in result.text + result.summary


async def test_p05_a_background_child_is_named(ctx: ToolContext) -> None:
    result = await run(Args(command="sleep 60 & echo ready"), ctx)
    assert result.ok
    assert result.data is not None
    (pid,) = result.data["survivors"]
    assert f"Still running in the background: pid {pid}." in result.text


@pytest.mark.slow
@pytest.mark.req("SHL-07")
async def test_p01_time_limits(ctx: ToolContext, marker: dict[str, str]) -> None:
    slow = await run(Args(command="echo child; sleep 30", timeout_s=0.4), ctx)
    assert not slow.ok
    assert slow.error is not None
    assert slow.error.kind is ErrorKind.TIMEOUT
    assert slow.text.startswith("child\n[timed out after ")
    quiet = await run(Args(command="sleep 30"), replace(ctx, limits=Limits(command_idle_s=0.3)))
    assert "no output for too long" in quiet.text
    assert family(marker=marker) == ()


async def test_the_model_can_shorten_a_limit_but_not_lengthen_it(tmp_path: Path) -> None:
    asked: list[float] = []

    class Spy(FakeShell):
        async def run(self, command: str, **how: object) -> CommandResult:
            asked.append(float(str(how["total_s"])))
            return self.result

    ctx = make_context(tmp_path, shell=Spy())
    for timeout in (None, 5, 10_000):
        await run(Args(command="x", timeout_s=timeout), ctx)
    assert asked == [600, 5, 600]


@pytest.mark.req("SHL-08")
async def test_an_interrupt_ends_the_command(ctx: ToolContext, marker: dict[str, str]) -> None:
    task = asyncio.ensure_future(run(Args(command="setsid sleep 300 & sleep 300"), ctx))
    await asyncio.sleep(0.3)
    ctx.interrupt.set("ctrl-c")
    result = await task
    assert result.error is not None
    assert result.error.kind is ErrorKind.CANCELLED
    assert "ctrl-c" in result.text
    assert family(marker=marker) == ()


async def test_cancelling_the_call_ends_the_command(ctx: ToolContext, marker: dict[str, str]) -> None:
    task = asyncio.ensure_future(run(Args(command="sleep 300"), ctx))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert family(marker=marker) == ()


async def test_p23_folders(ctx: ToolContext) -> None:
    (ctx.root / "sub").mkdir()
    assert f"{ctx.root}/sub\n" in (await run(Args(command="pwd", cwd="sub"), ctx)).text
    gone = await run(Args(command="rm -rf ../sub", cwd="sub"), ctx)
    assert f"The folder {ctx.root}/sub was removed; the next command runs in the project root." in gone.text
    refused = await run(Args(command="pwd", cwd="sub"), ctx)
    assert refused.error is not None
    assert refused.error.kind is ErrorKind.NOT_FOUND
    assert f"{ctx.root}\n" in (await run(Args(command="pwd"), ctx)).text
    with pytest.raises(OpenDevError) as caught:
        await run(Args(command="pwd", cwd="../.."), ctx)
    assert caught.value.info.kind is ErrorKind.SCOPE


@pytest.mark.req("SHL-06")
async def test_output_is_shown_live_and_cut_with_a_log(ctx: ToolContext) -> None:
    result = await run(Args(command="seq 1 20000; echo end"), ctx)
    assert "bytes omitted" in result.text
    assert result.data is not None
    assert f"Whole output: {result.data['log']}" in result.text
    assert sum(file.stat().st_size for file in (ctx.root.parent / "logs").iterdir()) > 100_000
    assert isinstance(ctx.emit, EventLog)
    shown = [event for event in ctx.emit.events if isinstance(event, ToolOutput)]
    assert shown
    assert (shown[-1].call_id, shown[-1].agent, shown[-1].text[-4:]) == ("call1", "agent1", "end\n")


@pytest.mark.req("SHL-03")
def test_known_prompts_are_answered() -> None:
    assert prepare("npx create-thing app") == "yes | npx create-thing app"
    assert prepare("npm init") == "yes | npm init"
    for command in ("npm install", "npx a && b", "echo npx", "npx a < f", "npxy", "npx $(b)"):
        assert prepare(command) == command


def test_the_tool_declares_all_it_may_do() -> None:
    assert not TOOL.read_only
    assert TOOL.resources(Args(command="x")) == ("*",)
