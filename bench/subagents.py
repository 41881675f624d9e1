#!/usr/bin/env python3
"""Measures what sub-agents keep out of the main context (N-23): tokens of tool output they read against tokens that come back.

    bench/subagents.py [--agents 5] [--turns 14]

Each is a Code-Explorer that takes read-only steps on this repository by the real loop and tools; its model is scripted and ends
with a report of about 250 words. What comes back is the result of ``spawn_subagent`` exactly as the calling model gets it.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from opendev.context.pressure import estimate, message_tokens
from opendev.core.chat import ToolMessage
from opendev.tools.subagent_result import CAP, render
from traces import make_context, plan, record, split

AGENT = "Code-Explorer"
READS = frozenset({"read_file", "search", "list_files", "find_symbol"})
REPORT = "\n".join(
    f"- {n}. agents/react.py:{n * 7} calls the stage {n}; what it needs is made in agents/assembly.py"
    for n in range(24)
)


async def measure(agents: int, turns: int) -> str:
    """A table, one row an agent."""
    rows = [
        "| Agent | turns | tool output read inside | input tokens of all its calls | returned | kept out |"
    ]
    rows.append("|---|---|---|---|---|---|")
    total_inside = total_back = 0
    with tempfile.TemporaryDirectory(prefix="opendev-bench-") as name:
        for number in range(agents):
            folder = Path(name) / str(number)
            await asyncio.to_thread(folder.mkdir)
            steps = [step for step in plan(8 * turns, number) if step.name in READS][:turns]
            messages, report, model = await record(folder, steps, AGENT, REPORT)
            inside = sum(message_tokens(m) for m in split(messages)[1] if isinstance(m, ToolMessage))
            spent = sum(estimate(r.messages, r.tools) for r in model.requests)
            result = render(report, make_context(folder))
            back = message_tokens(ToolMessage(call_id="s", name="spawn_subagent", content=result.text))
            total_inside, total_back = total_inside + inside, total_back + back
            rows.append(
                f"| {number + 1} ({report.status.value}) | {report.turns} | {inside:,} | {spent:,} | {back:,} | {1 - back / inside:.1%} |"
            )
    rows.append(f"| all | | {total_inside:,} | | {total_back:,} | {1 - total_back / total_inside:.1%} |")
    return "\n".join(rows) + f"\n\nWhatever a sub-agent says, at most {CAP:,} characters come back.\n"


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=5)
    parser.add_argument("--turns", type=int, default=14)
    given = parser.parse_args()
    sys.stdout.write(asyncio.run(measure(given.agents, given.turns)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
