#!/usr/bin/env python3
"""N-12: calls until the doom loop is warned of and until the agent is paused, and false alarms on honest traces.

    bench/doomloop.py [--traces FOLDER ...] [--seed 7] [--generated 500] [--json FILE]

Repeating models: scripted, through the real detector with the real tools' declarations. Honest traces: transcripts of recorded
runs (every `*.jsonl` below the folders, runs of scripted and recipe models included, each counted), and generated sessions
of six kinds that repeat calls for good reasons. A false alarm is a warning inside a trace that is no loop.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from opendev.agents.doomloop import DoomLoop, Level
from opendev.core.chat import AssistantMessage, Message, ToolCall, ToolMessage
from opendev.store.records import TranscriptLine
from opendev.tools.catalog import BUILTIN, RECIPE
from opendev.tools.registry import ToolRegistry
from pydantic import ValidationError

Turn = tuple[list[ToolCall], list[ToolMessage]]


def call(name: str, **arguments: Any) -> ToolCall:
    """One call; ids play no part in detection."""
    return ToolCall(id="c", name=name, arguments=arguments)


def result(name: str, text: str = "ok", *, error: bool = False) -> ToolMessage:
    """One result."""
    return ToolMessage(call_id="c", name=name, content=text, is_error=error)


def turn(*calls: ToolCall, text: str = "ok") -> Turn:
    """An answer whose calls all succeed with ``text``."""
    return list(calls), [result(c.name, text) for c in calls]


LOOPS: dict[str, list[Turn]] = {
    "one call again and again": [turn(call("read_file", file_path="a"))],
    "two calls in turn": [turn(call("read_file", file_path="a")), turn(call("search", pattern="x"))],
    "a cycle of three": [turn(call("read_file", file_path=name)) for name in "abc"],
    "one failing command": [turn(call("run_command", command="make"), text="make: *** [x] Error 1 in 0.1s")],
    "the same failing edit": [turn(call("edit_file", file_path="a", old_content="x", new_content="y"))],
    "a batch of three": [turn(*[call("list_files", path=".")] * 3)],
    "command, then read": [turn(call("run_command", command="make")), turn(call("read_file", file_path="a"))],
}


def until(turns: Sequence[Turn]) -> dict[str, int]:
    """Equal calls and answers until the warning and until the pause, when ``turns`` are repeated for ever."""
    loop, found = DoomLoop(ToolRegistry((*BUILTIN, *RECIPE))), dict[str, int]()
    for number in range(1, 60):
        calls, results = turns[(number - 1) % len(turns)]
        hit = loop.check(calls)
        if hit is None:
            for made, came in zip(calls, results, strict=True):
                loop.note(made, came)
            continue
        name = "warned" if hit.level is Level.WARN else "paused"
        found.setdefault(f"{name}_at_answer", number)
        found.setdefault(f"{name}_at_equal_call", hit.count)
        if "paused_at_answer" in found:
            break
    return found


def alarms(turns: Iterable[Turn]) -> tuple[int, int]:
    """Warnings or pauses, and answers, of a trace; what was stopped in the trace itself is played as it was."""
    loop, count, answers = DoomLoop(ToolRegistry((*BUILTIN, *RECIPE))), 0, 0
    for calls, results in turns:
        answers += 1
        if loop.check(calls) is not None:
            count += 1
            loop.reset()
        for made, came in zip(calls, results, strict=False):
            loop.note(made, came)
    return count, answers


def recorded(path: Path) -> list[Turn]:
    """The answers of a transcript with their results; an empty list when it is none."""
    messages: list[Message] = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            messages.append(TranscriptLine.model_validate_json(line).message)
        except ValidationError:
            continue
    turns: list[Turn] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            turns.append((list(message.tool_calls), []))
        elif isinstance(message, ToolMessage) and turns:
            turns[-1][1].append(message)
    return turns


def is_loop(turns: Sequence[Turn]) -> bool:
    """Whether the run itself was stopped for repeating: such a trace is not honest."""
    return any("repeats an earlier call" in came.content for _, results in turns for came in results)


def test_after_edit(rng: random.Random) -> Iterator[Turn]:
    """Edit, test, edit, test: the command is the same, the files are not."""
    for number in range(rng.randint(3, 15)):
        yield turn(
            call("edit_file", file_path="a.py", old_content=f"v{number}", new_content=f"v{number + 1}")
        )
        yield turn(call("run_command", command="pytest -q"), text="1 failed in 0.3s")


def shell_edits(rng: random.Random) -> Iterator[Turn]:
    """Edits by commands, so that no tool says that it wrote."""
    for number in range(rng.randint(3, 12)):
        yield turn(call("run_command", command=f"sed -i s/v{number}/v{number + 1}/ a.py"))
        yield turn(call("read_file", file_path="a.py"))
        yield turn(call("run_command", command="pytest -q"), text=f"{12 - number} failed in 0.{number}s")


def polling(rng: random.Random) -> Iterator[Turn]:
    """Waiting for a background sub-agent."""
    yield turn(call("spawn_subagent", agent="Code-Explorer", prompt="look", background=True))
    for _ in range(rng.randint(3, 30)):
        yield turn(call("get_subagent_output", agent_id="s"))


def paging(rng: random.Random) -> Iterator[Turn]:
    """A long file page by page, with searches."""
    for page in range(rng.randint(3, 20)):
        yield turn(call("read_file", file_path="big.py", offset=page * 200, max_lines=200))
        if rng.random() < 0.3:
            yield turn(call("search", pattern=f"name{page}"))


def todos(rng: random.Random) -> Iterator[Turn]:
    """A list kept true: doing, work, done, look at the list."""
    for number in range(1, rng.randint(3, 12)):
        yield turn(call("update_todo", todo_id=str(number), status="doing"))
        yield turn(call("write_file", file_path=f"{number}.txt", content="x"))
        yield turn(call("complete_todo", todo_id=str(number)))
        yield turn(call("list_todos"))


def mixed(rng: random.Random) -> Iterator[Turn]:
    """Several of these one after the other, with look-ups of the same few files in between."""
    for make in rng.sample([test_after_edit, shell_edits, polling, paging], 3):
        yield from make(rng)
        yield turn(call("read_file", file_path="README.md"))


KINDS: tuple[Callable[[random.Random], Iterator[Turn]], ...] = (
    *(test_after_edit, shell_edits, polling),
    *(paging, todos, mixed),
)


def main() -> int:
    """Measure and print; 1 when a loop was not caught."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--generated", type=int, default=500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {"loops": {name: until(turns) for name, turns in LOOPS.items()}}
    rng = random.Random(options.seed)  # noqa: S311 - repeatable, nothing secret
    honest: Counter[str] = Counter()
    for number in range(options.generated):
        count, answers = alarms(KINDS[number % len(KINDS)](rng))
        honest.update(generated=1, generated_answers=answers, generated_alarms=count)
    for path in sorted(p for folder in options.traces for p in folder.rglob("*.jsonl")):
        turns = recorded(path)
        if not turns:
            continue
        if is_loop(turns):
            honest.update(recorded_loops_left_out=1)
            continue
        count, answers = alarms(turns)
        honest.update(recorded=1, recorded_answers=answers, recorded_alarms=count)
        if count:
            sys.stderr.write(f"alarm in {path}\n")
    found["honest"] = dict(honest)
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if all("paused_at_answer" in row for row in found["loops"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
