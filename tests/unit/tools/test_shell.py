"""The shell on real processes: time limits, survivors, kills that leave nothing, quiet children (group 4 of the cases)."""

# pyright: reportPrivateUsage=false

import asyncio
import json
import os
import re
import shlex
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ports import CommandResult
from opendev.tools.shell.output import OutputBuffer
from opendev.tools.shell.process import LOGS_KEPT, PUMPS_KEPT, ProcessShell
from opendev.tools.shell.pump import Pump
from opendev.tools.shell.reap import Proc, family, kill_marked, process_start, send

ENV = {"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}


@pytest.fixture
def marker() -> dict[str, str]:
    return {"OPENDEV_RUN": uuid.uuid4().hex, "OPENDEV_AGENT": "a1"}


@pytest.fixture
async def shell(tmp_path: Path, marker: dict[str, str]) -> AsyncIterator[ProcessShell]:
    made = ProcessShell(log_dir=tmp_path / "logs", marker=marker)
    yield made
    await kill_marked(marker)
    await made.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def go(
    shell: ProcessShell, command: str, cwd: Path, *, idle_s: float = 60, total_s: float = 5
) -> CommandResult:
    return await shell.run(command, cwd=cwd, env=ENV, idle_s=idle_s, total_s=total_s)


@pytest.mark.req("SHL-09")
async def test_exit_code_and_both_streams_come_back(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "echo out; echo err >&2; exit 3", work)
    assert (result.exit_code, result.signal, result.ended) == (3, None, "exit")
    assert result.text == "out\nerr\n"
    assert (result.log, result.survivors, result.omitted_bytes) == ("", (), 0)


@pytest.mark.req("LOOP-18")
@pytest.mark.slow
@pytest.mark.req("SHL-07")
async def test_p01_a_time_limit_ends_the_whole_group(
    shell: ProcessShell, work: Path, marker: dict[str, str]
) -> None:
    command = "mkfifo p; (while true; do echo child; sleep 1; done) > p & cat p"
    result = await go(shell, command, work, total_s=1.2)
    assert (result.ended, result.exit_code) == ("total", None)
    assert "child" in result.text
    assert result.wall_s < 3.2
    assert family(marker=marker) == ()


@pytest.mark.req("SHL-07")
async def test_silence_ends_the_command(shell: ProcessShell, work: Path, marker: dict[str, str]) -> None:
    result = await go(shell, "echo first; sleep 30", work, idle_s=0.5, total_s=20)
    assert (result.ended, result.text) == ("idle", "first\n")
    assert family(marker=marker) == ()


@pytest.mark.slow
async def test_output_puts_the_idle_limit_off(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.25; done", work, idle_s=1.0)
    assert (result.ended, result.exit_code) == ("exit", 0)


@pytest.mark.slow
async def test_p03_a_limit_also_ends_what_left_the_group(
    shell: ProcessShell, work: Path, marker: dict[str, str]
) -> None:
    command = (
        "setsid sh -c 'sleep 300' & setsid -f sleep 301; nohup sleep 302 >/dev/null 2>&1 & "
        "env -i setsid sleep 303 & sh -c 'trap \"\" TERM; sleep 304' & sleep 300"
    )
    result = await go(shell, command, work, total_s=0.7)
    assert result.ended == "total"
    assert family(marker=marker) == ()
    assert _running("sleep 30[0-4]") == []


def _running(pattern: str) -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                )
            except OSError:
                continue
            if re.fullmatch(pattern, line):
                found.append(line)
    return found


async def test_p03_the_end_of_a_session_ends_what_a_command_left(
    shell: ProcessShell, work: Path, marker: dict[str, str]
) -> None:
    result = await go(shell, "setsid sh -c 'sleep 300' & echo started", work)
    assert result.text == "started\n"
    assert result.survivors
    assert set(await kill_marked(marker)) >= set(result.survivors)
    assert all(process_start(pid) is None for pid in result.survivors)


async def test_p05_a_background_child_does_not_hold_the_call(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "sleep 60 & echo ready", work, total_s=10)
    assert (result.exit_code, result.ended, result.text) == (0, "exit", "ready\n")
    assert result.wall_s < 2
    (pid,) = result.survivors
    assert process_start(pid) is not None


async def test_a_background_child_can_go_on_writing(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "(sleep 0.6; echo late; sleep 0.1; touch done) & echo ready", work)
    assert result.survivors
    for _ in range(60):
        if (work / "done").exists():
            break
        await asyncio.sleep(0.05)
    assert (work / "done").exists()  # no SIGPIPE
    (log,) = (work.parent / "logs").iterdir()
    assert (str(log), log.read_text()) == (result.log, "ready\nlate\n")
    assert result.text == "ready\n"


@pytest.mark.parametrize(
    "command",
    [
        "read -p 'name? ' x; echo got=$x",
        "cat",
        "python3 -c \"input('y/n ')\"",
        "git -c credential.helper= ls-remote https://127.0.0.1:9/x",
        "cat /dev/tty",
        "git commit --allow-empty",
    ],
)
async def test_p07_nothing_waits_for_a_person(shell: ProcessShell, work: Path, command: str) -> None:
    result = await go(shell, command, work)
    assert result.ended == "exit"
    assert result.wall_s < 4


@pytest.mark.slow
@pytest.mark.parametrize("command", ["git log", "git diff HEAD~1", "git branch -a", "git commit --amend"])
async def test_p09_no_pager_and_no_editor(shell: ProcessShell, work: Path, command: str) -> None:
    setup = (
        "git init -q . && git config user.email a@b && git config user.name n && git config core.pager less && "
        "git config core.editor vi && for i in 1 2 3 4 5 6 7 8 9; do echo $i > f; git add f; git commit -qm c$i; done"
    )
    assert (await go(shell, setup, work)).exit_code == 0
    result = await go(shell, command, work)
    assert result.ended == "exit"
    assert result.text


@pytest.mark.slow
@pytest.mark.req("SHL-06")
async def test_p11_a_flood_is_bounded_in_memory_and_on_disk(tmp_path: Path) -> None:
    """Measured in a process of its own, for the peak of this one says nothing."""
    script = tmp_path / "flood.py"
    script.write_text(
        "import asyncio, json, os, resource, sys\n"
        "from pathlib import Path\n"
        "from opendev.tools.shell.process import ProcessShell\n"
        "async def main():\n"
        "    shell = ProcessShell(log_dir=Path(sys.argv[1]), marker={})\n"
        "    await shell.run('true', cwd=Path('/'), env={'PATH': '/usr/bin:/bin'}, idle_s=9, total_s=9)\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    r = await shell.run('yes | head -c 300000000', cwd=Path('/'), env={'PATH': '/usr/bin:/bin'}, idle_s=9, total_s=60)\n"
        "    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    print(json.dumps([after - before, r.omitted_bytes, len(r.text), os.path.getsize(r.log), r.ended]))\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, tmp_path / "logs", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    grown_kb, omitted, chars, logged, ended = json.loads(out)
    assert ended == "exit"
    assert omitted == 300_000_000 - 20_000
    assert chars < 20_100
    assert logged < 20_000_200
    assert grown_kb < 50_000


async def test_p13_progress_frames_collapse_before_the_limit(shell: ProcessShell, work: Path) -> None:
    code = "import sys;[sys.stdout.write('\\r%d%%'%i) for i in range(40000)];print('\\nDONE')"
    result = await go(shell, f"python3 -c {shlex.quote(code)}", work)
    assert result.text == "39999%\nDONE\n"


async def test_p17_signals_are_reported_as_such(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "kill -9 $$", work)
    assert (result.exit_code, result.signal, result.ended) == (137, 9, "exit")


async def test_p18_split_and_broken_characters(shell: ProcessShell, work: Path) -> None:
    env = {**ENV, "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = (
        "printf 'ok \\xe2\\x9c\\x93 caf\\xe9 \\xff\\n'; printf '\\xe2\\x9c'; sleep 0.2; printf '\\x93\\n'"
    )
    result = await shell.run(command, cwd=work, env=env, idle_s=5, total_s=5)
    assert result.text == "ok ✓ caf\ufffd \ufffd\n✓\n"


async def test_p24_binary_data_is_counted(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "echo before; head -c 200 /dev/urandom; echo after", work)
    assert result.text.startswith("before\n")
    assert "after\n" in result.text
    assert "\x00" not in result.text


async def test_p20_the_agent_itself_is_never_a_target(marker: dict[str, str], tmp_path: Path) -> None:
    """A driver that holds the marker, in the middle of a marked family, ends its child and lives on."""
    script = tmp_path / "driver.py"
    script.write_text(
        "import asyncio, subprocess, sys\n"
        "from opendev.tools.shell.reap import kill_marked\n"
        f"marker = {marker!r}\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        "killed = asyncio.run(kill_marked(marker))\n"
        "print(killed == (child.pid,), child.wait())\n"
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", f"{command}; echo parent alive", env={**ENV, **marker}, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode() == f"True {-signal.SIGTERM}\nparent alive\n"


async def test_p23_a_removed_folder_is_a_readable_error(shell: ProcessShell, work: Path) -> None:
    result = await go(shell, "mkdir d && cd d && rm -rf ../d && pwd -P; echo end", work)
    assert result.text.endswith("end\n")
    assert (await go(shell, "pwd", work)).text == f"{work}\n"
    with pytest.raises(OpenDevError) as caught:
        await go(shell, "pwd", work / "d")
    assert caught.value.info.kind is ErrorKind.NOT_FOUND
    assert str(work / "d") in str(caught.value)


@pytest.mark.parametrize("command", ["echo a\0b", "echo " + "x" * 3_000_000, "echo \ud800"])
async def test_a_command_that_cannot_start_is_a_readable_error(
    shell: ProcessShell, work: Path, command: str
) -> None:
    with pytest.raises(OpenDevError) as caught:
        await go(shell, command, work)
    assert caught.value.info.kind is ErrorKind.TOOL


@pytest.mark.req("SHL-08")
async def test_cancelling_returns_when_everything_is_dead(
    shell: ProcessShell, work: Path, marker: dict[str, str]
) -> None:
    task = asyncio.ensure_future(go(shell, "setsid sleep 300 & sleep 300", work))
    for _ in range(100):
        if len(family(marker=marker)) >= 2:
            break
        await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # a second cancellation must not cut the end short
    with pytest.raises(asyncio.CancelledError):
        await task
    assert family(marker=marker) == ()


async def test_cancelling_at_any_moment_of_the_start_leaves_nothing(
    shell: ProcessShell, work: Path, marker: dict[str, str]
) -> None:
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for wait in (0, 0, 0.0005, 0.001, 0.002, 0.004):
        task = asyncio.ensure_future(go(shell, "setsid sleep 300 & sleep 300", work))
        await asyncio.sleep(wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert family(marker=marker) == ()
    assert len(os.listdir("/proc/self/fd")) == files  # noqa: PTH208


async def test_the_child_sees_nothing_of_this_process(
    shell: ProcessShell, work: Path, marker: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = await go(shell, "env", work)
    seen = dict(line.split("=", 1) for line in result.text.splitlines())
    assert "OPENAI_API_KEY" not in seen
    assert {key: seen[key] for key in marker} == marker
    assert (seen["PAGER"], seen["GIT_TERMINAL_PROMPT"], seen["PYTHONUNBUFFERED"]) == ("cat", "0", "1")


@pytest.mark.req("LOOP-18")
async def test_own_session_is_announced(tmp_path: Path, work: Path) -> None:
    groups: list[int] = []
    shell = ProcessShell(log_dir=tmp_path / "logs", marker={}, on_group=groups.append)
    result = await go(shell, "ps -o pgid=,sid= -p $$ 2>/dev/null || cut -d' ' -f5,6 /proc/$$/stat", work)
    assert result.text.split() == [str(groups[0])] * 2
    assert groups[0] != os.getpgid(0)


async def test_output_is_passed_on_while_it_runs(shell: ProcessShell, work: Path) -> None:
    pieces: list[tuple[float, str]] = []
    started = time.monotonic()
    await shell.run(
        "echo one; sleep 0.5; echo two",
        cwd=work,
        env=ENV,
        idle_s=5,
        total_s=5,
        on_output=lambda text: pieces.append((time.monotonic() - started, text)),
    )
    assert [text for _, text in pieces] == ["one\n", "two\n"]
    assert pieces[0][0] < 0.4


async def test_logs_and_pipes_are_bounded(tmp_path: Path, work: Path, marker: dict[str, str]) -> None:
    shell = ProcessShell(log_dir=tmp_path / "logs", marker=marker, keep=(1, 1, 2))
    for _ in range(LOGS_KEPT + 3):
        await go(shell, "echo long enough", work)
    assert len(list((tmp_path / "logs").iterdir())) == LOGS_KEPT
    reader, writer = os.pipe()
    os.close(writer)
    for _ in range(PUMPS_KEPT + 2):
        pump = Pump(os.dup(reader), OutputBuffer(), None, 1)
        shell._leave_running(pump)
        pump._stopping.set()
        pump.start()
    assert len(shell._pumps) <= PUMPS_KEPT
    os.close(reader)
    await shell.close()


async def test_a_reused_pid_is_never_signalled() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "30")
    start = process_start(process.pid)
    assert start is not None
    other = Proc(pid=process.pid, start=start - 1, parent=0, group=0, session=0)
    assert send(other, signal.SIGKILL) is False
    assert process_start(process.pid) == start
    process.kill()
    await process.wait()


async def test_an_empty_marker_ends_nothing() -> None:
    with pytest.raises(OpenDevError):
        await kill_marked({})
