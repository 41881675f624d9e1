"""The spawn broker: caps, rights, isolation and background results of sub-agents (flow "spawn_subagent", SUB-05, 06, 09, 18)."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from ..agents.specs import effective, effective_budget
from ..core.agent import AgentReport, AgentSpec, AgentStatus, AgentTask, Budget, SpawnRequest
from ..core.approval import Mode
from ..core.chat import Message, Role, canonical
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event
from ..core.ids import new_id
from ..core.mail import Result
from ..store.session_files import SessionFiles
from .board import Board
from .hooks import RunHooks
from .inbox import Inbox
from .isolation import Isolation, Place
from .sides import HubPorts, HubSettings
from .state import fanout
from .state.board import Taken
from .state.fanout import Caps, Ended, Fanout, Grant, Refusal, Wish

TURN_S = 0.03  # calls of one turn arrive within one mail window
CHILD_TIMEOUT_S = 1800.0
ROSTER = 30  # sub-agents told about after a compaction
ROSTER_CHARS = 200
TIERS = ("haiku", "sonnet", "opus")


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """What the broker needs of the hub: run a task (with the word whether others run beside it), look a living agent up, and
    the seconds it has worked."""

    run: Callable[[AgentTask, bool], Awaitable[AgentReport]]
    task_of: Callable[[str], AgentTask | None]
    elapsed: Callable[[str], float]
    emit: Callable[[Event], None]
    board: Board
    hooks: RunHooks


class Broker:
    """Every refusal is an ``OpenDevError`` whose sentence the asking agent reads; there is no silent fall-back."""

    def __init__(self, settings: HubSettings, ports: HubPorts, hub: BrokerPorts) -> None:
        self._settings, self._ports, self._hub = settings, ports, hub
        self.specs = ports.specs
        caps = Caps(depth=settings.max_depth, total=settings.max_total, children=settings.max_children)
        self._fanout = Fanout(caps)
        self._inbox = Inbox(ports.run_dir / "reports.jsonl")
        self._background: dict[str, asyncio.Task[AgentReport]] = {}
        self._parents = self._inbox.parents()  # also of an earlier process of this run
        self._isolation = Isolation(ports.desk, hub.emit, ports.run_dir / "hooks")
        self._asking: dict[str, int] = {}

    async def spawn(self, parent_id: str, request: SpawnRequest) -> Result:
        """Run a sub-agent to its report, or start it in the background. Raises ``OpenDevError`` when it may not start."""
        parent = self._hub.task_of(parent_id)
        if parent is None:
            raise OpenDevError(ErrorKind.DENIED, f"Agent {parent_id} has ended and cannot start others.")
        earlier = await self._earlier(parent_id, request.resume) if request.resume else None
        spec = self._spec(
            parent, earlier.agent if earlier else request.agent
        )  # a resumed one stays what it was
        if _mode(parent, request) is Mode.PLAN and spec.writes:
            raise OpenDevError(
                ErrorKind.DENIED,
                f"Plan mode is on, and {spec.name} changes things.",
                "Spawn a Planner or an agent that only reads; present the plan first.",
            )
        child_id = request.resume or new_id()
        place = await self._isolation.place(self.specs[spec.name], spec)
        same = "" if earlier else canonical([parent_id, spec.name, request.prompt])
        if holder := self._hub.board.holder(same):
            raise OpenDevError(
                ErrorKind.DENIED,
                f"Your sub-agent {holder} works on exactly this task already.",
                f'Get its result by get_subagent_output(agent_id="{holder}").',
            )
        prompt = await self._hub.hooks.before(spec.name, request.prompt, parent.root)
        request = request.model_copy(update={"prompt": prompt})
        if self._hub.task_of(parent_id) is None:
            raise OpenDevError(ErrorKind.DENIED, f"Agent {parent_id} has ended while its hooks were asked.")
        depth = self._admit(parent, child_id)
        self._asking[parent_id] = self._asking.get(parent_id, 0) + 1
        try:
            history = await asyncio.to_thread(history_of, earlier.transcript) if earlier else ()
            task = self._task(parent, spec, request, child_id, depth, history)
            self._parents.pop(child_id, None)  # the newest stand last
            work = asyncio.get_running_loop().create_task(self._run(task, place))
        except BaseException:
            self._close(parent_id, child_id, None)
            raise
        work.add_done_callback(lambda done: self._close(parent_id, child_id, done))
        self._parents[child_id] = parent_id
        if request.background:
            self._background[child_id] = work
            self._claim(same, child_id, task, work)
            return Result(running=child_id)
        try:
            return Result(report=await work)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
            raise

    async def collect(self, parent_id: str, agent_id: str, wait_s: float) -> Result:
        """The report of a background sub-agent of this parent, or the word that it still runs."""
        if self._parents.get(agent_id, parent_id) != parent_id:
            raise OpenDevError(ErrorKind.DENIED, f"{agent_id} is not a sub-agent of yours.")
        work = self._background.get(agent_id)
        if work is not None:
            await asyncio.wait({work}, timeout=max(0.0, wait_s))
            if not work.done():
                return Result(running=agent_id)
            del self._background[agent_id]
        report = self._inbox.find(agent_id)
        if report is None:
            raise OpenDevError(
                ErrorKind.NOT_FOUND, f"No sub-agent has the id {agent_id}.", "Use the id that spawn gave."
            )
        await asyncio.to_thread(self._inbox.collected, agent_id)
        return Result(report=report)

    def roster(self, parent_id: str) -> str:
        """The sub-agents of ``parent_id``, one a line, newest last: what it needs to know of them after a compaction."""
        mine = [child for child, parent in self._parents.items() if parent == parent_id]
        return "\n".join(self._line(child) for child in mine[-ROSTER:])

    def _line(self, child_id: str) -> str:
        task, report = self._hub.task_of(child_id), self._inbox.find(child_id)
        if report is None or task is not None:
            name = task.spec.name if task else "agent"
            return f"- {child_id} ({name}): still works on it; get its result by get_subagent_output."
        where = f"; its work is on branch {report.branch}" if report.branch else ""
        said = " ".join(report.text.split())[:ROSTER_CHARS]
        return f"- {child_id} ({report.agent}): ended as {report.status.value}{where}. {said}"

    def waiting(self) -> tuple[AgentReport, ...]:
        """Reports that no agent has collected."""
        return self._inbox.waiting()

    async def close(self) -> None:
        """End what runs in the background."""
        for work in self._background.values():
            work.cancel()
        if self._background:
            await asyncio.wait(self._background.values())

    async def _earlier(self, parent_id: str, agent_id: str) -> AgentReport:
        if self._hub.task_of(agent_id) is not None:
            raise OpenDevError(
                ErrorKind.DENIED, f"{agent_id} still runs.", "Wait for its report before resuming it."
            )
        report = self._inbox.find(agent_id)
        if report is None or self._parents.get(agent_id, parent_id) != parent_id:
            raise OpenDevError(ErrorKind.NOT_FOUND, f"You have no earlier sub-agent with the id {agent_id}.")
        return report

    def _spec(self, parent: AgentTask, name: str) -> AgentSpec:
        spec = self.specs.get(name)
        if spec is None:
            near = difflib.get_close_matches(name, self.specs, n=3, cutoff=0.4)
            known = ", ".join(near or sorted(self.specs))
            raise OpenDevError(
                ErrorKind.NOT_FOUND, f"There is no agent type {name!r}.", f"Use one of: {known}."
            )
        return effective(parent.spec, spec)

    def _admit(self, parent: AgentTask, child_id: str) -> int:
        now = self._ports.clock.monotonic()
        may = parent.spec.tools is None or "spawn_subagent" in parent.spec.tools
        self._fanout, (decision,) = fanout.step(
            self._fanout, Wish(parent.id, parent.depth, child_id, may, now)
        )
        match decision:
            case Grant(_, depth):
                return depth
            case Refusal(_, cap, why):
                raise OpenDevError(ErrorKind.DENIED, f"The sub-agent was not started ({cap}).", why)

    def _claim(self, key: str, child_id: str, task: AgentTask, work: asyncio.Task[AgentReport]) -> None:
        """While it works in the background nobody is started for the same task again, as happens after a compaction."""
        board = self._hub.board
        taken = board.claim(key, child_id, task.budget.timeout_s or CHILD_TIMEOUT_S) if key else None
        if isinstance(taken, Taken):
            work.add_done_callback(lambda _: board.release(key, child_id, taken.version))

    def _close(self, parent_id: str, child_id: str, done: asyncio.Task[AgentReport] | None) -> None:
        ended = Ended(child_id, _progress(done), self._ports.clock.monotonic())
        self._fanout, _ = fanout.step(self._fanout, ended)
        self._asking[parent_id] = self._asking.get(parent_id, 1) - 1
        if not self._asking[parent_id]:
            del self._asking[parent_id]

    def _task(
        self,
        parent: AgentTask,
        spec: AgentSpec,
        request: SpawnRequest,
        id: str,
        depth: int,
        history: tuple[Message, ...],
    ) -> AgentTask:
        return AgentTask(
            id=id,
            run_id=parent.run_id,
            spec=spec.model_copy(update={"model": ""}),  # its model stands in ``models``, or was overridden
            prompt=request.prompt,
            root=parent.root,
            parent=parent.id,
            depth=depth,
            scope=parent.scope,
            mode=_mode(parent, request),
            approve=parent.approve,
            models=self._models(parent, spec, request.model),
            budget=self._budget(parent),
            scopes=parent.scopes,
            history=history,
            env=parent.env,
        )

    def _budget(self, parent: AgentTask) -> Budget:
        """What its parent has left. Money and tokens are kept by the ledger: the child is charged to its parent's scopes.

        Raises ``OpenDevError`` (budget) when there is no time left.
        """
        limit = parent.budget.timeout_s
        left = CHILD_TIMEOUT_S if limit is None else limit - self._hub.elapsed(parent.id)
        if left <= 0:
            raise OpenDevError(
                ErrorKind.BUDGET, "The sub-agent was not started.", "The time of this task is used up."
            )
        own = parent.budget.model_copy(update={"max_iterations": None})
        return effective_budget(own, Budget(timeout_s=left))

    def _models(self, parent: AgentTask, spec: AgentSpec, wanted: str) -> dict[Role, str]:
        name = wanted or spec.model
        model = self._settings.tiers.get(name, "" if name in TIERS else name)
        return {**parent.models, Role.ACTION: model} if model else parent.models

    async def _run(self, task: AgentTask, place: Place) -> AgentReport:
        await asyncio.sleep(TURN_S if self._settings.runtime == "auto" else 0)
        parallel = self._asking.get(task.parent, 0) > 1
        try:
            report = await self._isolation.run(task, place, lambda placed: self._hub.run(placed, parallel))
        except OpenDevError as error:
            report = AgentReport(id=task.id, agent=task.spec.name, status=AgentStatus.INFRA, error=error.info)
        await asyncio.to_thread(self._inbox.file, report, task.parent)
        self._hub.hooks.after(report, task.prompt, task.root)
        return report


def _progress(done: asyncio.Task[AgentReport] | None) -> bool | None:
    """Whether a sub-agent got anywhere: it ended well, or a tool of its ran. None: nothing follows from its end."""
    if done is None or done.cancelled() or done.exception() is not None:
        return None
    report = done.result()
    if report.status is AgentStatus.CANCELLED:
        return None
    return report.status is AgentStatus.DONE or report.tool_calls > 0


def _mode(parent: AgentTask, request: SpawnRequest) -> Mode:
    """Plan mode goes on in children, until the plan of the agent that talks to the user is approved (C-08)."""
    return parent.mode if parent.depth else request.mode or parent.mode


def history_of(transcript: str) -> tuple[Message, ...]:
    """The messages of a transcript, without system prompts. Raises ``OpenDevError`` (not_found) when there is none."""
    path = Path(transcript)
    if not transcript or not path.is_file():
        raise OpenDevError(ErrorKind.NOT_FOUND, "The agent's transcript is gone, so it cannot be resumed.")
    return SessionFiles(path.parent, path.stem).history()
