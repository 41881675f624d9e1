#!/usr/bin/env python3
"""Measures offload and summaries: turns before the window overflows with and without offload (N-06), a long test log (N-07).

    bench/context_offload.py [--window 128000] [--seeds 20]

The trace is generated, its outputs are real: files of this repository as `read_file` shows them, `git log -p` of it, searches
over it, and the verbose log of its own unit tests. A turn is one answer (250 characters) and one result. Mix of ten turns:
4 reads, 2 searches, 1 listing, 2 long commands (log, diff), 1 short command. With offload every offloaded result is followed
by a read of a window of 60 lines in the same turn, because an agent wants some of it back. No compaction in either case.
Both have the tools' own cap of 30,000 characters. Overflow: more than 99 % of the window, at four characters a token.
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

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from opendev.core.model import Frozen  # noqa: E402
from opendev.core.ports import CommandResult  # noqa: E402
from opendev.core.tool import Limits, Tool, ToolContext, ToolResult  # noqa: E402
from opendev.tools import list_files, read_file, run_command, search  # noqa: E402
from opendev.tools.offload import Offloader  # noqa: E402
from opendev.tools.summarise import summarise  # noqa: E402
from support.tool_context import FakeShell, make_context  # noqa: E402

ANSWER = 250
FIXED = 19_000  # system prompt and tools, bytes
Step = Callable[[random.Random], tuple[Tool, Frozen, ToolResult]]


def output_of(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def capped(text: str, limits: Limits) -> str:
    """The cap of run_command: its first and last characters."""
    if len(text) <= limits.result_chars:
        return text
    return f"{text[: limits.keep_head]}\n[…]\n{text[-limits.keep_tail :]}"


def commands(ctx: ToolContext) -> tuple[list[ToolResult], ToolResult]:
    """Long results and a short one, as run_command gives them."""
    texts = [
        output_of(
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "-p",
            "no:cacheprovider",
            "tests/unit/policy",
            "tests/unit/core",
        ),
        output_of("git", "log", "-p", "-3", "--stat"),
        output_of("git", "show", "--stat", "-p", "HEAD~1"),
    ]
    made: list[ToolResult] = []
    for text in [*texts, "ok\n"]:
        shell = FakeShell(CommandResult(exit_code=0, text=capped(text, ctx.limits), ended="exit", wall_s=1.0))
        inner = make_context(ctx.root, shell=shell)
        made.append(asyncio.run(run_command.TOOL.run(run_command.Args(command="x"), inner)))
    return made[:-1], made[-1]


def steps(ctx: ToolContext) -> list[Step]:
    """The mix of ten turns."""
    files = [p for p in output_of("git", "ls-files", "*.py", "*.md").split() if (ROOT / p).is_file()]
    words = ["Limits", "async def", "OpenDevError", "import", "Frozen", "scratch", "def test_"]
    long_ones, short = commands(ctx)

    def reads(rng: random.Random) -> tuple[Tool, Frozen, ToolResult]:
        args = read_file.Args(file_path=rng.choice(files))
        return read_file.TOOL, args, asyncio.run(read_file.TOOL.run(args, ctx))

    def searches(rng: random.Random) -> tuple[Tool, Frozen, ToolResult]:
        args = search.Args(pattern=rng.choice(words))
        return search.TOOL, args, asyncio.run(search.TOOL.run(args, ctx))

    def lists(_rng: random.Random) -> tuple[Tool, Frozen, ToolResult]:
        args = list_files.Args()
        return list_files.TOOL, args, asyncio.run(list_files.TOOL.run(args, ctx))

    def runs(rng: random.Random) -> tuple[Tool, Frozen, ToolResult]:
        return run_command.TOOL, run_command.Args(command="x"), rng.choice(long_ones)

    def runs_short(_rng: random.Random) -> tuple[Tool, Frozen, ToolResult]:
        return run_command.TOOL, run_command.Args(command="x"), short

    return [reads] * 4 + [searches] * 2 + [lists] + [runs] * 2 + [runs_short]


def turns(seed: int, mix: list[Step], window: int, offloader: Offloader | None) -> tuple[int, list[int]]:
    """Turns until the window overflows, and the size of each result as it entered the conversation."""
    rng = random.Random(seed)  # noqa: S311 - a seed, no secret
    chars, sizes = FIXED, []
    while chars / 4 <= 0.99 * window:
        tool, args, result = rng.choice(mix)(rng)
        text = result.text
        if offloader is not None:
            shown = offloader.shorten(tool, args, f"c{len(sizes)}", text)
            if shown is not text:
                shown += "\n".join(text.splitlines()[100:160])
            text = shown
        sizes.append(len(text))
        chars += ANSWER + len(text)
    return len(sizes), sizes


def overflow(ctx: ToolContext, window: int, seeds: int) -> None:
    """N-06."""
    mix = steps(ctx)
    offloader = Offloader(ctx.scratch, ctx.limits, frozenset({"read_file", "search", "spawn_subagent"}))
    without = [turns(seed, mix, window, None) for seed in range(seeds)]
    with_it = [turns(seed, mix, window, offloader) for seed in range(seeds)]
    plain, short = (statistics.median(count for count, _ in group) for group in (without, with_it))
    mean = [statistics.mean(size for _, sizes in group for size in sizes) for group in (without, with_it)]
    print(
        f"N-06, window {window:,} tokens, median of {seeds} seeds: {plain:.0f} turns without offload, {short:.0f} with it"
    )
    print(f"({short / plain:.1f} times); mean result {mean[0]:,.0f} and {mean[1]:,.0f} characters.")


def test_log(ctx: ToolContext) -> None:
    """N-07."""
    log = output_of(
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        "tests/unit/policy",
        "tests/unit/core",
        "tests/unit/llm",
    )
    shell = FakeShell(CommandResult(exit_code=0, text=capped(log, ctx.limits), ended="exit", wall_s=9.0))
    result = asyncio.run(
        run_command.TOOL.run(run_command.Args(command="pytest -v"), make_context(ctx.root, shell=shell))
    )
    short = summarise("run_command", result)
    print(
        f"N-07: a verbose test log of {len(log):,} characters ({len(log) // 4:,} tokens) has the summary `{short}`"
    )
    print(f"({-(-len(short) // 4)} tokens).")


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
