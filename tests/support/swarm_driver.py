"""A driver process for crash tests: runs (or resumes) a batch and is killed after the n-th journal record.

``python -m support.swarm_driver REPO HOME CRASH_AFTER``; 0 = to the end. Each agent run appends its ticket to ``HOME/ran``.
"""

import asyncio
import sys
from pathlib import Path

from opendev.core.agent import AgentTask
from opendev.core.ticket import RunReport
from opendev.swarm.control import load_run
from support.fake_swarm import Bench, FakeAgents, plan

TICKETS = plan(
    {"id": "one", "verify": "test -f one.txt", "scope": ["one.txt"], "attempts": 3},
    {"id": "two", "depends_on": ["one"], "scope": ["two.txt"], "attempts": 3},
    verify="true",
    concurrency=1,
)


async def drive(repo: Path, home: Path, crash_after: int) -> RunReport:
    """Run or resume; the report, if the process lives to see it."""

    def deed(task: AgentTask) -> None:
        ticket = FakeAgents.ticket_of(task)
        with (home / "ran").open("a") as file:
            file.write(f"{ticket}\n")
        Path(task.root, f"{ticket}.txt").write_text("done\n")

    bench = Bench(repo, home, dict.fromkeys(("one", "two"), deed))
    past = load_run(bench.run_dir) if (bench.run_dir / "journal.jsonl").exists() else None
    return await bench.swarm(TICKETS, past=past, crash_after=crash_after or None).run()


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(drive(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))).to_json())
