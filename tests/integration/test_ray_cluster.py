"""Joining an existing cluster: the work is done on this node, nothing of others is touched, refusals are plain (ACT-11, T-15)."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ray_cluster import Cluster, running_cluster
from support.repos import fingerprint
from support.swarm_cli import Bench, make_bench, put, sh, task, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.slow]
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="odc", dir="/tmp", ignore_cleanup_errors=True) as place,
        running_cluster(Path(place)) as made,
    ):
        yield made


@pytest.fixture
def bench(cluster: Cluster, tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    made.sandbox.env |= cluster.env
    return made


@pytest.mark.req("ACT-11")
@pytest.mark.req("ACT-10")
@pytest.mark.soak
def test_a_swarm_with_a_killed_worker_leaves_streams_cluster_and_other_drivers_as_they_were(
    cluster: Cluster, bench: Bench, tmp_path: Path
) -> None:
    decoy = tmp_path / "decoy"
    decoy.mkdir()
    (decoy / "httpx.py").write_text("raise SystemExit('imported the decoy')\n")
    other = subprocess.Popen(
        [sys.executable, "-m", "support.ray_cluster", cluster.address, "otherrun"],
        cwd=decoy,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "PYTHONPATH": str(TESTS), **cluster.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    found = json.loads(other.stdout.readline())
    assert str(decoy) not in found["path"]
    before = {p.pid for p in cluster.processes}
    assert found["pid"] in before

    file = bench.tickets(
        task("hit", sh("sleep 1.5"), put("one.py", "ONE = 1\n"), attempts=2),
        task("two", put("two.py", "TWO = 2\n")),
    )
    options = ("--output", "json", "--address", cluster.address)
    process = bench.start("swarm", "run", str(file), *options)
    wait_for(lambda: any(row["tool"] == "run_command" for row in bench.events("tool_started")))
    os.kill(next(r["pid"] for r in bench.events("agent_started") if r["task"] == "hit"), signal.SIGKILL)
    done = bench.wait(process)
    assert done.code == 0, done
    assert done.statuses == {
        "hit": "merged",
        "two": "merged",
    }  # standard output is the report and nothing else
    assert done.run.tasks[0].attempts == 2
    noise = ("ray::", "raylet", "ActorDied", "Traceback", "core_worker")
    assert [word for word in noise if word in done.stderr] == []
    log = bench.home / "runs" / done.run.run_id / "runtime.log"
    assert "worker died" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    pids = done.run.agents.pids
    assert len(set(pids)) >= 2
    assert not {process.pid, other.pid} & set(pids)
    bench.assert_tidy(fingerprint(bench.repo))
    assert before <= {p.pid for p in cluster.processes}

    told, _ = other.communicate("\n", timeout=30)
    assert (json.loads(told), other.returncode) == ("still here", 0)


@pytest.mark.req("ACT-11")
@pytest.mark.parametrize("fault", ["address", "token", "no token", "version"])
@pytest.mark.soak
def test_a_cluster_that_cannot_be_joined_is_told_in_a_sentence_and_in_bounded_time(
    cluster: Cluster, bench: Bench, tmp_path: Path, fault: str
) -> None:
    bad = tmp_path / "bad"
    bad.write_text("ab" * 32)
    address, said = cluster.address, "did not let this process in"
    match fault:
        case "address":
            address, said = "127.0.0.1:1", "nothing listens there"
        case "token":
            bench.sandbox.env["RAY_AUTH_TOKEN_PATH"] = str(bad)
        case "no token":
            bench.sandbox.env["RAY_AUTH_TOKEN_PATH"] = str(tmp_path / "none")
            said = "wants a token"
        case _:
            (tmp_path / "sitecustomize.py").write_text("import ray\nray.__version__ = '2.59.0'\n")
            bench.sandbox.env["PYTHONPATH"] = str(tmp_path)
            bench.sandbox.env["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = (
                "0"  # Ray is imported before we can say it
            )
            said = "other versions of Ray or Python"
    began = time.monotonic()
    done = bench.run(task("one", put("one.py", "ONE = 1\n")), options=("--address", address), runtime="ray")
    assert time.monotonic() - began < 30
    assert done.code == 6, done
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"opendev: Could not join the Ray cluster at {address}: ")
    assert said in done.stderr
