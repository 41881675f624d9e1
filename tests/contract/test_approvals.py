"""Approvals across actors, on both runtimes: the same question of several agents, a session's answer, "always" on disk (APR-06, APR-09)."""

import asyncio
from pathlib import Path

import pytest
from opendev.core.approval import ApprovalAnswer, ApprovalRequest
from opendev.core.events import ApprovalAsked
from opendev.core.ops import AnswerApproval
from opendev.core.ports import Runtime
from support.runtimes import events_of, hub_on, task_of
from support.waiting import until


def answer(asked: ApprovalRequest, decision: str) -> AnswerApproval:
    given = {"decision": decision, "digest": asked.digest, "by": "me"}
    return AnswerApproval(request_id=asked.id, answer=ApprovalAnswer.model_validate(given))


@pytest.mark.req("APR-06", "APR-09", "ACT-08")
async def test_agents_that_ask_the_same_are_one_question(runtime: Runtime, tmp_path: Path) -> None:
    async with hub_on(runtime, tmp_path, max_concurrent=4) as hub:
        detach = hub.attach()
        asked: list[ApprovalRequest] = []

        async def watch() -> None:
            async for event in hub.subscribe():
                if isinstance(event, ApprovalAsked):
                    asked.append(event.request)

        watching = asyncio.create_task(watch())
        runs = [
            asyncio.create_task(hub.run_agent(task_of("r", tmp_path, ["approve", "npm install x", "always"])))
            for _ in range(3)
        ]
        await until(lambda: len(asked) == 1 and len(hub.living) == 3)
        await asyncio.sleep(0.2)  # the others ask, too
        assert len(asked) == 1
        await hub.submit(answer(asked[0], "session"))
        assert [(await run).text.split(":")[0] for run in runs] == ["session"] * 3
        again = await hub.run_agent(task_of("r", tmp_path, ["approve", "npm install y", "always"]))
        assert again.text.startswith("session")
        other = asyncio.create_task(
            hub.run_agent(task_of("r", tmp_path, ["approve", "npm publish", "always"]))
        )
        await until(lambda: len(asked) == 2)
        await hub.submit(answer(asked[1], "deny"))
        assert (await other).text.startswith("deny")
        detach()
        watching.cancel()
    assert len([e for e in await events_of(hub) if e.kind == "approval_answered"]) == 5
