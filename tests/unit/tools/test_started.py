"""A start with pipes that is cancelled: nothing is left, and nobody waits for a child that holds the pipes (P01, X07)."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from opendev.tools.child import run_lines
from opendev.tools.lsp.client import LspClient
from opendev.tools.mcp.stdio import ServerProcess
from opendev.tools.shell.reap import family
from support.waiting import until

# The child holds the pipes for a minute, whatever becomes of its parent.
ARGV = ["/bin/sh", "-c", "sleep 61 & sleep 61"]
Start = Callable[[Path, dict[str, str]], Coroutine[Any, Any, object]]


def _helper(cwd: Path, env: dict[str, str]) -> Coroutine[Any, Any, object]:
    return run_lines(ARGV, cwd=cwd, env=env, on_line=lambda _line: True, timeout_s=60)


def _mcp(cwd: Path, env: dict[str, str]) -> Coroutine[Any, Any, object]:
    return ServerProcess.start(ARGV, env=env, cwd=str(cwd))


def _language(cwd: Path, env: dict[str, str]) -> Coroutine[Any, Any, object]:
    return LspClient.start(tuple(ARGV), env=env, cwd=cwd, answer=lambda _method, _params: None)


@pytest.mark.slow
@pytest.mark.req("SHL-08")
@pytest.mark.parametrize("start", [_helper, _mcp, _language])
async def test_a_start_is_cancelled_at_any_moment(start: Start, tmp_path: Path) -> None:
    for moment in (1, 3, 5):  # loop turns after which asyncio is in the middle of it
        marker = {"OPENDEV_TEST": f"started-{os.getpid()}-{moment}"}
        task = asyncio.ensure_future(start(tmp_path, {"PATH": "/usr/bin:/bin", **marker}))
        for _ in range(moment):
            await asyncio.sleep(0)
        if task.done():  # it was quicker: what it gave is not half-made
            made = task.result()
            assert isinstance(made, ServerProcess | LspClient)
            await made.stop()
            continue
        task.cancel()
        async with asyncio.timeout(10):
            with pytest.raises(asyncio.CancelledError):
                await task
        await until(lambda marker=marker: family(marker=marker) == (), 5)


@pytest.mark.req("SHL-08")
async def test_a_helper_whose_child_left_its_group_is_not_waited_for(tmp_path: Path) -> None:
    argv = ["/bin/sh", "-c", "setsid sleep 4 & echo one; exec sleep 4"]
    lines: list[bytes] = []

    def first(line: bytes) -> bool:
        lines.append(line)
        return False

    async with asyncio.timeout(2):
        await run_lines(argv, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, on_line=first, timeout_s=10)
    assert lines == [b"one\n"]
