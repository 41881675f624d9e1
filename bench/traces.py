"""Traces for the measurements of context: a scripted agent with the real tools on this repository, recorded by the harness itself."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opendev.agents.settings import AgentSettings
from opendev.core.agent import AgentReport
from opendev.core.chat import (
    Message,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from opendev.core.tool import Limits
from opendev.store.atomic import JsonlLog
from opendev.store.records import TranscriptLine
from opendev.tools.shell.process import ProcessShell

__all__ = ["make_context", "messages_of", "mix_of", "plan", "record", "split"]
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.agents import Bench  # noqa: E402 - the tests' helpers, found by the line above
from support.scripted_model import call, calls, says  # noqa: E402
from support.tool_context import make_context  # noqa: E402

MIX = {"read_file": 10, "search": 5, "list_files": 2, "run_command": 9, "edit_file": 4}  # of 30 turns
_COMMANDS = (
    "git log --stat -n 40 --no-color",
    "git show --no-color --stat -p HEAD~{n}",
    "ls -laR {folder}",
    "grep -rn 'def ' {folder} --include='*.py'",
    "cat {file}",
    "wc -l {folder}/*.py",
    "wc -c {folder}/*.py",
    "git grep -n import -- {folder}",
)
_LONG = (
    "git log -p -n 30 --no-color -- {folder}",
    "git log --stat -n 200 --no-color",
    "grep -rn '' {folder} --include='*.py'",
    "ls -laR tests",
    "grep -rn . docs tests/unit --include='*.py' --include='*.md'",
)
_SYMBOLS = ("OpenDevError", "ToolContext", "Frozen", "async def", "raise ", "asyncio", "Path", "Message")
_FOLDERS = ("agents", "tools", "context", "actors", "llm", "core", "swarm", "worktrees", "cli", "policy")


class Worker:
    """A model that takes ``turns`` steps of the mix, in random order, and ends with a report."""

    def __init__(self, steps: Sequence[ToolCall], report: str) -> None:
        self.requests: list[ModelRequest] = []
        self._steps, self._report = list(steps), report

    async def complete(
        self,
        request: ModelRequest,
        on_delta: Callable[[str], None] | None = None,  # noqa: ARG002 - a port
    ) -> ModelReply | ModelFailed:
        """The next step."""
        self.requests.append(request)
        number = len(self.requests) - 1
        if number < len(self._steps):
            step = self._steps[number]
            return calls(step, text=f"Step {number}: I look at {step.name} next.", tokens=0)
        return says(self._report)


def plan(turns: int, seed: int, *, heavy: bool = False) -> list[ToolCall]:
    """``turns`` calls in the proportions of ``MIX``, on files of this repository; ``heavy``: long logs and the largest files."""
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    files = [
        path.relative_to(ROOT).as_posix()
        for folder in _FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    if heavy:
        files = sorted(files, key=lambda file: -(ROOT / file).stat().st_size)[:40]
    commands = _LONG if heavy else _COMMANDS
    names = [name for name, count in MIX.items() for _ in range(count)]
    order = [names[n % len(names)] for n in range(turns)]
    rng.shuffle(order)
    return [_call(name, f"c{n}", files, commands, rng) for n, name in enumerate(order)]


def _call(name: str, id: str, files: list[str], commands: tuple[str, ...], rng: random.Random) -> ToolCall:
    file, folder = rng.choice(files), rng.choice(_FOLDERS)
    arguments: dict[str, dict[str, Any]] = {
        "read_file": {"file_path": file},
        "search": {"pattern": rng.choice(_SYMBOLS), "path": rng.choice((".", folder))},
        "list_files": {"path": folder, "max_results": rng.randint(100, 400)},
        "run_command": {
            "command": rng.choice(commands).format(folder=folder, file=file, n=rng.randint(0, 5))
        },
        "edit_file": {"file_path": file, "old_content": f"no such text {id}", "new_content": "x"},
    }
    return call(name, id, **arguments[name])


async def record(
    folder: Path, steps: Sequence[ToolCall], agent: str = "Main", report: str = "Done."
) -> tuple[list[Message], AgentReport, Worker]:
    """Run the steps by the real loop and tools, nothing offloaded; the conversation as the transcript has it."""
    bench = Bench(folder)
    bench.root = ROOT
    bench.shell = ProcessShell(
        log_dir=folder / "logs", marker={"OPENDEV_RUN": "bench", "OPENDEV_AGENT": "bench"}
    )
    bench.settings = AgentSettings(
        models={Role.ACTION: "bench/model"},
        fallback_window=10_000_000,
        max_iterations=len(steps) + 5,
        subagent_iterations=len(steps) + 5,
        limits=Limits(offload_chars=30_000),
    )
    model = Worker(steps, report)
    bench.client = model
    ended = await bench.run(
        agent,
        prompt="Find out how the context of an agent is kept small, and report.",
        env={"PATH": "/usr/bin:/bin"},
    )
    return await asyncio.to_thread(messages_of, Path(ended.transcript)), ended, model


def messages_of(transcript: Path) -> list[Message]:
    """The conversation of a transcript, system prompt first."""
    return [TranscriptLine.model_validate_json(line).message for line in JsonlLog(transcript).read()]


def mix_of(messages: Sequence[Message]) -> str:
    """How many results of which tool, and how long they are in the median and at most (characters)."""
    results = [m for m in messages if isinstance(m, ToolMessage)]
    counts = Counter(m.name for m in results)
    lengths = sorted(len(m.content) for m in results)
    tools = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return (
        f"{tools}; results of {lengths[len(lengths) // 2]:,} characters in the median, {lengths[-1]:,} at most"
        if lengths
        else "no tool"
    )


def split(messages: Sequence[Message]) -> tuple[SystemMessage, list[Message]]:
    """System prompt and the rest; the call ids of the rest are unique already."""
    system = next((m for m in messages if isinstance(m, SystemMessage)), SystemMessage(stable=""))
    return system, [m for m in messages if not isinstance(m, SystemMessage)]
