"""The five roles in real requests: who is called for what in every configuration, and who is never called (MOD-01 to MOD-03, C-18)."""

import asyncio
import itertools
import threading
from pathlib import Path

import pytest
from opendev.actors.local_runtime import LocalRuntime
from opendev.agents.specs import builtin_specs
from opendev.core.agent import AgentStatus
from opendev.core.chat import Role
from support.model_server import ModelServer, Reply, Seen, call, text
from support.runtimes import hub_on, task_of

OPTIONAL = (Role.THINKING, Role.CRITIQUE, Role.VISION, Role.COMPACT)
CONFIGURATIONS = [frozenset(chosen) for size in range(5) for chosen in itertools.combinations(OPTIONAL, size)]
QUICK = (frozenset[Role](), frozenset({Role.THINKING}), frozenset(OPTIONAL))  # the others are soak tests
FALLBACK = {Role.THINKING: Role.ACTION, Role.CRITIQUE: Role.THINKING, Role.COMPACT: Role.ACTION}
DOCUMENT = "The file a.py is important. " * 400


def expected(role: Role, configured: frozenset[Role]) -> str:
    """MOD-02, written down a second time."""
    while role is not Role.ACTION and role not in configured:
        role = FALLBACK[role]
    return f"m-{role.value}"


class Server:
    """Answers by what a request is for, and asks the agent once to compact its conversation."""

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = {
            "action": set(),
            "thought": set(),
            "critique": set(),
            "compact": set(),
        }
        self.compact = threading.Event()
        self._reads = 0

    def __call__(self, seen: Seen) -> Reply:
        kind = self._kind(seen)
        self.used[kind].add(str(seen.body["model"]))
        if kind == "action":
            self._reads += 1
            if self._reads == 5:
                self.compact.set()
            if self._reads < 8:
                return call("search", {"pattern": f"word {self._reads}"}, say=DOCUMENT)
            return text("Done.")
        return text(
            {"thought": "First look, then act.", "critique": "Think of the tests.", "compact": "Read a.py."}[
                kind
            ]
        )

    def _kind(self, seen: Seen) -> str:
        if seen.body.get("tools"):
            return "action"
        system = str(seen.messages[0]["content"]).lower()
        if "strict reviewer" in system:
            return "critique"
        return "thought" if "inner voice" in system else "compact"  # summaries of every kind


@pytest.mark.slow
@pytest.mark.req("MOD-01", "MOD-02", "MOD-03")
@pytest.mark.parametrize(
    "configured",
    [pytest.param(chosen, marks=() if chosen in QUICK else pytest.mark.soak) for chosen in CONFIGURATIONS],
    ids=lambda c: "+".join(sorted(r.value for r in c)) or "none",
)
async def test_each_role_calls_its_own_model_or_its_fallback(
    tmp_path: Path, configured: frozenset[Role]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    play = Server()
    models = {role.value: f"openai/m-{role.value}" for role in (Role.ACTION, *configured)}
    with ModelServer(play) as server:
        async with hub_on(
            LocalRuntime(),
            tmp_path,
            specs=builtin_specs(),
            model={
                "env": server.env(),
                "prices": {name: {"input": 1, "output": 1} for name in models.values()},
            },
            agent={"models": models, "thinking": "high"},
            worker="opendev.actors.worker:Worker",
            model_service="opendev.actors.model_service:ModelService",
            run_id="roles",
        ) as hub:
            before = await hub.model.ask("ping")
            task = task_of("roles", root, spec=builtin_specs()["Main"], prompt="Look.", approve="auto")
            run = asyncio.create_task(hub.run_agent(task))
            await asyncio.to_thread(play.compact.wait, 20)
            assert await hub.deliver(task.id, "/compact")
            report = await run
            after = await hub.model.ask("ping")
    assert report.status is AgentStatus.DONE, report
    assert play.used == {
        "action": {"m-action"},
        "thought": {expected(Role.THINKING, configured)},
        "critique": {expected(Role.CRITIQUE, configured)},
        "compact": {expected(Role.COMPACT, configured)},
    }
    assert before["slots"] == []  # nothing is initialised before its first use
    assert set(after["slots"]) == {f"{role}:openai" for role in ("action", "thinking", "critique", "compact")}
