"""The installed command under Ray: what it imports, where it listens, and that nothing is left of it when it is killed (ACT-09)."""

from pathlib import Path

import pytest
from opendev.tools.shell.reap import PROC
from support.command_line import marked
from support.swarm_cli import make_bench, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.slow]
DECOYS = ("httpx.py", "tools/__init__.py", "agents/__init__.py", "opendev.py", "pydantic.py", "ray.py")


@pytest.mark.req("ACT-09")
def test_a_demo_in_a_decoy_folder_stays_clean_and_on_loopback_and_leaves_nothing_when_it_is_killed(
    tmp_path: Path,
) -> None:
    bench = make_bench(tmp_path, {"README": "x\n"})
    for name in DECOYS:
        path = bench.repo / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(tmp_path / 'pwned')!r}, 'a').write(__name__)\n")
    process = bench.start("swarm", "demo", str(tmp_path / "demo"))
    wait_for(lambda: bench.events("tool_started"))
    worker = bench.events("agent_started")[0]["pid"]
    (run,) = bench.sandbox.runs()
    (session,) = bench.sessions()
    pids = marked(run)
    assert worker in pids
    assert len(pids) >= 6  # Ray's daemons, the main actor, the model service, workers
    assert (PROC / str(worker) / "cwd").readlink() == session / "e"
    assert (PROC / str(worker) / "stat").read_text().rpartition(")")[2].split()[16] == "0"  # niceness
    assert {address[-8:] for address in listening(pids)} == {"0100007F"}  # 127.0.0.1, as IPv4 or mapped
    process.kill()
    process.communicate()
    wait_for(lambda: marked(run) == [] and bench.sessions() == [], seconds=10)
    assert not (tmp_path / "pwned").exists()


def listening(pids: list[int]) -> set[str]:
    """Addresses (hex, as in /proc/net/tcp) on which these processes listen."""
    inodes: set[str] = set()
    for pid in pids:
        try:
            links = [str(fd.readlink()) for fd in (PROC / str(pid) / "fd").iterdir()]
        except OSError:
            continue  # it has ended
        inodes |= {link[8:-1] for link in links if link.startswith("socket:")}
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        for line in (PROC / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return found
