#!/usr/bin/env python3
"""Measures the system prompt: bytes of prompt and tools of the first request, the stable share (N-02, N-03), what caching saves.

    bench/context_prompt.py

Every agent type is built by the real factory in an empty git repository and run against a scripted model; the request that
reaches the model is measured. Tokens are estimated at four characters each. Prices: a cache write costs 1.25 times, a read
0.1 times the input price, so N calls with one stable part cost 1.25 + 0.1 (N - 1) instead of N.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from opendev.agents.specs import builtin_specs  # noqa: E402
from opendev.context.sections import MAIN_SECTIONS  # noqa: E402
from opendev.core.chat import ModelRequest, Role, SystemMessage, canonical  # noqa: E402
from support.agents import Bench  # noqa: E402
from support.scripted_model import says  # noqa: E402

WRITE, READ = 1.25, 0.1


def saving(calls: int) -> float:
    """The share of the price of the stable part that caching saves over so many calls."""
    return 1 - (WRITE + READ * (calls - 1)) / calls


async def first_request(folder: Path, agent: str, model: str) -> ModelRequest:
    """The first request of an agent of this type."""
    bench = Bench(folder, says("Done."))
    subprocess.run(["git", "init", "-q", bench.root], check=True)  # noqa: ASYNC221 - nothing else runs here
    bench.settings = bench.settings.model_copy(update={"models": {Role.ACTION: model}})
    await bench.run(agent)
    return bench.model.requests[0]


async def measure(folder: Path) -> list[str]:
    """Rows of a table."""
    rows = [
        "| agent | model | system, bytes | stable | tools, bytes | together | stable share of the system prompt | of prompt and tools |"
    ]
    rows.append("|---|---|---|---|---|---|---|---|")
    cases = [("Main", model) for model in ("openai/m", "anthropic/m", "fireworks_ai/m", "other/m")]
    cases += [
        (name, "openai/m") for name, spec in builtin_specs().items() if name != "Main" and spec.calls_model
    ]
    for number, (agent, model) in enumerate(cases):
        (place := folder / str(number)).mkdir()
        request = await first_request(place, agent, model)
        system = request.messages[0]
        assert isinstance(system, SystemMessage)
        stable, dynamic = len(system.stable.encode()), len(system.dynamic.encode())
        tools = sum(len(canonical(tool.model_dump()).encode()) for tool in request.tools)
        whole = stable + dynamic
        rows.append(
            f"| {agent} | {model.partition('/')[0]} | {whole:,} | {stable:,} | {tools:,} | {whole + tools:,} "
            f"| {stable / whole:.0%} | {(stable + tools) / (whole + tools):.0%} |"
        )
    return rows


def main() -> None:
    """Print Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(measure(Path(folder)))))
    cacheable = sum(section.cacheable for section in MAIN_SECTIONS)
    print(f"\nSections: {cacheable} of {len(MAIN_SECTIONS)} cacheable (N-03).")
    figures = ", ".join(f"{saving(n):.1%} at {n} calls" for n in (2, 10, 30, 58))
    print(f"Saved on the stable part (N-02, by the prices above): {figures}.")


if __name__ == "__main__":
    main()
