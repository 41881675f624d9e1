"""The installed command under Ray: a driver that is killed leaves nothing behind (ACT-09)."""

from pathlib import Path

import pytest
from support.command_line import marked
from support.swarm_cli import make_bench, wait_for

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.mark.req("ACT-09")
def test_a_demo_that_is_killed_leaves_no_process_and_no_session_folder(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    process = bench.start("swarm", "demo", str(tmp_path / "demo"))
    wait_for(lambda: bench.events("agent_started"))
    (run,) = bench.sandbox.runs()
    assert len(marked(run)) >= 6  # Ray's daemons, the main actor, the model service, a worker
    assert len(bench.sessions()) == 1
    process.kill()
    process.communicate()
    wait_for(lambda: marked(run) == [] and bench.sessions() == [], seconds=8)
