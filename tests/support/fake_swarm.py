"""Fakes for swarm tests: agents that are plain functions on the worktree, and a ledger; git is real."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from opendev.core.agent import AgentReport, AgentSpec, AgentStatus, AgentTask
from opendev.core.chat import Role, Usage
from opendev.core.clock import SystemClock
from opendev.core.events import Event
from opendev.core.ticket import SwarmPlan
from opendev.swarm.history import GitHistory
from opendev.swarm.ports import RunSettings, SwarmPorts
from opendev.swarm.recover import Recovered
from opendev.swarm.run import SwarmRun
from opendev.tools.shell.process import ProcessShell
from opendev.worktrees.keeper import Keeper
from opendev.worktrees.train import Train

SPECS = {
    "Coder": AgentSpec(name="Coder", description="writes", prompt="write it\n", writes=True),
    "PR-Reviewer": AgentSpec(name="PR-Reviewer", description="reads", prompt="read it\n"),
}
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}

Deed = Callable[[AgentTask], AgentReport | Awaitable[AgentReport | None] | None]


class FakeAgents:
    """``deeds`` by ticket id (or reviewer name); a deed changes files under ``task.root`` and may return its own report."""

    def __init__(self, deeds: dict[str, Deed]) -> None:
        self.deeds = deeds
        self.orders: list[AgentTask] = []
        self.cancelled: list[str] = []
        self._running: dict[str, asyncio.Event] = {}

    async def run_agent(self, task: AgentTask) -> AgentReport:
        self.orders.append(task)
        stop = self._running[task.id] = asyncio.Event()
        deed = self.deeds.get(task.spec.name) or self.deeds[self.ticket_of(task)]
        work = asyncio.ensure_future(self._do(deed, task))
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            work.cancel()
            return report(task, AgentStatus.CANCELLED)
        ended.cancel()
        return work.result() or report(task)

    async def cancel(self, agent_id: str, reason: str) -> None:
        self.cancelled.append(agent_id)
        self._running[agent_id].set()
        await asyncio.sleep(0)

    @staticmethod
    def ticket_of(task: AgentTask) -> str:
        return next(scope.removeprefix("task:") for scope in task.scopes if scope.startswith("task:"))

    async def _do(self, deed: Deed, task: AgentTask) -> AgentReport | None:
        found = deed(task)
        return await found if isinstance(found, Awaitable) else found


def report(task: AgentTask, status: AgentStatus = AgentStatus.DONE, **values: Any) -> AgentReport:
    usage = Usage(input=10, output=5, cost_usd=0.01)
    plain = AgentReport(
        id=task.id, agent=task.spec.name, status=status, usage=usage, model_calls=2, tool_calls=1, pid=4242
    )
    return plain.model_copy(update=values)


def write(path: str, text: str) -> Deed:
    """A deed that writes one file."""

    def deed(task: AgentTask) -> None:
        target = Path(task.root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    return deed


class FakeLedger:
    """Remembers the scopes that were opened."""

    def __init__(self) -> None:
        self.scopes: dict[str, float | None] = {}

    async def open_scope(self, scope: str, max_cost_usd: float | None, max_tokens: int | None) -> None:
        self.scopes[scope] = max_cost_usd

    async def totals(self) -> dict[str, Any]:
        usage = Usage(input=100, output=7, cost_usd=0.5).model_dump()
        return {"scopes": {scope: {"usage": usage, "calls": 9} for scope in self.scopes}}


class Bench:
    """A swarm run on a real repository with fake agents."""

    def __init__(self, repo: Path, home: Path, deeds: dict[str, Deed], run_id: str = "r1") -> None:
        self.repo, self.home, self.run_dir = repo, home, home / "runs" / run_id
        self.agents = FakeAgents(deeds)
        self.events: list[Event] = []
        self.ledger: FakeLedger | None = None
        self.keeper = Keeper(repo=repo, home=home, clock=SystemClock(), env=ENV)
        self.run_id = run_id

    def swarm(self, plan: SwarmPlan, past: Recovered | None = None, **settings: Any) -> SwarmRun:
        ports, chosen = self.wiring(plan, **settings)
        if past:
            chosen = replace(chosen, base=past.began.base)
        return SwarmRun(plan, ports, chosen, past=past)

    def wiring(self, plan: SwarmPlan, **settings: Any) -> tuple[SwarmPorts, RunSettings]:
        clock = SystemClock()
        ports = SwarmPorts(
            desk=self.keeper,
            train=Train(self.keeper, plan.swarm.into, clock),
            history=GitHistory(self.keeper.repo.admin),
            agents=self.agents,
            shell=ProcessShell(log_dir=self.run_dir / "commands", marker={"OPENDEV_RUN": self.run_id}),
            emit=self._emit,
            clock=clock,
            ledger=self.ledger,
        )
        plain = RunSettings(
            run_id=self.run_id,
            run_dir=self.run_dir,
            repo=self.repo,
            base=self.keeper.base,
            specs=SPECS,
            models={Role.ACTION: "openai/x"},
            env=ENV,
            disk_floor_bytes=0,
        )
        return ports, replace(plain, **settings)

    def _emit(self, event: Event) -> None:
        self.events.append(event)


def plan(*tasks: dict[str, Any], **swarm: Any) -> SwarmPlan:
    """A plan with defaults for goal and branch."""
    filled = [{"goal": f"Do {task['id']}.", **task} for task in tasks]
    return SwarmPlan.model_validate({"swarm": {"into": "swarm/x", **swarm}, "task": filled})
