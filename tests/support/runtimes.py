"""Runtimes and hubs for tests: one Ray a test session, shared; each test ends only the actors it started."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from opendev.actors.hub import Hub
from opendev.actors.local_runtime import LocalRuntime
from opendev.actors.ray_runtime import RayRuntime
from opendev.actors.sides import HubPorts, HubSettings
from opendev.core.agent import AgentSpec, AgentTask
from opendev.core.clock import SystemClock
from opendev.core.events import Event
from opendev.core.ids import new_id
from opendev.core.mail import Down
from opendev.core.ports import LeaseDesk, Ref, Runtime

PROBE = "support.actors:Probe"
SPECS = {
    "Branch": AgentSpec(
        name="Branch",
        description="writes, starts others",
        tools=("write_file", "spawn_subagent"),
        writes=True,
    ),
    "Reviewer": AgentSpec(name="Reviewer", description="reviews", tools=("read_file", "run_command")),
    "Reader": AgentSpec(name="Reader", description="reads", tools=("read_file", "spawn_subagent")),
    "Leaf": AgentSpec(name="Leaf", description="reads, starts nobody", tools=("read_file",)),
    "Writer": AgentSpec(
        name="Writer", description="writes", tools=("write_file", "run_command"), writes=True
    ),
}
MAIN = AgentSpec(name="Main", description="main", tools=None, writes=True)


class SharedRuntime:
    """A view of a runtime that outlives the test. Names are made unique; ``stop`` ends what was started here."""

    def __init__(self, inner: RayRuntime) -> None:
        self.inner = inner
        self.mark = new_id(5)
        self.refs: list[Ref] = []

    @property
    def kind(self) -> Literal["local", "ray"]:
        return self.inner.kind

    async def start(self) -> None:
        await self.inner.start()

    async def spawn(self, cls: str, *args: Any, name: str) -> Ref:
        ref = await self.inner.spawn(cls, *args, name=f"{name}-{self.mark}")
        self.refs.append(ref)
        return ref

    def watch(self, ref: Ref, on_down: Callable[[Down], Awaitable[None]]) -> None:
        self.inner.watch(ref, on_down)

    async def kill(self, ref: Ref) -> None:
        await self.inner.kill(ref)

    async def stop(self) -> None:
        for ref in self.refs:
            await self.inner.kill(ref)


def script(*steps: list[Any]) -> str:
    """The prompt that makes ``ScriptedWorker`` take these steps."""
    return json.dumps(steps)


def task_of(run_id: str, root: Path, *steps: list[Any], **fields: Any) -> AgentTask:
    """A main agent's task with a script."""
    base: dict[str, Any] = {
        "id": new_id(),
        "run_id": run_id,
        "spec": MAIN,
        "prompt": script(*steps),
        "root": str(root),
    }
    return AgentTask.model_validate({**base, **fields})


@asynccontextmanager
async def hub_on(
    runtime: Runtime,
    tmp: Path,
    *,
    desk: LeaseDesk | None = None,
    specs: Mapping[str, AgentSpec] = SPECS,
    model: Mapping[str, Any] | None = None,
    agent: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Hub]:
    """A started hub on ``runtime`` with the scripted worker and model; stopped at the end. ``model`` and ``agent`` are settings
    of the real model service and the real worker's agents."""
    local = runtime.kind == "local"
    base: dict[str, Any] = {
        "run_id": new_id(),
        "runtime": runtime.kind,
        "warm_hosts": 0,
        "worker": "support.actors:ScriptedWorker",
        "model_service": "support.actors:ScriptedModel",
    }
    ports = HubPorts(
        clock=SystemClock(),
        run_dir=tmp / "run",
        worker={
            "home": str(tmp),
            "run_id": settings.get("run_id", "test"),
            **({"agent": dict(agent)} if agent else {}),
        },
        model=dict(model or {}),
        specs=specs,
        desk=desk,
        make_ray=lambda _: runtime,
        local=runtime if local else LocalRuntime(),
    )
    hub = Hub(HubSettings.model_validate({**base, **settings}), ports)
    try:
        await hub.start()
        yield hub
    finally:
        await hub.stop()


async def events_of(hub: Hub) -> list[Event]:
    """All durable events so far (of a stopped hub: all there were)."""
    return [event async for event in hub.subscribe()]
