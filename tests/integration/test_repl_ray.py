"""A conversation whose agents are processes: turns, an interrupt, a model service that is killed, and nothing left (REPL-01, ACT-08)."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from opendev.actors.worker import RUN_MARK
from opendev.cli.repl.controller import converse
from opendev.cli.task import PromptOptions
from opendev.core.ops import Interrupt
from opendev.core.scope import Scope
from opendev.tools.shell.reap import family
from support.model_server import ModelServer, call, text
from support.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.soak]


def test_turns_in_processes(tmp_path: Path) -> None:
    """In a process of its own: a conversation starts and stops a Ray, and that of the other tests goes on."""
    done = subprocess.run([sys.executable, __file__, tmp_path], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3_000:]


async def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("OPENDEV_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENDEV_DISABLE_REMOTE_MODELS", "1")
    start = call("run_command", {"command": "echo up; sleep 300", "background": True})
    stuck = call("run_command", {"command": "touch begun; sleep 300"})
    replies = [
        start,
        text("It runs."),
        call("list_processes", {}),
        text("Still."),
        text("Again."),
        stuck,
        text("Back."),
    ]
    options = PromptOptions("", "text", "Main", None, "", Scope(), "", None, None, "ray", None, None)
    with ModelServer(replies) as server:
        for name, value in {**server.env(), "OPENDEV_MODEL": "openai/gpt-4o-mini"}.items():
            monkeypatch.setenv(name, value)
        async with converse(project, {"approval": "auto"}, options) as repl:
            await repl.submit("Start it.")
            await repl.turns.idle()
            assert repl.status().tasks == 1
            await repl.submit("Does it run?")
            await repl.turns.idle()
            assert server.seen[3].says("running")  # the same process had the second turn
            hub = await repl.room.ready()
            os.kill((await hub.model.ask("ping"))["pid"], signal.SIGKILL)
            await repl.submit("And now?")
            await repl.turns.idle()
            assert server.seen[4].says("Start it.")
            await repl.submit("Hang.")
            await until(lambda: (project / "begun").exists())
            await repl.act(Interrupt())
            await repl.turns.idle()
            await repl.submit("Are you there?")
            await repl.turns.idle()
            assert len(server.seen) == len(replies)
            run = repl.room.held.id
        assert family(marker={RUN_MARK: run}) == ()


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(turns(Path(sys.argv[1]), patch))
