#!/usr/bin/env python3
"""Measures offload and summaries: turns before the window overflows with and without offload (N-06), a long test log (N-07).

    bench/context_offload.py [--window 128000] [--seeds 20]

The traces are generated, their outputs are real: files of this repository as `read_file` shows them, `git log -p` of it,
searches over it, and the verbose log of its own unit tests. A turn is one answer (250 characters) and one result. Two mixes:

* "mixed": of ten turns 4 reads, 2 searches, 1 listing, 2 long commands, 1 short command;
* "long": every turn reads a file, or runs a command, of more than 8,000 characters.

"With a look back": so many of the offloaded results are followed by a read of 60 lines of it in the same turn, because an agent
wants some of it. No compaction anywhere; both sides have the tools' own cap of 30,000 characters. Overflow: more than 99 % of the
window, at four characters a token.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from opendev.core.model import Frozen  # noqa: E402
from opendev.core.ports import CommandResult  # noqa: E402
from opendev.core.tool import Tool, ToolContext, ToolResult  # noqa: E402
from opendev.tools import list_files, read_file, run_command, search  # noqa: E402
from opendev.tools.offload import Offloader  # noqa: E402
from opendev.tools.shell.output import OutputBuffer  # noqa: E402
from opendev.tools.summarise import summarise  # noqa: E402
from support.tool_context import FakeShell, make_context  # noqa: E402

ANSWER = 250
LOOK_BACK = 60  # lines
FIXED = 24_000  # system prompt and tools of the main agent, bytes
PYTEST = (sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider")


class Result(NamedTuple):
    """One call and what came of it."""

    tool: Tool[Any]
    args: Frozen
    result: ToolResult


Step = Callable[[random.Random], Result]


def output_of(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def perform(tool: Tool[Any], args: Frozen, ctx: ToolContext) -> Result:
    """A call of a tool."""

    async def run() -> ToolResult:
        return await tool.run(args, ctx)

    return Result(tool, args, asyncio.run(run()))


def command(text: str, ctx: ToolContext) -> Result:
    """What run_command makes of a command that printed ``text``."""
    buffer = OutputBuffer()
    buffer.feed(text.encode())
    buffer.finish()
    done = CommandResult(exit_code=0, text=buffer.text(), ended="exit", wall_s=1.0)
    return perform(
        run_command.TOOL, run_command.Args(command="x"), make_context(ctx.root, shell=FakeShell(done))
    )


def mixes(ctx: ToolContext) -> dict[str, list[Step]]:
    """Steps to draw from."""
    files = [p for p in output_of("git", "ls-files", "*.py", "*.md").split() if (ROOT / p).is_file()]
    words = ["Limits", "async def", "OpenDevError", "import", "Frozen", "scratch", "def test_"]
    log = output_of(*PYTEST, "tests/unit/policy", "tests/unit/core")
    long_ones = [
        command(text, ctx)
        for text in (log, output_of("git", "log", "-p", "-3"), output_of("git", "show", "HEAD~1"))
    ]
    short = command("ok\n", ctx)
    found = [perform(read_file.TOOL, read_file.Args(file_path=name), ctx) for name in files]
    long_files = [one for one in found if len(one.result.text) > ctx.limits.offload_chars]
    searches = [perform(search.TOOL, search.Args(pattern=word), ctx) for word in words]
    listing = perform(list_files.TOOL, list_files.Args(), ctx)

    def of(results: list[Result]) -> Step:
        return lambda rng: rng.choice(results)

    mixed = [of(found)] * 4 + [of(searches)] * 2 + [of([listing])] + [of(long_ones)] * 2 + [of([short])]
    return {"mixed": mixed, "long": [of(long_files), of(long_ones)]}


def turns(seed: int, mix: list[Step], window: int, offloader: Offloader | None, share: float) -> list[int]:
    """The size of each result as it entered the conversation, until the window overflowed; ``share`` of the offloaded are read again."""
    rng = random.Random(seed)  # noqa: S311 - a seed, no secret
    chars = FIXED
    sizes: list[int] = []
    while chars / 4 <= 0.99 * window:
        tool, args, result = rng.choice(mix)(rng)
        text = result.text
        if offloader is not None:
            shown = offloader.shorten(tool, args, f"c{len(sizes)}", text)
            back = shown is not text and rng.random() < share
            lines = text.splitlines()[:LOOK_BACK] if back else []
            text = "\n".join([shown, *lines])
        sizes.append(len(text))
        chars += ANSWER + len(text)
    return sizes


def overflow(ctx: ToolContext, window: int, seeds: int) -> None:
    """N-06."""
    offloader = Offloader(ctx.scratch, ctx.limits, frozenset({"read_file", "search", "spawn_subagent"}))
    print(f"N-06, window {window:,} tokens, median of {seeds} seeds:\n")
    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    heads = " | ".join(f"looked back at {share:.0%}" for share in shares)
    print(f"| mix | mean result, characters | turns without offload | {heads} |")
    print("|---|---|---|" + "---|" * len(shares))
    for name, mix in mixes(ctx).items():
        groups = [
            [turns(seed, mix, window, shorten, share) for seed in range(seeds)]
            for shorten, share in ((None, 0.0), *((offloader, share) for share in shares))
        ]
        plain, *others = (statistics.median(len(sizes) for sizes in group) for group in groups)
        mean = statistics.mean(size for sizes in groups[0] for size in sizes)
        shown = " | ".join(f"{count:.0f} ({count / plain:.1f} times)" for count in others)
        print(f"| {name} | {mean:,.0f} | {plain:.0f} | {shown} |")


def test_log(ctx: ToolContext) -> None:
    """N-07."""
    rooms = ("policy", "core", "llm", "configs", "store", "swarm", "context")
    log = output_of(*PYTEST, *(f"tests/unit/{room}" for room in rooms))
    short = summarise("run_command", command(log, ctx).result)
    print(f"\nN-07: a verbose test log of {len(log):,} characters ({len(log) // 4:,} tokens) has the summary")
    print(f"`{short}` ({-(-len(short) // 4)} tokens).")


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--window", type=int, default=128_000)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ctx = make_context(ROOT, scratch=Path(folder))
        overflow(ctx, options.window, options.seeds)
        test_log(ctx)


if __name__ == "__main__":
    main()
