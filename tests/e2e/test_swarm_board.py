"""The board of a run: an agent at work learns that another ticket changed its files (issue B 9, ACT-04)."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.model_server import ModelServer, Reply, Seen, call, text
from support.swarm_cli import Bench, make_bench, task, wait_for

pytestmark = pytest.mark.slow
NOTE = "[Note from the board, for information]"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


@pytest.mark.req("ACT-04")
@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.soak])])
def test_an_agent_learns_that_another_ticket_changed_its_files(bench: Bench, runtime: str) -> None:
    slow_turns = itertools.count()

    def answer(seen: Seen) -> Reply:
        asked = json.dumps(seen.messages)
        turn = sum(row["role"] == "assistant" for row in seen.messages)
        if "Do quick." in asked and "Do slow." not in asked:
            first = call("write_file", {"file_path": "a.txt", "content": "a\n"})
            return first if turn == 0 else text("I wrote a.")
        if "Do other." in asked:
            first = call("write_file", {"file_path": "c.txt", "content": "c\n"})
            return first if turn == 0 else text("I wrote c.")
        if next(slow_turns) == 1:
            wait_for(lambda: len(bench.events("merged")) == 2)  # the others land while this one thinks
        steps = [
            call("list_files", {"path": "."}),
            call("write_file", {"file_path": "b.txt", "content": "b\n"}),
            call("list_files", {"path": ".", "max_results": 50}),
        ]
        return steps[turn] if turn < len(steps) else text("I wrote b.")

    with ModelServer(answer) as server:
        bench.sandbox.server, bench.sandbox.model = server, "openai/gpt-4o-mini"
        done = bench.run(
            task("quick", scope=["a.txt", "b.txt"]),
            task("slow", scope=["a.txt", "b.txt"]),
            task("other", scope=["c.txt"]),
            overlap="parallel",
            concurrency=3,
            runtime=runtime,
        )
    assert done.statuses == dict.fromkeys(("quick", "slow", "other"), "merged"), done
    told = [seen for seen in server.seen if seen.says(NOTE)]
    assert told
    assert all(seen.says("Do slow.") for seen in told)
    assert told[0].says("The ticket quick (Do quick.) has landed on swarm/x")
    assert told[0].says("It changed a.txt.")
    assert any("quick landed while 1 agents worked on its files" in note for note in done.run.notes)
    told_of_other = [seen for seen in server.seen if seen.says("The ticket other")]
    assert told_of_other == []  # none of its files are theirs
