"""Actor classes for tests, importable in Ray workers (PYTHONPATH is set by conftest): a probe, a scripted worker, a model."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

from opendev.actors.outbox import Outbox
from opendev.actors.postroom import sender_of
from opendev.actors.uplink import Uplink
from opendev.actors.worker import AGENT_MARK, RUN_MARK
from opendev.core.agent import AgentReport, AgentStatus, AgentTask, SpawnRequest
from opendev.core.approval import ApprovalRequest
from opendev.core.chat import (
    AssistantMessage,
    FinishReason,
    ModelReply,
    ModelRequest,
    Question,
    Role,
    Usage,
    UserMessage,
)
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from opendev.core.events import AssistantText, TextDelta
from opendev.core.interrupt import InterruptToken
from opendev.core.ports import Ref
from opendev.tools.shell.process import ProcessShell


class Probe:
    """Answers, fails, waits, streams, and tells about its process."""

    def __init__(self, *args: Any) -> None:
        if args == ("broken",):
            raise OpenDevError(ErrorKind.CONFIG, "The probe is broken on purpose.")
        self.args = args
        self.log: list[str] = []

    async def ping(self) -> dict[str, Any]:
        return {"pid": os.getpid()}

    async def echo(self, value: Any) -> Any:
        return value

    async def boom(self) -> None:
        raise ValueError("boom")

    async def refuse(self) -> None:
        raise OpenDevError(ErrorKind.SCOPE, "Not that file.", "Choose another.")

    async def wait(self, seconds: float) -> str:
        self.log.append("began")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise
        return "slept"

    async def events(self) -> list[str]:
        return self.log

    async def count(self, upto: int) -> Any:
        try:
            for number in range(upto):
                yield number
                await asyncio.sleep(0.005)
        finally:
            self.log.append("closed")

    async def where(self) -> dict[str, Any]:
        return {"cwd": str(Path.cwd()), "path": list(sys.path), "httpx": _origin("httpx"), "nice": os.nice(0)}

    async def through(self, other: Ref) -> Any:
        return await other.ask("ping")


def _origin(module: str) -> str:
    __import__(module)
    return str(sys.modules[module].__file__)


class ScriptedModel:
    """A model service that costs 10 tokens a call and says what it was told last."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.calls = 0

    async def ping(self) -> dict[str, Any]:
        return {"pid": os.getpid()}

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        last = request.messages[-1]
        said = last.content if isinstance(last, UserMessage) else ""
        return ModelReply(
            message=AssistantMessage(content=f"heard: {said[-200:]}"),
            finish=FinishReason.STOP,
            usage=Usage(input=7, output=3),
            model=request.model,
        )

    async def take_notices(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        self.calls = 0


class ScriptedWorker:
    """Runs a task whose prompt is a JSON list of steps, through a real uplink: ``[["say", "x"], ["sleep", 1], …]``."""

    def __init__(self, settings: dict[str, Any], post: Ref, model: Ref | None = None) -> None:
        self.settings, self.post, self.model = settings, post, model
        self.running: dict[str, InterruptToken] = {}
        self.told: list[str] = []

    async def ping(self) -> dict[str, Any]:
        return {"pid": os.getpid()}

    async def cancel(self, agent_id: str, reason: str) -> bool:
        return agent_id in self.running and (self.running[agent_id].set(reason) or True)

    async def deliver(self, agent_id: str, text: str) -> bool:
        if agent_id not in self.running:
            return False
        self.told.append(text)
        return True

    async def run(self, task_json: str) -> str:
        task = AgentTask.model_validate_json(task_json)
        token = self.running[task.id] = InterruptToken()
        outbox = Outbox(
            post=self.post,
            sender=sender_of(task.id),
            session=task.run_id,
            clock=SystemClock(),
            window_s=float(self.settings.get("window_s", 0.05)),
        )
        uplink = Uplink(outbox, model=self.model, models={Role.ACTION: "test/m"})
        status, said = AgentStatus.DONE, list[str]()
        try:
            for name, *args in json.JSONDecoder().raw_decode(task.prompt)[0]:  # the hub may add a note
                said.append(str(await getattr(self, f"step_{name}")(task, uplink, *args)))
                if token.is_set:
                    status = AgentStatus.CANCELLED
                    break
        finally:
            del self.running[task.id]
        report = AgentReport(
            id=task.id,
            agent=task.spec.name,
            status=status,
            text="\n".join(said),
            pid=os.getpid(),
            turns=len(said),
        )
        await uplink.finish(report)
        return report.to_json()

    async def step_say(self, task: AgentTask, uplink: Uplink, text: str) -> str:
        for piece in text:
            uplink(TextDelta(agent=task.id, text=piece))
        uplink(AssistantText(agent=task.id, text=text))
        return text

    async def step_sleep(self, task: AgentTask, uplink: Uplink, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    async def step_await(self, task: AgentTask, uplink: Uplink, path: str) -> str:
        """Until the test makes that file."""
        while not Path(path).exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.02)
        return "awaited"

    async def step_burn(self, task: AgentTask, uplink: Uplink, turns: int) -> str:
        total = 0
        for number in range(turns):
            total += number
        return str(total)

    async def step_crash(self, task: AgentTask, uplink: Uplink) -> str:
        raise ValueError("a defect")

    async def step_shell(self, task: AgentTask, uplink: Uplink, command: str) -> str:
        marker = {RUN_MARK: task.run_id, AGENT_MARK: task.id}
        shell = ProcessShell(log_dir=Path(self.settings["home"]) / "commands" / task.id, marker=marker)
        env = {"PATH": os.defpath}
        result = await shell.run(command, cwd=Path(task.root), env=env, idle_s=60, total_s=60)
        return result.text.strip()

    async def step_wait_told(self, task: AgentTask, uplink: Uplink) -> str:
        while not self.told:  # noqa: ASYNC110 - filled by a method of the same actor
            await asyncio.sleep(0.01)
        return self.told.pop()

    async def step_model(self, task: AgentTask, uplink: Uplink, text: str) -> str:
        request = ModelRequest(
            id="r", agent_id=task.id, model="test/m", messages=(UserMessage(content=text),)
        )
        reply = await uplink.complete(request)
        return reply.message.content if isinstance(reply, ModelReply) else reply.error.sentence()

    async def step_compact(self, task: AgentTask, uplink: Uplink, text: str) -> str:
        return str(await uplink.summarise((UserMessage(content=text),), "a.py: read"))

    async def step_approve(
        self, task: AgentTask, uplink: Uplink, command: str, keep: Literal["once", "always"] = "once"
    ) -> str:
        request = ApprovalRequest(
            id="mine", agent_id="forged", agent=task.spec.name, tool="run_command", arguments={"command": command},
            reason="r", card=command, keep=keep,
        )  # fmt: skip
        answer = await uplink.approve(request)
        return f"{answer.decision}: {answer.note}"

    async def step_question(self, task: AgentTask, uplink: Uplink, text: str) -> str:
        return str(await uplink.question((Question(text=text),)))

    async def step_spawn(self, task: AgentTask, uplink: Uplink, *wishes: dict[str, Any]) -> str:
        """All wishes at once, as the calls of one turn."""
        requests = [SpawnRequest(call_id=str(n), **wish) for n, wish in enumerate(wishes)]
        return "|".join([_short(o) for o in await asyncio.gather(*(uplink.spawn(r) for r in requests))])

    async def step_collect_last(
        self, task: AgentTask, uplink: Uplink, wait_s: float, wish: dict[str, Any]
    ) -> str:
        """Start in the background, look at once, then wait."""
        id = await uplink.spawn(SpawnRequest(call_id="b", background=True, **wish))
        assert isinstance(id, str), id
        now = await uplink.output(id, 0.0)
        return f"{now == id}|{_short(await uplink.output(id, wait_s))}"


def _short(outcome: AgentReport | str | ErrorInfo) -> str:
    if isinstance(outcome, AgentReport):
        return f"{outcome.status}:{outcome.text}:{outcome.branch}"
    return outcome.sentence() if isinstance(outcome, ErrorInfo) else outcome
