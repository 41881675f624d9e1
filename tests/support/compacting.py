"""Actors for tests of compaction: a model that takes its time over a summary, a worker that asks for its roster."""

import asyncio
from typing import Any

from opendev.actors.uplink import Uplink
from opendev.core.agent import AgentTask, SpawnRequest
from opendev.core.chat import ModelReply, ModelRequest, UserMessage

from .actors import ScriptedModel, ScriptedWorker

SLOW = "SLOW"


class SlowModel(ScriptedModel):
    """Sleeps for a minute over a text with the word SLOW in it."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        last = request.messages[-1]
        if isinstance(last, UserMessage) and SLOW in last.content:
            await asyncio.sleep(60)
        return await super().complete(request)


class RosterWorker(ScriptedWorker):
    """Also starts sub-agents in the background, asks for the roster and collects by position."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.children: list[str] = []

    async def step_background(self, task: AgentTask, uplink: Uplink, wish: dict[str, Any]) -> str:
        started = await uplink.spawn(SpawnRequest(call_id="b", background=True, **wish))
        assert isinstance(started, str), started
        self.children.append(started)
        return "started"

    async def step_roster(self, task: AgentTask, uplink: Uplink) -> str:
        text = await uplink.roster()
        for number, child in enumerate(self.children):
            text = text.replace(child, f"child{number}")
        return text

    async def step_collect(self, task: AgentTask, uplink: Uplink, number: int) -> str:
        report = await uplink.output(self.children[number], 10.0)
        return getattr(report, "text", str(report))
