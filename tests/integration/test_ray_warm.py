"""`opendev runtime`: one Ray for many runs; its end takes everything it started and nothing else (ACT-11)."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from opendev.actors import warm
from opendev.tools.shell.reap import family
from support.swarm_cli import Bench, make_bench, put, task, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.soak]
KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    made.sandbox.env["OPENAI_API_KEY"] = KEY
    yield made
    made.opendev("runtime", "stop")


def keeper(bench: Bench) -> int:
    return int(json.loads((bench.home / "runtime.json").read_text())["pid"])


def environment(pid: int) -> dict[str, str]:
    rows = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(row.split("=", 1) for row in rows if "=" in row)


def mark_of(pid: int) -> dict[str, str]:
    """What the processes of this keeper carry: found among its descendants."""
    marks = {
        found.pid: environment(found.pid).get("OPENDEV_RUN", "") for found in family(group=os.getpgid(pid))
    }
    return {"OPENDEV_RUN": next(mark for mark in marks.values() if mark.startswith("warm-"))}


@pytest.mark.req("ACT-11")
def test_runs_share_a_ray_that_is_kept_warm_and_stop_ends_it_all(bench: Bench) -> None:
    assert "not kept warm" in bench.opendev("runtime", "status").stdout
    assert bench.opendev("runtime", "start").code == 0
    pid = keeper(bench)
    assert "kept warm at 127.0.0.1:" in bench.opendev("runtime", "start").stdout
    assert keeper(bench) == pid  # the second start finds it
    mark = mark_of(pid)
    assert [found.pid for found in family(marker=mark) if KEY in environment(found.pid).values()] == []
    for name in ("one", "two"):
        file = bench.tickets(task(name, put(f"{name}.py", "N = 1\n")), into=f"swarm/{name}")
        process = bench.start("swarm", "run", str(file), "--output", "json")
        wait_for(lambda: warm.in_use(bench.home))
        done = bench.wait(process)
        assert (done.code, done.statuses) == (0, {name: "merged"})
        assert family(marker={"OPENDEV_RUN": done.run.run_id}) == ()
    assert keeper(bench) == pid
    assert "ends after 30 min" in bench.opendev("runtime", "status").stdout
    assert bench.opendev("runtime", "stop").code == 0
    assert family(marker=mark) == ()
    assert not (bench.home / "runtime.json").exists()
    assert "not kept warm" in bench.opendev("runtime", "status").stdout


@pytest.mark.req("ACT-11")
def test_it_ends_unused_and_with_its_keeper(bench: Bench) -> None:
    assert bench.opendev("runtime", "start", "--idle", "0.01").code == 0
    wait_for(lambda: "not kept warm" in bench.opendev("runtime", "status").stdout)
    assert bench.opendev("runtime", "start").code == 0
    pid = keeper(bench)
    mark = mark_of(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: family(marker=mark) == ())
    assert "not kept warm" in bench.opendev("runtime", "status").stdout
