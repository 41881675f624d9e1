"""`opendev tools run`: the same gates as an agent's call, one JSON object, and nothing left running (P03)."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest
from opendev.tools.shell.reap import family, process_start
from support.waiting import until

from .conftest import CommandLine, Done

KEYS = ["ok", "text", "data", "error"]


def use(cli: CommandLine, name: str, *options: str, **arguments: Any) -> Done:
    return cli("tools", "run", name, "--args", json.dumps(arguments), *options)


def test_a_call_that_works(cli: CommandLine) -> None:
    (cli.project / "a.txt").write_text("hello\n")
    done = use(cli, "read_file", file_path="a.txt")
    body = done.json()
    assert (done.code, list(body), body["ok"], body["error"]) == (0, KEYS, True, None)
    assert "hello" in body["text"]
    assert done.out.count("\n") == 1
    assert list((cli.home / "scratch").iterdir()) == []


def test_a_call_that_fails(cli: CommandLine) -> None:
    done = use(cli, "read_file", file_path="missing.txt")
    body = done.json()
    assert (done.code, list(body), body["ok"]) == (1, KEYS, False)
    assert set(body["error"]) == {"kind", "message", "hint"}
    assert "missing.txt" in body["error"]["message"]


@pytest.mark.parametrize(
    ("name", "level", "arguments"),
    [
        ("run_command", "auto", {"command": "rm -rf /"}),
        ("run_command", "manual", {"command": "touch made.txt"}),
        ("write_file", "manual", {"file_path": "made.txt", "content": "x"}),
        ("read_file", "auto", {"file_path": "../outside.txt"}),
        ("write_file", "auto", {"file_path": ".git/config", "content": "x"}),
    ],
)
def test_a_call_that_is_refused(cli: CommandLine, name: str, level: str, arguments: Any) -> None:
    (cli.project.parent / "outside.txt").write_text("secret")
    done = use(cli, name, "--approve", level, **arguments)
    body = done.json()
    assert (done.code, list(body), body["ok"]) == (7, KEYS, False)
    assert body["error"]["kind"] in ("denied", "unanswered", "scope")
    assert "secret" not in done.out
    assert list(cli.project.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nope",), "no tool `nope`"),
        (("read_file", "--args", "{"), "--args is not JSON"),
        (("read_file", "--args", "[]"), "one JSON object"),
        (("read_file", "--approve", "yolo"), "yolo"),
        ((), "name"),
    ],
)
def test_wrong_usage(cli: CommandLine, arguments: tuple[str, ...], told: str) -> None:
    done = cli("tools", "run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err.lower() or told in done.err


def test_wrong_arguments_of_a_tool_are_a_failure_that_names_them(cli: CommandLine) -> None:
    done = use(cli, "read_file", path_of_file="a.txt")
    assert (done.code, done.json()["ok"]) == (1, False)
    assert "file_path" in done.json()["error"]["message"]


@pytest.mark.slow
def test_what_a_command_leaves_running_is_ended_and_listed(cli: CommandLine) -> None:
    command = "setsid sh -c 'echo $$ > pid; sleep 300' & sleep 0.3; echo started"
    done = use(cli, "run_command", "--approve", "auto", command=command)
    assert done.code == 0
    pid = int((cli.project / "pid").read_text())
    assert process_start(pid) is None
    assert f"left running: {pid}" in done.err
    assert done.json()["data"]["survivors"][0] == pid


@pytest.mark.slow
async def test_sigterm_ends_the_command_and_its_children(cli: CommandLine) -> None:
    mark = {"MARK_OF_TEST": cli.project.parent.name}
    arguments = json.dumps({"command": "setsid sleep 300 & touch begun; sleep 300"})
    words = ("tools", "run", "run_command", "--approve", "auto", "--args", arguments)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from opendev.cli.entry import main; main()", *words),
        cwd=cli.project,
        env={**os.environ, **mark},  # noqa: TID251 - a test's own process
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await until(lambda: (cli.project / "begun").exists() or process.returncode is not None)
        assert process.returncode is None, await process.communicate()
        assert len(await asyncio.to_thread(family, marker=mark)) >= 3
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(20):
                await process.communicate()
    assert process.returncode == 130
    assert family(marker=mark) == ()
