"""The janitor: whatever kills the driver, nothing that carries its marker stays (P03, ray.md 7 and 15)."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from opendev.actors.janitor_pipe import SCRIPT, Janitor
from opendev.core.errors import OpenDevError
from opendev.tools.shell.reap import family, process_start, send

DRIVER = """
import json, os, subprocess, sys, time
from pathlib import Path
from opendev.actors.janitor_pipe import Janitor
marker, prefix, how = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
janitor = Janitor()
begun = time.monotonic()
janitor.start(marker, prefix)
took = time.monotonic() - begun
for name in ("a", "../outside"):
    janitor.remove_on_exit(prefix / name)
shell = "setsid sleep 300 & nohup sleep 300 >/dev/null 2>&1 & sh -c 'trap \\"\\" TERM; sleep 300' & setsid -f sleep 300; echo up"
child = subprocess.Popen(["bash", "-c", shell], env={**os.environ, **marker}, stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
time.sleep(0.3)
print(json.dumps({"took": took}), flush=True)
if how == "kill":
    os.kill(os.getpid(), 9)
janitor.close(clean=how == "clean")
"""


@pytest.fixture
def marker() -> Iterator[dict[str, str]]:
    made = {"OPENDEV_RUN": uuid.uuid4().hex}
    yield made
    for one in family(marker=made):
        send(one, signal.SIGKILL)


def drive(
    tmp_path: Path, marker: dict[str, str], how: str
) -> tuple[subprocess.CompletedProcess[bytes], Path]:
    prefix = tmp_path / "prefix"
    (prefix / "a" / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(marker), prefix, how],
        stdout=subprocess.PIPE,
        timeout=30,
        check=False,
    )
    return done, prefix


def wait_until_none(marker: dict[str, str], seconds: float = 8.0) -> int:
    for _ in range(int(seconds / 0.05)):
        if not family(marker=marker):
            return 0
        _pause()
    return len(family(marker=marker))


def _pause() -> None:
    signal.sigtimedwait([], 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "dirty"])
def test_nothing_marked_outlives_a_driver(tmp_path: Path, marker: dict[str, str], how: str) -> None:
    done, prefix = drive(tmp_path, marker, how)
    assert done.returncode == (-signal.SIGKILL if how == "kill" else 0)
    assert wait_until_none(marker) == 0
    for _ in range(100):
        if not (prefix / "a").exists():
            break
        _pause()
    assert not (prefix / "a").exists()
    assert prefix.exists()
    assert (tmp_path / "outside").exists()  # not below the prefix


@pytest.mark.slow
def test_a_clean_end_kills_and_removes_nothing(tmp_path: Path, marker: dict[str, str]) -> None:
    done, prefix = drive(tmp_path, marker, "clean")
    assert done.returncode == 0
    for _ in range(20):
        _pause()
    assert len(family(marker=marker)) >= 4
    assert (prefix / "a").exists()


def _janitors(value: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and value.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_it_is_small_quick_unrelated_and_invisible_to_sweeps(tmp_path: Path, marker: dict[str, str]) -> None:
    janitor = Janitor()
    begun = time.monotonic()
    janitor.start(marker, tmp_path)
    took = time.monotonic() - begun
    try:
        pids: list[int] = []
        for _ in range(40):
            pids = _janitors(marker["OPENDEV_RUN"])
            if len(pids) == 1:
                break
            _pause()
        (pid,) = pids
        status = Path(f"/proc/{pid}/status").read_text()
        resident_kb = int(status.split("RssAnon:")[1].split()[0])
        assert resident_kb < 10_000
        assert took < 1.0  # 100 ms on an idle machine
        assert os.getsid(pid) != os.getsid(0)
        assert int(status.split("PPid:")[1].split()[0]) != os.getpid()
        assert pid not in {one.pid for one in family(marker=marker)}
        os.kill(pid, signal.SIGTERM)  # a sweep of an outer run, a logout
        _pause()
        assert process_start(pid) is not None
    finally:
        janitor.close(clean=True)
    for _ in range(60):
        if not _janitors(marker["OPENDEV_RUN"]):
            break
        _pause()
    assert _janitors(marker["OPENDEV_RUN"]) == []


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    for bad in ({}, {"A": ""}, {"A": "1", "B": "2"}):
        with pytest.raises(OpenDevError):
            Janitor().start(bad, tmp_path)
    with pytest.raises(OpenDevError):
        Janitor().start({"A": "1"}, Path("relative"))
    with pytest.raises(OpenDevError):
        Janitor().remove_on_exit(Path("/a\ndone"))
    done = subprocess.run([sys.executable, "-S", "-E", SCRIPT, "ONLY"], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"usage" in done.stderr
