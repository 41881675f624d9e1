"""Background tasks: terminals, ids, output files, states, and an end that leaves nothing (SHL-05, 10..14; K24, K25; P03, P07, P09, P13, P17, P20)."""

import asyncio
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from opendev.core.approval import ApprovalLevel
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.events import Event, ToolOutput
from opendev.core.interrupt import InterruptToken
from opendev.core.ports import ProcessInfo, ProcessState
from opendev.core.tool import Limits, ToolContext
from opendev.policy.gate import Gate
from opendev.tools import get_process_output, kill_process, list_processes, run_command
from opendev.tools.run_command import Args, run
from opendev.tools.shell import background, rolling
from opendev.tools.shell.background import GRACE_S, RUNNING_MAX, BackgroundTasks
from opendev.tools.shell.process import ProcessShell
from opendev.tools.shell.reap import family, kill_marked
from opendev.tools.shell.rolling import RollingFile, task_folder
from opendev.tools.shell.servers import SERVER_PATTERNS, is_server
from support.tool_context import make_context
from support.waiting import until

SPRINGS = "import time; print('up', flush=True); time.sleep(60)"


@pytest.fixture
def marker() -> dict[str, str]:
    return {"OPENDEV_RUN": uuid.uuid4().hex}


@pytest.fixture
def changes() -> list[ProcessInfo]:
    return []


@pytest.fixture
async def tasks(
    tmp_path: Path, marker: dict[str, str], changes: list[ProcessInfo]
) -> AsyncIterator[BackgroundTasks]:
    root = tmp_path / "project"
    root.mkdir()
    made = BackgroundTasks(root=root, marker=marker, on_change=changes.append, base=tmp_path / "opendev")
    yield made
    await made.close()
    assert family(marker=marker) == ()


@pytest.fixture
async def ctx(tmp_path: Path, tasks: BackgroundTasks, marker: dict[str, str]) -> AsyncIterator[ToolContext]:
    shell = ProcessShell(log_dir=tmp_path / "logs", marker=marker)
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    yield make_context(tmp_path / "project", shell=shell, env=env, processes=tasks)
    await kill_marked(marker)
    await shell.close()


async def start(tasks: BackgroundTasks, command: str) -> ProcessInfo:
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    return await tasks.start(command, cwd=Path("/"), env=env)


@pytest.mark.req("SHL-04")
@pytest.mark.parametrize(
    ("number", "command"),
    list(
        enumerate(
            (
                "FLASK  run --debug",
                "python3 src/app.py",
                "python manage.py runserver 0:8000",
                "django-admin runserver",
                "uvicorn main:app",
                "gunicorn -w 4 wsgi",
                "python -m http.server 8000",
                "NPM run dev",
                "yarn serve",
                "node ./Server.js",
                "npx nodemon x.js",
                "next start",
                "bin/rails server",
                "php artisan serve",
                "hugo server -D",
                "bundle exec jekyll serve",
            )
        )
    ),
)
def test_each_of_the_16_patterns_has_its_server(number: int, command: str) -> None:
    assert len(SERVER_PATTERNS) == 16
    assert re.search(SERVER_PATTERNS[number], command, re.IGNORECASE)
    assert is_server(f"cd web && {command}")


def test_other_commands_are_no_servers() -> None:
    for command in ("pytest -q", "npm test", "npm run build", "git status", "python train.py", "hugo"):
        assert not is_server(command)


@pytest.mark.req("SHL-04")
@pytest.mark.req("SHL-10")
@pytest.mark.slow
async def test_a_server_goes_to_the_background_by_itself(ctx: ToolContext, tasks: BackgroundTasks) -> None:
    (ctx.root / "app.py").write_text(SPRINGS)
    ctx = replace(ctx, limits=Limits(startup_s=0.4), offers=frozenset({"get_process_output", "kill_process"}))
    result = await run(Args(command="python app.py"), ctx)
    assert result.ok
    data = result.data or {}
    assert re.fullmatch(r"[0-9a-f]{7}", str(data["process_id"]))
    assert str(data["output"]).endswith(f"project/tasks/{data['process_id']}.output")
    assert data["state"] == "running"
    assert result.text.startswith("up\n[It looks like a server")
    assert "kill_process ends it" in result.text
    assert ctx.memo.activated == {"get_process_output", "kill_process"}  # their schemas are sent from now on
    bare = await run(Args(command="python app.py"), replace(ctx, offers=frozenset({"run_command"})))
    assert "kill_process" not in bare.text  # an agent without that tool is told another way (TOR-06)
    assert f"kill -- -{(bare.data or {})['pid']}" in bare.text
    shown = [event.text for event in ctx.emit.events if isinstance(event, ToolOutput)]  # type: ignore[attr-defined]
    assert "up" in "".join(shown)
    assert len(tasks.tasks()) == 2


@pytest.mark.req("SHL-04")
async def test_t06_a_short_command_that_looks_like_a_server_returns_as_if_in_front(ctx: ToolContext) -> None:
    assert ctx.limits.startup_s == 20.0  # K24
    began = time.monotonic()
    good = await run(Args(command="echo uvicorn is not here; exit 0"), ctx)
    assert good.ok
    assert good.text.startswith("uvicorn is not here\n[exit code 0 after ")
    assert good.data == {"exit_code": 0, "signal": None, "ended": "exit", "log": "", "survivors": []}
    bad = await run(Args(command="grep uvicorn nothing.txt"), ctx)
    assert not bad.ok
    assert "exit code 2 after" in bad.text
    assert "No such file" in bad.text
    assert time.monotonic() - began < 8
    assert ctx.processes is not None
    assert ctx.processes.take_ended() == ()  # the result was the notice


@pytest.mark.req("SHL-05")
async def test_it_has_a_terminal_of_its_own_and_can_ask_nothing(tasks: BackgroundTasks) -> None:
    probe = "import os,sys; print(sys.stdout.isatty(), os.getpgrp()==os.getpid(), os.getsid(0)==os.getpid())"
    info = await start(tasks, f"exec python -c '{probe}; print(repr(sys.stdin.read())); open(\"/dev/tty\")'")
    ended = await tasks.wait(info.id, 10)
    text = await tasks.tail(info.id, 100)
    assert text.startswith("True True True\n''\n")
    assert "/dev/tty" in text  # no controlling terminal (P07)
    assert ended.exit_code == 1


@pytest.mark.req("SHL-10")
async def test_the_output_file_is_private_and_where_it_belongs(
    tasks: BackgroundTasks, tmp_path: Path
) -> None:
    assert Path("/tmp/opendev") == background.BASE
    info = await start(tasks, "printf 'a\\r\\nb\\n'; printf '\\033[31mred\\033[0m 10%%\\r100%%\\n'")
    await tasks.wait(info.id, 5)
    path = Path(info.output)
    mode, folder = path.stat().st_mode, path.parent.stat().st_mode  # noqa: ASYNC240 - a test
    assert path.parent.name == "tasks"
    assert path.parents[2] == tmp_path / "opendev"
    assert path.parent.parent.name == str(tmp_path / "project").replace("/", "-").strip("-")[-100:].strip("-")
    assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(folder) == 0o700
    assert await tasks.tail(info.id, 100) == "a\nb\n100%"


@pytest.mark.req("SHL-11")
async def test_p17_states_codes_and_signals_are_told_once(
    tasks: BackgroundTasks, changes: list[ProcessInfo]
) -> None:
    commands = ("true", "bash -c 'python3 -c \"raise SystemExit(1)\" > /dev/null 2>&1'", "sh -c 'kill -9 $$'")
    for command in commands:
        info = await start(tasks, command)
        assert info.state is ProcessState.RUNNING
        await tasks.wait(info.id, 10)
    ended = tasks.take_ended()
    assert [(info.state.value, info.exit_code, info.signal) for info in ended] == [
        ("completed", 0, None),
        ("failed", 1, None),
        ("killed", 137, 9),
    ]
    assert tasks.take_ended() == ()
    states = [info.state.value for info in changes]
    assert states == ["running", "completed", "running", "failed", "running", "killed"]


@pytest.mark.req("SHL-12")
@pytest.mark.req("SHL-13")
async def test_listing_and_the_last_hundred_lines(ctx: ToolContext) -> None:
    done = await run(Args(command="seq 1 250", background=True), ctx)
    assert done.text.endswith("exit code 0 after 0.0 s]") or "exit code 0" in done.text
    assert ctx.processes is not None
    (info,) = ctx.processes.tasks()
    shown = await get_process_output.TOOL.run(get_process_output.Args(process_id=info.id), ctx)
    lines = shown.text.splitlines()
    assert lines[:2] == ["151", "152"]
    assert lines[99] == "250"
    assert "completed, exit code 0" in lines[100]
    await run(Args(command="sleep 60", background=True), ctx)
    listed = await list_processes.TOOL.run(list_processes.Args(), ctx)
    rows = (listed.data or {})["processes"]
    assert [row["state"] for row in rows] == ["completed", "running"]
    assert all(isinstance(row["pid"], int) and row["wall_s"] >= 0 for row in rows)
    assert rows[1]["wall_s"] > 0.5
    assert list_processes.TOOL.poller
    assert get_process_output.TOOL.poller
    assert list_processes.TOOL.read_only
    assert get_process_output.TOOL.read_only


async def test_waiting_for_output_ends_with_the_task(ctx: ToolContext) -> None:
    await run(Args(command="sleep 1.1; echo last; exit 3", background=True), ctx)
    assert ctx.processes is not None
    (info,) = ctx.processes.tasks()
    shown = await get_process_output.TOOL.run(get_process_output.Args(process_id=info.id, wait_s=30), ctx)
    assert shown.text.startswith("last\n[task ")
    assert "failed, exit code 3" in shown.text
    assert ctx.processes.take_ended() == ()  # it was told by this result


@pytest.mark.req("SHL-14")
async def test_kill_ends_the_group_and_what_left_it(
    ctx: ToolContext, tasks: BackgroundTasks, marker: dict[str, str]
) -> None:
    await run(Args(command="setsid sleep 61 & sleep 62 & sleep 63", background=True), ctx)
    (info,) = tasks.tasks()
    assert len(family(marker=marker)) == 4
    killed = await kill_process.TOOL.run(kill_process.Args(process_id=info.id), ctx)
    assert killed.ok
    assert (killed.data or {})["state"] == "killed"
    assert family(marker=marker) == ()
    assert tasks.take_ended() == ()
    again = await kill_process.TOOL.run(kill_process.Args(process_id=info.id), ctx)
    assert "It had ended before." in again.text


@pytest.mark.req("SHL-14")
async def test_term_comes_first_and_kill_after_the_grace(tasks: BackgroundTasks, tmp_path: Path) -> None:
    assert GRACE_S == 5.0  # K25
    polite = await start(tasks, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    await until(lambda: "ready" in tasks.live(polite.id))
    ended = await tasks.kill(polite.id)
    assert (ended.state, ended.exit_code) == (ProcessState.KILLED, 0)
    assert (await tasks.tail(polite.id, 5)).endswith("bye")
    hasty = BackgroundTasks(root=tmp_path, marker={}, base=tmp_path / "o", grace_s=0.3)
    stubborn = await start(hasty, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    await until(lambda: "ready" in hasty.live(stubborn.id))
    began = time.monotonic()
    ended = await hasty.kill(stubborn.id)
    assert 0.3 <= time.monotonic() - began < 3
    assert (ended.state, ended.exit_code, ended.signal) == (ProcessState.KILLED, 137, 9)


async def test_p20_only_own_tasks_can_be_ended(ctx: ToolContext, tmp_path: Path) -> None:
    other = BackgroundTasks(root=ctx.root, marker={"OPENDEV_RUN": uuid.uuid4().hex}, base=tmp_path / "o")
    info = await start(other, "sleep 60")
    try:
        for id in (info.id, str(info.pid), "1", "-1"):
            with pytest.raises(OpenDevError, match="no background task") as caught:
                await kill_process.TOOL.run(kill_process.Args(process_id=id), ctx)
            assert caught.value.info.kind is ErrorKind.NOT_FOUND
        assert other.tasks()[0].state is ProcessState.RUNNING
    finally:
        await other.close()
    assert other.tasks()[0].state is ProcessState.KILLED


@pytest.mark.req("SHL-14")
async def test_the_end_of_the_run_ends_all_tasks(
    tasks: BackgroundTasks, marker: dict[str, str], tmp_path: Path
) -> None:
    for command in ("sleep 60", "trap '' TERM; sleep 61", "setsid sleep 62 & echo gone"):
        await start(tasks, command)
    await until(lambda: len(family(marker=marker)) >= 3)
    began = time.monotonic()
    await tasks.close()
    assert family(marker=marker) == ()
    assert time.monotonic() - began < 4
    with pytest.raises(OpenDevError, match="the run has ended"):
        await start(tasks, "true")


async def test_a_child_that_outlives_its_task_is_named(
    tasks: BackgroundTasks, marker: dict[str, str]
) -> None:
    info = await start(tasks, "sleep 60 & echo started")
    ended = await tasks.wait(info.id, 5)
    assert ended.state is ProcessState.COMPLETED
    assert len(ended.survivors) == 1
    await tasks.kill(info.id)
    assert family(marker=marker) == ()


@pytest.mark.req("SHL-08")
async def test_an_interrupt_or_a_cancel_during_start_up_ends_it(
    ctx: ToolContext, tasks: BackgroundTasks, marker: dict[str, str]
) -> None:
    shown: list[Event] = []
    token = InterruptToken()
    watched = replace(ctx, interrupt=token, emit=shown.append)
    work = asyncio.ensure_future(run(Args(command="echo uvicorn; sleep 60"), watched))
    await until(lambda: len(shown) == 1)  # it is past its start, and watched
    token.set("stop")
    result = await work
    assert result.error is not None
    assert result.error.kind is ErrorKind.CANCELLED
    watched = replace(ctx, emit=shown.append)
    work = asyncio.ensure_future(run(Args(command="echo uvicorn; sleep 60"), watched))
    await until(lambda: len(shown) == 2)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert family(marker=marker) == ()


async def test_a_start_that_is_cancelled_leaves_nothing(
    tasks: BackgroundTasks, marker: dict[str, str], changes: list[ProcessInfo]
) -> None:
    for pause in (0.0, 0.001, 0.003, 0.01):
        work = asyncio.ensure_future(start(tasks, "sleep 60"))
        await asyncio.sleep(pause)
        work.cancel()
        await asyncio.wait({work})
    await asyncio.sleep(0.2)
    async with asyncio.timeout(5):
        await tasks.close()
    assert family(marker=marker) == ()
    assert [info.state.value for info in changes].count("running") == len(tasks.tasks())


async def test_the_number_of_tasks_is_bounded(
    tasks: BackgroundTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RUNNING_MAX == 16
    monkeypatch.setattr(background, "RUNNING_MAX", 1)
    monkeypatch.setattr(background, "KNOWN_MAX", 3)
    ids: list[str] = []
    for _ in range(5):
        info = await start(tasks, "true")
        ids.append(info.id)
        await tasks.wait(info.id, 5)
    assert [info.id for info in tasks.tasks()] == ids[-3:]
    await start(tasks, "sleep 60")
    with pytest.raises(OpenDevError, match="1 background tasks run already") as caught:
        await start(tasks, "true")
    assert "End one by kill_process" in caught.value.info.hint


def test_the_output_file_is_bounded_and_keeps_its_end(tmp_path: Path) -> None:
    file = RollingFile(tmp_path / "x.output", cap=1_000)
    for number in range(500):
        file.write(f"line {number}\n".encode())
        assert file.path.stat().st_size <= 1_000 + 20
    data = file.tail()
    assert data.endswith(b"line 499\n")
    assert data.startswith(b"[earlier output was given up")
    file.release()
    file.write(b"late")
    assert file.tail() == b""
    with pytest.raises(FileExistsError):
        RollingFile(tmp_path / "x.output")


def test_the_output_folder_is_never_one_that_others_can_write(tmp_path: Path) -> None:
    own = f"-{os.getuid()}"
    base = tmp_path / "base"
    base.mkdir()
    base.chmod(0o777)
    assert task_folder(base, Path("/a/b")) == tmp_path / f"base{own}" / "a-b" / "tasks"
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert task_folder(link, Path("/")) == tmp_path / f"link{own}" / "root" / "tasks"
    (tmp_path / f"link{own}").chmod(0o777)
    with pytest.raises(OSError, match="open to others"):
        task_folder(link, Path("/"))


def test_old_output_files_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "FILES", 3)
    for number in range(5):
        file = task_folder(tmp_path, Path("/p")) / f"{number}.output"
        file.write_text("x")
        os.utime(file, (number, number))
    assert sorted(path.name for path in (tmp_path / "p" / "tasks").iterdir()) == [
        "2.output",
        "3.output",
        "4.output",
    ]


async def test_p13_progress_frames_collapse_in_the_tail(tasks: BackgroundTasks) -> None:
    frames = "import sys;[sys.stdout.write(chr(13)+str(i)+'%') for i in range(40000)];print(chr(10)+'DONE')"
    info = await start(tasks, f'python -c "{frames}"')
    await tasks.wait(info.id, 10)
    assert await tasks.tail(info.id, 100) == "39999%\nDONE"


async def test_a_command_that_cannot_start_is_a_readable_failure(
    tasks: BackgroundTasks, tmp_path: Path
) -> None:
    with pytest.raises(OpenDevError, match="could not be started"):
        await start(tasks, "echo \0")
    with pytest.raises(OpenDevError, match="does not exist"):
        await tasks.start("true", cwd=tmp_path / "gone", env={})
    assert tasks.tasks() == ()
    assert list((tmp_path / "opendev").rglob("*.output")) == []


async def test_without_a_task_manager_servers_run_in_front_and_the_tools_say_so(ctx: ToolContext) -> None:
    bare = replace(ctx, processes=None)
    assert (await run(Args(command="echo uvicorn"), bare)).ok
    asked = await run(Args(command="true", background=True), bare)
    assert asked.error is not None
    listed = await list_processes.TOOL.run(list_processes.Args(), bare)
    assert not listed.ok


@pytest.mark.req("SHL-02")
def test_ending_own_tasks_passes_where_killing_by_name_is_asked_about(ctx: ToolContext) -> None:
    gate = Gate(level=ApprovalLevel.SEMI_AUTO, mode=ctx.mode, root=ctx.root, scope=ctx.scope)
    assert gate.judge(kill_process.TOOL, kill_process.Args(process_id="abc1234")).decision == "allow"
    for command in ("pkill python", "rm -rf / --no-preserve-root"):
        judged = gate.judge(run_command.TOOL, Args(command=command, background=True))
        assert judged.decision != "allow"
    auto = Gate(level=ApprovalLevel.AUTO, mode=ctx.mode, root=ctx.root, scope=ctx.scope)
    assert auto.judge(run_command.TOOL, Args(command="sudo uvicorn x", background=True)).decision == "deny"


@pytest.mark.req("SHL-02")
async def test_a_rewritten_command_passes_the_block_list_again(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command.prepare("npx tool") == "yes | npx tool"

    def rewrite(command: str) -> str:
        return f"{command}; sudo true"

    monkeypatch.setattr(run_command, "prepare", rewrite)
    refused = await run(Args(command="touch made"), ctx)
    assert refused.error is not None
    assert refused.error.kind is ErrorKind.DENIED
    assert not (ctx.root / "made").exists()
