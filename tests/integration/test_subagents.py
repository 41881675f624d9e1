"""Sub-agents with real workers and a real model service, in both runtimes: resume, child sessions, costs of a tree (SUB-09, ACT-14)."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from opendev.actors.hub import Hub
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentReport, AgentStatus, Budget
from opendev.core.ports import Runtime
from opendev.core.session import SessionMeta
from opendev.store.sessions import read_meta
from support.model_server import Call, ModelServer, Reply, Seen, call, calls, failing, text
from support.runtimes import hub_on, task_of

pytestmark = pytest.mark.soak

MODEL = "openai/gpt-4o-mini"
FIRST = "the main task"
Turn = Callable[[Seen], Reply] | Reply


def spawn(prompt: str, agent: str = "Code-Explorer", **more: Any) -> Call:
    return Call("spawn_subagent", {"agent": agent, "prompt": prompt, **more})


def last_id(seen: Seen) -> str:
    """The id that the newest report names for resuming."""
    return re.findall(r'resume=\\*"(\w+)', json.dumps(seen.messages))[-1]


class Play:
    """Each agent is known by a marker in its prompt, and answers turn by turn, counted by the server."""

    def __init__(self, parts: Mapping[str, list[Turn]]) -> None:
        self._parts = parts
        self._turn = dict.fromkeys(parts, 0)

    def __call__(self, seen: Seen) -> Reply:
        who = next(marker for marker in self._parts if seen.says(marker))
        turn = self._parts[who][self._turn[who]]
        self._turn[who] += 1
        return turn(seen) if callable(turn) else turn


def open_hub(runtime: Runtime, tmp: Path, server: ModelServer, **settings: Any) -> Any:
    return hub_on(
        runtime,
        tmp,
        specs=builtin_specs(),
        model={"env": server.env(), "retry": {"base_s": 0.01, "max_tries": 2}},
        worker="opendev.actors.worker:Worker",
        model_service="opendev.actors.model_service:ModelService",
        run_id="tree",
        **settings,
    )


async def run_main(hub: Hub, tmp: Path, prompt: str = FIRST, **fields: Any) -> AgentReport:
    root = tmp / "project"
    root.mkdir(exist_ok=True)
    (root / "a.py").write_text("A = 1\n")
    given: dict[str, Any] = {
        "id": "main-1",
        "spec": builtin_specs()["Main"],
        "prompt": prompt,
        "models": {"action": MODEL},
        "approve": "auto",
        "scopes": ("run:tree",),
    }
    return await hub.run_agent(task_of("tree", root, **{**given, **fields}))


def meta(tmp: Path, agent: str) -> SessionMeta:
    found = read_meta(tmp / "transcripts" / "tree" / f"{agent}.json")
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.req("SUB-09", "SUB-03")
async def test_a_resumed_sub_agent_knows_what_it_knew_also_in_a_later_process(
    tmp_path: Path, runtime: Runtime
) -> None:
    play = Play(
        {
            FIRST: [
                calls(spawn("ask ONE")),
                lambda seen: calls(spawn("and now TWO", resume=last_id(seen))),
                text("First end."),
            ],
            "the later task": [
                lambda _: calls(spawn("and at last THREE", resume=child)),
                text("Second end."),
            ],
            "ask ONE": [
                call("read_file", {"file_path": "a.py"}),
                text("A is one."),
                text("It is still one."),
                text("And it stays one."),
            ],
        }
    )
    with ModelServer(play) as server:
        async with open_hub(runtime, tmp_path, server) as hub:
            report = await run_main(hub, tmp_path)
        assert (report.status, report.text) == (AgentStatus.DONE, "First end."), report
        (child,) = set(meta(tmp_path, "main-1").subagent_sessions.values())
        second = [seen for seen in server.seen if seen.says("and now TWO") and not seen.says(FIRST)]
        assert [said in json.dumps(second[0].messages) for said in ("ask ONE", "A = 1", "A is one.")] == [
            True
        ] * 3
        async with open_hub(runtime, tmp_path, server) as hub:  # a later process of the same run
            later = await run_main(hub, tmp_path, "the later task")
        assert (later.status, later.text) == (AgentStatus.DONE, "Second end."), later
        third = server.seen[-2]
        words = ("ask ONE", "A = 1", "A is one.", "and now TWO", "It is still one.", "and at last THREE")
        assert [word in json.dumps(third.messages) for word in words] == [True] * 6
        systems = [row for row in third.messages if row["role"] == "system"]
        assert len(systems) == 1
    record = meta(tmp_path, child)
    assert record.parent_id == "main-1"
    assert record.metadata["title"] == "ask ONE (@Code-Explorer)"
    assert record.metadata["cost_tracking"]["api_call_count"] == 4
    links = meta(tmp_path, "main-1").subagent_sessions
    assert len(links) == 3
    assert set(links.values()) == {child}


@pytest.mark.slow
@pytest.mark.req("SUB-09")
async def test_another_agents_child_cannot_be_resumed_and_a_type_stays_what_it_is(
    tmp_path: Path, runtime: Runtime
) -> None:
    play = Play(
        {
            FIRST: [
                calls(spawn("ask ONE")),
                lambda seen: calls(spawn("again TWO", "Coder", resume=last_id(seen))),
                text("End."),
            ],
            "a stranger": [lambda _: calls(spawn("steal it", resume=child)), text("Stranger's end.")],
            "ask ONE": [text("One."), text("Two.")],
        }
    )
    with ModelServer(play) as server:
        async with open_hub(runtime, tmp_path, server) as hub:
            await run_main(hub, tmp_path)
        (child,) = set(meta(tmp_path, "main-1").subagent_sessions.values())
        (resumed,) = [seen for seen in server.seen if seen.says("again TWO") and not seen.says(FIRST)]
        assert "write_file" not in {tool["function"]["name"] for tool in resumed.body["tools"]}
        async with open_hub(runtime, tmp_path, server) as hub:
            await run_main(hub, tmp_path, "a stranger", id="main-2")
        assert server.seen[-1].says(f"You have no earlier sub-agent with the id {child}")


@pytest.mark.slow
@pytest.mark.req("ACT-14", "SUB-18", "MOD-07")
async def test_what_a_nested_tree_costs_is_what_the_provider_billed(tmp_path: Path, runtime: Runtime) -> None:
    play = Play(
        {
            FIRST: [calls(spawn("plan it", "Planner"), spawn("look LEFT")), text("Merged.")],
            "plan it": [calls(spawn("look DEEP")), text("Planned.")],
            "look LEFT": [call("read_file", {"file_path": "a.py"}), text("Left.")],
            "look DEEP": [call("list_files", {"path": "."}), text("Deep.")],
        }
    )
    with ModelServer(play) as server:
        async with open_hub(runtime, tmp_path, server, max_depth=2) as hub:
            report = await run_main(hub, tmp_path)
            totals = await hub.model.ask("totals")
            spent, count = hub.total
        billed = server.billed()
    assert (report.status, report.text) == (AgentStatus.DONE, "Merged."), report
    assert (spent.input, spent.output) == (billed.input, billed.output)
    assert count == len(server.seen) == totals["calls"]
    assert (totals["usage"]["input"], totals["usage"]["output"]) == (billed.input, billed.output)
    records = {
        path.stem: read_meta(path) for path in sorted((tmp_path / "transcripts" / "tree").glob("*.json"))
    }
    costs = [record.metadata["cost_tracking"] for record in records.values() if record]
    assert sum(cost["total_input_tokens"] for cost in costs) == billed.input
    assert sum(cost["api_call_count"] for cost in costs) == count
    parents = {record.metadata["subagent_type"]: record.parent_id for record in records.values() if record}
    planner = next(id for id, r in records.items() if r and r.metadata["subagent_type"] == "Planner")
    assert parents == {"": "", "Planner": "main-1", "Code-Explorer": parents["Code-Explorer"]}
    assert {r.parent_id for r in records.values() if r and r.parent_id} == {"main-1", planner}


@pytest.mark.slow
async def test_children_spend_what_is_left_of_their_parents_budget(tmp_path: Path, runtime: Runtime) -> None:
    """All calls of the tree are charged to one scope: no child can outspend it, whatever it does (cc#94013)."""
    turns: list[Turn] = [call("search", {"pattern": f"word {n}"}) for n in range(50)]
    play = Play({FIRST: [calls(spawn("look LEFT"), spawn("look RIGHT")), text("End.")], "look": turns})
    with ModelServer(play) as server:
        async with open_hub(runtime, tmp_path, server) as hub:
            await hub.model.ask("open_scope", "run:tree", None, 60_000)
            report = await run_main(hub, tmp_path, budget=Budget(max_tokens=60_000))
            spent, _ = hub.total
    assert report.status in (AgentStatus.BUDGET, AgentStatus.DONE)
    assert spent.input + spent.output <= 60_000
    assert 3 < len(server.seen) < 50


@pytest.mark.slow
@pytest.mark.req("ACT-10")
async def test_sub_agents_that_get_nowhere_are_not_started_without_end(
    tmp_path: Path, runtime: Runtime
) -> None:
    """Every call of a sub-agent is refused by the provider: after five the broker refuses, in words (cc#72672)."""
    main: list[Turn] = [calls(spawn(f"look {n}")) for n in range(8)]
    play = Play(
        {
            FIRST: [*main, text("Failure accepted: I did it myself.")],
            "look": [failing(400) for _ in range(99)],
        }
    )
    with ModelServer(play) as server:
        async with open_hub(runtime, tmp_path, server) as hub:
            report = await run_main(hub, tmp_path)
            assert hub.counts.spawned == 1 + 5
    assert (report.status, report.text) == (AgentStatus.DONE, "Failure accepted: I did it myself."), report
    results = [row["content"] for row in server.seen[-1].messages if row["role"] == "tool"]
    assert sum("SUBAGENT FAILED" in said for said in results) == 5
    assert sum("ended without having done anything" in said for said in results) == 3


@pytest.mark.slow
@pytest.mark.req("MOD-10", "SUB-10")
async def test_a_strong_model_delegates_to_a_small_one(tmp_path: Path, runtime: Runtime) -> None:
    play = Play(
        {
            FIRST: [calls(spawn("look LEFT", model="haiku"), spawn("look RIGHT")), text("End.")],
            "look LEFT": [text("Left.")],
            "look RIGHT": [text("Right.")],
        }
    )
    with ModelServer(play) as server:
        async with open_hub(runtime, tmp_path, server, tiers={"haiku": "openai/gpt-4.1-nano"}) as hub:
            report = await run_main(hub, tmp_path)
    assert report.status is AgentStatus.DONE, report
    used = {
        marker: seen.body["model"]
        for marker in ("look LEFT", "look RIGHT")
        for seen in server.seen
        if seen.says(marker) and not seen.says(FIRST)
    }
    assert used == {"look LEFT": "gpt-4.1-nano", "look RIGHT": "gpt-4o-mini"}
