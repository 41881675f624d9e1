"""Memory beside the loop: the summary for thinking and the playbook; never in the way of the task (MEM-01..12)."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from ..context.composer import standalone
from ..context.episodic import EpisodicSummary, thinking_context
from ..context.playbook import LESSONS, Bullet, Playbook, select
from ..context.playbook_file import PlaybookFile
from ..core.agent import AgentTask
from ..core.chat import (
    AssistantMessage,
    Message,
    MessageClass,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    Usage,
    UserMessage,
)
from ..core.errors import OpenDevError
from ..core.events import Notice
from ..core.ids import new_id
from ..llm.roles import model_for
from ..store.layout import Layout
from .learning import curate, learn, look_over, looked_over, reflect
from .settings import AgentPorts, AgentSettings
from .specs import MAIN

REFLECT_EVERY = 5  # agent messages (MEM-08)
MAX_TOKENS = 1_500  # of one answer
BUDGET_SHARE = 0.1  # of the task's own budget
_SUMMARY_TOKENS = 400


class Memory:
    """One run's memory. Its model calls are the compact model's, are charged to the task's scopes and have a cap of their
    own; whatever fails in here costs the memory and nothing else (MEM-12). Implements ``ThinkingInput``.
    """

    def __init__(self, task: AgentTask, settings: AgentSettings, ports: AgentPorts) -> None:
        self._task, self._ports = task, ports
        self._limit, self._share = settings.memory.max_tokens, settings.memory.share
        self._finish_s = settings.memory.finish_s
        self._model = _compact_model(task, settings)
        self._uses = settings.memory.playbook and _has_playbook(task)
        self._learns = settings.memory.learn
        self._file: PlaybookFile | None = None
        self._summary = EpisodicSummary()
        self._shown: tuple[Bullet, ...] = ()
        self._seen: int | None = None  # agent messages up to the last reflection
        self._jobs: dict[str, asyncio.Task[None]] = {}
        self.usage = Usage()
        self.calls = 0

    def load(self) -> None:
        """Choose the bullets for this task. Blocking: call it in a thread, once, before the run."""
        if not self._uses:
            return
        layout = Layout(self._ports.home)
        try:
            folder, session = layout.project(Path(self._task.root)), layout.run(self._task.run_id or "run")
        except OpenDevError:
            return
        self._file = PlaybookFile(folder / "playbook.json", session / "playbook.json")
        playbook = self._file.load()
        self._shown = select(playbook, self._task.prompt, self._ports.clock.now())
        self._file.keep_snapshot(playbook)

    def bullets(self) -> str:
        """The section of the system prompt with the chosen bullets (RET-03, source 1); empty when there are none."""
        if not self._shown:
            return ""
        lines = "\n".join(f"- {bullet.text}" for bullet in self._shown)
        return f"# Notes from earlier work in this project\nThey may be out of date, and they grant nothing.\n{lines}"

    def render(self, history: Sequence[Message]) -> str:
        """Input of a thinking call. A summary that is due is begun here and used by a later call (MEM-03)."""
        if self._summary.due(history) and self._may_run("summary"):
            self._start("summary", self._summarise(self._summary.begin(history)))
        return thinking_context(history, self._summary.text)

    def note(self, history: Sequence[Message], used: Usage, *, final: bool = False) -> None:
        """Look at the conversation after a turn; every five agent messages a reflection begins, beside the loop or at its end.

        ``used`` is what the work itself has cost. After the first reflection memory waits while it has had more than its share of
        that; the steps are not lost, the next one looks back at all of them.
        """
        if self._file is None:
            return
        answers = [n for n, message in enumerate(history) if isinstance(message, AssistantMessage)]
        if self._seen is None:
            self._seen = len(answers)  # of an earlier run
        if not (self._learns == "beside" or (self._learns == "after" and final)):
            return
        if len(answers) - self._seen < REFLECT_EVERY or not self._may_run("reflection"):
            return
        if self.usage.input + self.usage.output > self._share * (used.input + used.output):
            return
        steps = tuple(history[answers[self._seen] :])
        self._seen = len(answers)
        self._start("reflection", self._learn(self._file, steps))

    async def close(self, *, wait: bool) -> None:
        """End what runs; with ``wait`` a reflection may take a moment to finish: the answer is out already."""
        jobs = set(self._jobs.values())
        if jobs and wait:
            await asyncio.wait(jobs, timeout=self._finish_s)
        for job in jobs:
            job.cancel()
        if jobs:
            await asyncio.wait(jobs)

    async def _summarise(self, told: str) -> None:
        messages = (
            SystemMessage(stable=standalone("episodic")),
            UserMessage(content=f"<conversation>\n{told}\n</conversation>", msg_class=MessageClass.INTERNAL),
        )
        self._summary.take(await self._ask(messages, _SUMMARY_TOKENS))

    async def _learn(self, file: PlaybookFile, steps: tuple[Message, ...]) -> None:
        reflection = await reflect(self._ask, self._task.prompt, steps, self._shown)
        if reflection is None:
            return
        before = await asyncio.to_thread(file.load)
        now = self._ports.clock.now()
        batch = await curate(self._ask, before, reflection, now) if reflection.correct_approach else None
        after = await asyncio.to_thread(learn, file, self._task.prompt, reflection, batch, now)
        if len(after.lessons) >= LESSONS:
            batch = await look_over(self._ask, after, now)
            after = await asyncio.to_thread(looked_over, file, after.lessons, batch, now)
        self._tell(before, after)

    def _tell(self, before: Playbook, after: Playbook) -> None:
        old = {bullet.id for bullet in before.bullets}
        new = [bullet.text for bullet in after.bullets if bullet.id not in old]
        if new:
            self._ports.emit(
                Notice(
                    run=self._task.run_id, agent=self._task.id, level="info", text=f"Noted: {'; '.join(new)}"
                )
            )

    async def _ask(self, messages: tuple[Message, ...], max_tokens: int = MAX_TOKENS) -> str:
        """The compact model's answer; empty when it failed or the memory has used up its tokens."""
        if self._spent():
            return ""
        request = ModelRequest(
            id=new_id(),
            agent_id=self._task.id,
            model=self._model,
            messages=messages,
            role=Role.COMPACT,
            max_tokens=max_tokens,
            scopes=self._task.scopes,
        )
        reply = await self._ports.model.complete(request)
        self.usage += reply.usage
        self.calls += 1
        return reply.message.content if isinstance(reply, ModelReply) else ""

    def _may_run(self, name: str) -> bool:
        running = self._jobs.get(name)
        return bool(self._model) and not self._spent() and (running is None or running.done())

    def _spent(self) -> bool:
        """Whether the memory has had its tokens, or its share of what the task as a whole may use."""
        budget, tokens = self._task.budget, self.usage.input + self.usage.output
        return (
            tokens >= self._limit
            or (budget.max_tokens is not None and tokens >= BUDGET_SHARE * budget.max_tokens)
            or (budget.max_cost_usd is not None and self.usage.cost_usd >= BUDGET_SHARE * budget.max_cost_usd)
        )

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        job = self._jobs[name] = asyncio.get_running_loop().create_task(_harmless(work))
        job.add_done_callback(lambda _: work.close())  # it may be cancelled before its first step


async def _harmless(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except (OpenDevError, OSError):
        return  # the disk, a template: the task does not depend on memory (MEM-12)


def _compact_model(task: AgentTask, settings: AgentSettings) -> str:
    """The model of memory work; empty where there is none, and for recipes."""
    if task.recipe:
        return ""
    try:
        return model_for(Role.COMPACT, {**settings.models, **task.models}, lambda _model: False)
    except OpenDevError:
        return ""


def _has_playbook(task: AgentTask) -> bool:
    """The main agent only: sub-agents and tickets work in other folders, and on a part."""
    return task.spec.name == MAIN and not task.parent and not task.recipe
