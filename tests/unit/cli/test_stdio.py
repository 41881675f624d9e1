"""The user's streams stay clean while noise goes to the log, and they are put back however the run ends (ray.md rule 3)."""

import io
import os
import pty
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from opendev.cli.stdio import own_stdio

PROGRAM = """
import os, subprocess, sys
from pathlib import Path
from rich.console import Console
from opendev.cli.stdio import own_stdio
try:
    with own_stdio() as stdio:
        with stdio.diverted(Path(sys.argv[1])):
            print("stray print")
            os.write(2, b"stray write\\n")
            subprocess.run(["echo", "stray child"])
            stdio.out.write(f"real out {Console(file=stdio.err).is_terminal}\\n")
            stdio.err.write("real err\\n")
            if sys.argv[2] == "fail":
                raise ValueError
except ValueError:
    print("failed", flush=True)
os.write(1, b"after\\n")
"""


def told(log: Path, ending: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(log), ending], capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize(("ending", "rest"), [("well", "after\n"), ("fail", "failed\nafter\n")])
def test_every_stray_write_is_in_the_log_and_the_fds_come_back(
    tmp_path: Path, ending: str, rest: str
) -> None:
    log = tmp_path / "run" / "x.log"
    done = told(log, ending)
    assert (done.stdout, done.stderr) == (f"real out False\n{rest}", "real err\n")
    assert sorted(log.read_text().splitlines()) == ["stray child", "stray print", "stray write"]
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_terminal_is_still_one(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "x.log"), "well"]
    env = {"PATH": os.defpath, "TERM": "xterm"}
    subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode().replace("\r\n", "\n")
    os.close(ours)
    assert shown == "real out True\nreal err\nafter\n"


def test_buffers_in_place_of_the_streams_are_used_as_they_are(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), own_stdio() as stdio, stdio.diverted(tmp_path / "x.log"):
        stdio.out.write("one")
        stdio.err.write("two")
    assert (out.getvalue(), err.getvalue()) == ("one", "two")
    assert not out.closed
