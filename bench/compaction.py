#!/usr/bin/env python3
"""Measures compaction on traces: peak of tool output in the request (N-01), size of a masked result (N-08), what fills the
context (N-09), and the input of a thinking call over 200 turns (N-11).

    bench/compaction.py [--turns 30] [--seeds 5] [--windows 32000 64000 128000] [--transcripts FOLDER]

The traces are made by the real loop and tools on this repository with a scripted model (see traces.MIX) and then replayed, turn
by turn, through six policies. ``--transcripts`` adds recorded runs: every ``*.jsonl`` below the folder with 5 results or more.
"""

import argparse
import asyncio
import importlib.util
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from count_baseline import count_based
from opendev.context.compaction import Compaction, Window
from opendev.context.episodic import thinking_context
from opendev.context.pressure import DEFAULT_THRESHOLDS, Stage, estimate, message_tokens
from opendev.core.chat import AssistantMessage, Message, SystemMessage, ToolMessage, ToolSchema
from opendev.core.errors import ErrorInfo
from opendev.core.tool import Limits
from opendev.tools.offload import Offloader
from traces import messages_of, mix_of, plan, record, split

RESERVE = 4_096
SINGLE = (0.99,) * 5
SMALL = 64_000  # the default of context.small_window
TOKENIZERS = "litellm/litellm_core_utils/tokenizers"
THINKING_TURNS = (10, 20, 50, 100, 200)


class Writer:
    """A compactor that writes 400 words: what a good summary has."""

    async def summarise(self, messages: tuple[Message, ...], artifacts: str) -> str | ErrorInfo:  # noqa: ARG002 - a port
        """Some lines, all different."""
        return "\n".join(f"- step {n}: looked at a file and noted what matters for it" for n in range(32))


@dataclass(frozen=True)
class Trace:
    """One conversation."""

    name: str
    system: SystemMessage
    tools: tuple[ToolSchema, ...]
    messages: list[Message]


@dataclass
class Outcome:
    """What one policy did to one trace: tokens of tool output in each request, full summaries, requests over the window."""

    observed: list[int] = field(default_factory=list[int])
    summaries: int = 0
    over: int = 0

    @property
    def peak(self) -> int:
        """The most tool output in one request."""
        return max(self.observed)

    def note(self, trace: Trace, view: Sequence[Message], window: int) -> None:
        """Take a request into account."""
        self.observed.append(sum(message_tokens(m) for m in view if isinstance(m, ToolMessage)))
        self.over += estimate((trace.system, *view), trace.tools) + RESERVE > window


@dataclass(frozen=True)
class Policy:
    """How the request is kept small."""

    thresholds: tuple[float, ...]
    offload: bool = False
    small: int = 0  # windows up to this size are small: their results fade by weight
    by_count: bool = False  # instead of all that: the simple baseline (BLG-11)


async def replay(trace: Trace, window: int, policy: Policy, folder: Path) -> Outcome:
    """Send the conversation turn by turn, as the loop would."""
    compaction = Compaction(Window(window, RESERVE, policy.thresholds, small=policy.small), Writer(), folder)
    offloader = Offloader(folder, Limits(), frozenset({"read_file", "search"}))
    said: list[Message] = []
    outcome = Outcome()

    async def send() -> None:
        if policy.by_count:
            outcome.note(trace, count_based(said), window)
            return
        step = await compaction.check(said, trace.system, trace.tools)
        outcome.summaries += step is not None and step.stage is Stage.SUMMARISE
        outcome.note(trace, compaction.view(said), window)

    for message in trace.messages:
        if isinstance(message, AssistantMessage) and said:
            await send()
        if (
            policy.offload
            and isinstance(message, ToolMessage)
            and len(message.content) > Limits().offload_chars
        ):
            text = await asyncio.to_thread(offloader.write, message.name, message.call_id, message.content)
            said.append(message.model_copy(update={"content": text}))
        else:
            said.append(message)
    await send()
    return outcome


async def n01(traces: Sequence[Trace], windows: Sequence[int], folder: Path) -> str:
    """Peak of tool output: one threshold at 99 % against the stages, both with and without offload."""
    policies = {
        "single threshold 99 %": Policy(SINGLE),
        "by count, 24 messages (BLG-11)": Policy(SINGLE, by_count=True),
        "staged": Policy(DEFAULT_THRESHOLDS),
        "single + offload": Policy(SINGLE, offload=True),
        "staged + offload": Policy(DEFAULT_THRESHOLDS, offload=True),
        "the harness: and small windows by weight": Policy(DEFAULT_THRESHOLDS, offload=True, small=SMALL),
    }
    rows = [
        "| Window | Policy | Peak tool output | against single | Mean | Full summaries | Requests over the window |"
    ]
    rows.append("|---|---|---|---|---|---|---|")
    for window in windows:
        base = 0.0
        for number, (name, policy) in enumerate(policies.items()):
            found = [
                await replay(t, window, policy, folder / f"{window}-{number}-{n}")
                for n, t in enumerate(traces)
            ]
            peak = statistics.mean(outcome.peak for outcome in found)
            mean = statistics.mean(statistics.mean(outcome.observed) for outcome in found)
            base = base or peak
            rows.append(
                f"| {window:,} | {name} | {peak:,.0f} | {peak / base - 1:+.0%} | {mean:,.0f} |"
                f" {sum(o.summaries for o in found)} | {sum(o.over for o in found)} |"
            )
    return "\n".join(rows)


async def n08(traces: Sequence[Trace], folder: Path) -> str:
    """Tokens of a result before and after masking, by our estimate and by a real tokenizer where there is one."""
    count, unit = _counter()
    before: list[int] = []
    after: list[int] = []
    for number, trace in enumerate(traces):
        compaction = Compaction(Window(1_000_000), Writer(), folder / f"mask-{number}")
        await compaction.shown.mask(trace.messages, 0)
        for message in trace.messages:
            if isinstance(message, ToolMessage) and message.call_id in compaction.shown.replaced:
                before.append(count(message.content))
                after.append(count(compaction.shown.replaced[message.call_id]))
    return (
        f"{len(after)} results masked: {statistics.mean(before):,.0f} tokens in the mean ({max(before):,} at most) → "
        f"{statistics.mean(after):.1f} ({max(after)} at most), counted by {unit}."
    )


def n09(traces: Sequence[Trace]) -> str:
    """What the last request of each trace would consist of if nothing were ever shortened."""
    rows = [
        "| Trace | system prompt | tool schemas | user | answers and calls | tool output |",
        "|---|---|---|---|---|---|",
    ]
    for trace in traces:
        kinds = {"tool": 0, "assistant": 0, "user": 0}
        for message in trace.messages:
            kinds[message.role] += message_tokens(message)
        parts = (
            estimate((trace.system,)),
            estimate((), trace.tools),
            kinds["user"],
            kinds["assistant"],
            kinds["tool"],
        )
        rows.append(f"| {trace.name} | " + " | ".join(f"{part / sum(parts):.0%}" for part in parts) + " |")
    return "\n".join(rows)


def n11(trace: Trace) -> str:
    """Tokens of the thinking input after so many turns, against the whole conversation at that point."""
    starts = [n for n, m in enumerate(trace.messages) if isinstance(m, AssistantMessage)]
    rows = ["| Turn | thinking input | whole conversation |", "|---|---|---|"]
    for turn in THINKING_TURNS:
        if turn < len(starts):
            history = trace.messages[: starts[turn]]
            text = thinking_context(history, "s" * 500)
            rows.append(f"| {turn} | {len(text) // 4:,} | {estimate(history):,} |")
    return "\n".join(rows)


def _counter() -> tuple[Callable[[str], int], str]:
    spec = importlib.util.find_spec("litellm")
    if spec is not None and spec.origin:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(
            Path(spec.origin).parent.parent / TOKENIZERS
        )  # it ships the file
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    return (lambda text: len(encoding.encode(text, disallowed_special=()))), "cl100k_base"


async def gather(turns: int, seeds: int, transcripts: Path | None, folder: Path) -> list[Trace]:
    """The generated traces, then the recorded ones."""
    traces: list[Trace] = []
    for seed in range(2 * seeds):
        heavy = seed >= seeds
        place = folder / f"trace-{seed}"
        place.mkdir()
        messages, _, model = await record(place, plan(turns, seed, heavy=heavy))
        system, rest = split(messages)
        name = f"{'heavy' if heavy else 'usual'}, seed {seed}"
        traces.append(Trace(name, system, model.requests[0].tools, rest))
    found = sorted(await asyncio.to_thread(lambda: list(transcripts.rglob("*.jsonl")))) if transcripts else []
    for path in found:
        system, rest = split(messages_of(path))
        if sum(isinstance(m, ToolMessage) for m in rest) >= 5:
            traces.append(Trace(f"recorded {path.stem}", system, (), rest))
    return traces


async def measure(given: argparse.Namespace) -> None:
    """Everything, as Markdown."""
    with tempfile.TemporaryDirectory(prefix="opendev-bench-") as name:
        folder = Path(name)
        traces = await gather(given.turns, given.seeds, given.transcripts, folder)
        usual, heavy = traces[: given.seeds], traces[given.seeds : 2 * given.seeds]
        out = ["## Traces\n"]
        out += [f"- {t.name}: {mix_of(t.messages)}" for t in traces]
        out += ["\n## N-01, usual mix\n", await n01(usual, given.windows, folder / "usual")]
        out += ["\n## N-01, heavy mix\n", await n01(heavy, given.windows, folder / "heavy")]
        out += ["\n## N-08\n", await n08([*usual, *heavy], folder), "\n## N-09\n", n09(traces)]
        long = folder / "long"
        long.mkdir()
        messages, _, _ = await record(long, plan(max(THINKING_TURNS) + 1, 99))
        out += ["\n## N-11\n", n11(Trace("long", *split(messages)[:1], (), split(messages)[1]))]
        sys.stdout.write("\n".join(out) + "\n")


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--windows", type=int, nargs="+", default=[32_000, 64_000, 128_000])
    parser.add_argument("--transcripts", type=Path)
    asyncio.run(measure(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
