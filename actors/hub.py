"""The hub: the one place in the driver where agents are run, watched and ended, and where all mail and events pass (ACT-04)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from ..core.agent import AgentReport, AgentSpec, AgentTask
from ..core.chat import Usage
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import AgentFinished, Cost, Event, Notice
from ..core.mail import (
    Answer,
    AskApproval,
    AskRoster,
    AskUser,
    Body,
    Cancel,
    CollectOutput,
    Compact,
    CostReport,
    Down,
    Envelope,
    Failed,
    ModelAnswer,
    ModelCall,
    Ok,
    PeerMessage,
    Progress,
    Result,
    Spawn,
    Summary,
)
from ..core.ops import AnswerApproval, AnswerQuestion, Interrupt, Op, Prompt
from ..core.ports import Ref
from ..core.ticket import AgentCounts
from ..tools.shell.reap import HAS_PROC
from . import ray_session
from .asks import AskDesk
from .audit import Audit
from .board import Board, BoardPorts
from .broker import Broker, BrokerPorts
from .eventlog import EventLog
from .hooks import RunHooks
from .janitor_pipe import Janitor
from .permits import Permits
from .postroom import Postroom, agent_of
from .runs import Live, RunPorts, failure, reap, verdict, work
from .sides import HubPorts, HubSettings, Sides, SidesPorts
from .state import supervision
from .state.supervision import Bury, HostDown, Over, Placed, Started, Stop, StopAsked, Tree
from .worker import AGENT_MARK, RUN_MARK

COOPERATE_S = 0.25  # how long a flagged agent may end by itself before its call is cancelled
DEAD_S = 10.0
PROMPTS = 100


class Hub:
    """One run's hub, in both runtimes. Its folder gets ``events.jsonl`` (numbered), ``mail.jsonl`` (audit) and
    ``reports.jsonl`` (results of sub-agents)."""

    def __init__(self, settings: HubSettings, ports: HubPorts) -> None:
        self._settings, self._ports = settings, ports
        folder, run, clock = ports.run_dir, settings.run_id, ports.clock
        self._events = EventLog(folder / "events.jsonl", run_id=run, clock=clock, audit=Audit(ports.history))
        self._asks = AskDesk(self.emit, clock, settings.approval_timeout_s, ports.remember)
        self._permits = Permits(settings.max_concurrent, lambda: self._sides.stir())
        self._postroom = Postroom(
            path=folder / "mail.jsonl", session=run, clock=clock, take=self._take, reply=self._reply
        )
        self.board = Board(BoardPorts(lambda: self.living, self.deliver, clock))
        env = {**ports.worker.get("child_env", {}), RUN_MARK: run}
        self._hooks = RunHooks(settings.hooks, session=run, env=env, emit=self.emit)
        hub = BrokerPorts(self._run, self._task_of, self._elapsed, self.emit, self.board, self._hooks)
        self._broker = Broker(settings, ports, hub)
        self._janitor = Janitor()
        self._sides = Sides(
            settings,
            ports,
            self._postroom,
            SidesPorts(self.emit, self._host_down, self._janitor.remove_on_exit, self._permits.holds),
        )
        self._tree = Tree()
        self._live: dict[str, Live] = {}
        self._prompts: asyncio.Queue[str] = asyncio.Queue(PROMPTS)
        self._total, self._calls, self._spawned = Usage(), 0, 0
        self._pids: dict[int, None] = {}
        self._janitor_up = self._stopped = False

    @property
    def model(self) -> Ref:
        """The run's model service (``open_scope``, ``totals``)."""
        return self._sides.model

    @property
    def counts(self) -> AgentCounts:
        """Agents started, at work at once, and the processes they ran in."""
        return AgentCounts(spawned=self._spawned, peak=self._permits.peak, pids=tuple(self._pids))

    @property
    def total(self) -> tuple[Usage, int]:
        """What the run has cost so far, and in how many model calls."""
        return self._total, self._calls

    async def start(self) -> None:
        """Start the janitor, the logs and the runtime that was asked for. Raises ``OpenDevError`` (infra)."""
        await asyncio.to_thread(self._ports.run_dir.mkdir, mode=0o700, parents=True, exist_ok=True)
        await self._events.start()
        if HAS_PROC:
            marker = {RUN_MARK: self._settings.run_id}
            await asyncio.to_thread(self._janitor.start, marker, ray_session.base_dir())
            self._janitor_up = True
        await self._sides.start()
        self._hooks.session_started(self._settings.startup)

    async def stop(self) -> None:
        """End all agents, actors and marked processes; close the logs. Idempotent."""
        if self._stopped:
            return
        self._stopped = True
        self._asks.close()
        for node in self._tree.nodes:
            if not node.parent:
                await self.cancel(node.agent, "the run is being stopped")
        await self._broker.close()
        await self._hooks.session_ended()
        try:
            await self._sides.close()
        except OpenDevError as error:
            self.emit(Notice(level="error", text=error.info.sentence()))
        await reap({RUN_MARK: self._settings.run_id}, self.emit)
        await self._postroom.close()
        await self._events.close()
        if self._janitor_up:
            await asyncio.to_thread(self._janitor.close, clean=True)

    @property
    def living(self) -> tuple[AgentTask, ...]:
        """The tasks of the agents that live, in the order of their start."""
        return tuple(live.task for live in self._live.values())

    def host_of(self, agent_id: str) -> Ref | None:
        """The worker an agent runs in; None while it waits for one, or when it is over."""
        live = self._live.get(agent_id)
        return live.host.ref if live is not None and live.host is not None else None

    async def ensure_ray(self) -> bool:
        """Start Ray now. False when it cannot be had; agents then run in this process and a notice says why."""
        return await self._sides.ensure_ray()

    async def refit(self, worker: dict[str, Any], specs: Mapping[str, AgentSpec]) -> None:
        """The agents that are started from now on are built from these settings, and may be of these types (REPL-06)."""
        self._broker.specs = specs
        await self._sides.refit(worker)

    async def run_agent(self, task: AgentTask) -> AgentReport:
        """Run one agent to its end. Whatever happens is a report; only cancellation of the caller is raised."""
        return await self._hooks.around(task, lambda task: self._run(task, parallel=True))

    async def cancel(self, agent_id: str, reason: str) -> None:
        """Stop an agent with its descendants; returns when they and their process groups are dead."""
        subtree = self._tree.subtree(agent_id)
        self._tree, commands = supervision.step(self._tree, StopAsked(agent_id, reason))
        await self._carry_out(commands)
        await self._gone(tuple(n.agent for n in subtree))

    async def deliver(self, agent_id: str, text: str) -> bool:
        """Give a running agent a message for its next turn. False when it does not run or its inbox is full."""
        live = self._live.get(agent_id)
        if live is None or live.host is None:
            return False
        try:
            return bool(await live.host.ref.ask("deliver", agent_id, text))
        except OpenDevError:
            return False

    async def next_prompt(self) -> str:
        """The next prompt that no running main agent could take."""
        return await self._prompts.get()

    def emit(self, event: Event) -> None:
        """Number, store and show an event; never blocks, never raises."""
        self._events.emit(event)

    def subscribe(self, after_seq: int = 0) -> AsyncIterator[Event]:
        """A snapshot of the numbered events after ``after_seq``, then the live tail, until ``stop``."""
        return self._events.subscribe(after_seq)

    @property
    def began(self) -> int:
        """The last event of earlier processes of this run: ``subscribe(hub.began)`` gives those of this one."""
        return self._events.began

    def attach(self) -> Callable[[], None]:
        """An interface that can answer questions is there; call the result when it leaves. With none attached every
        question is answered "nobody" at once."""
        return self._asks.attach()

    async def submit(self, op: Op) -> None:
        """Do what an interface asks. Raises ``OpenDevError`` (usage) for an answer that does not count."""
        match op:
            case Prompt(text=text):
                main = next((n.agent for n in self._tree.nodes if not n.parent), "")
                text = await self._hooks.typed(text) if main else text  # else they are asked when it is run
                if text and not (main and await self.deliver(main, text)):
                    await self._prompts.put(text)
            case Interrupt(agent_id=agent):
                self._hooks.interrupt()
                wanted = [agent] if agent else [n.agent for n in self._tree.nodes if not n.parent]
                for one in wanted:
                    for node in self._tree.subtree(one):
                        self._asks.abandon(node.agent)  # an open question goes first (LOOP-18)
                await asyncio.gather(*(self.cancel(one, "interrupted by the user") for one in wanted))
            case AnswerApproval(request_id=id, answer=answer):
                self._asks.answer(id, answer)
            case AnswerQuestion(request_id=id, texts=texts):
                self._asks.answer(id, texts)

    def uncollected(self) -> tuple[AgentReport, ...]:
        """Reports of sub-agents that no agent has collected, also those of an earlier process of this run."""
        return self._broker.waiting()

    async def _run(self, task: AgentTask, parallel: bool) -> AgentReport:
        if task.id in self._live or self._stopped:
            return failure(
                task, ErrorKind.INTERNAL, f"Agent {task.id} runs already, or the run is being stopped."
            )
        live = self._live[task.id] = Live(task, parallel=parallel, since=self._ports.clock.monotonic())
        self._tree, _ = supervision.step(self._tree, Started(task.id, task.parent))
        self._spawned += 1
        ports = RunPorts(
            self._permits, self._sides, self.emit, self._placed, lambda one: self._tree.above(one)
        )
        live.call = asyncio.get_running_loop().create_task(work(live, ports))
        try:
            await asyncio.wait({live.call})
        except asyncio.CancelledError:
            await self._carry_out((Stop(task.id, live.stopping or "its caller went away"),))
            raise
        finally:
            report = await self._end(live)
        return report

    async def _end(self, live: Live) -> AgentReport:
        """Give everything back: descendants, questions, permit, host, and the processes it left running; then tell."""
        task = live.task
        self._tree, commands = supervision.step(self._tree, Over(task.id))
        await self._carry_out(commands)
        await self._gone(tuple(c.agent for c in commands))
        self._asks.abandon(task.id)
        self._permits.end(task.id)
        if live.host is not None and live.pool is not None:
            if live.broken and live.host.agents == {task.id}:
                await live.pool.discard(live.host)
            live.pool.release(live.host, task.id, keep=task.stream)
        if live.broken or not task.stream:  # the foreground agent's servers may be for its next turn
            await reap({RUN_MARK: self._settings.run_id, AGENT_MARK: task.id}, self.emit)
        self._postroom.forget(task.id)
        report = verdict(live, self._ports.clock)
        self.emit(
            AgentFinished(
                agent=task.id,
                name=task.spec.name,
                status=report.status,
                turns=report.turns,
                usage=report.usage,
                error=report.error,
            )
        )
        del self._live[task.id]
        live.done.set()
        return report

    async def _gone(self, agents: tuple[str, ...]) -> None:
        """Wait until these agents have given everything back."""
        waits = [live.done.wait() for agent in agents if (live := self._live.get(agent)) is not None]
        try:
            async with asyncio.timeout(DEAD_S):
                await asyncio.gather(*waits)
        except TimeoutError:
            left = ", ".join(agent for agent in agents if agent in self._live)
            self.emit(Notice(level="error", text=f"These agents did not end within {DEAD_S:.0f} s: {left}."))

    async def _carry_out(self, commands: tuple[supervision.Command, ...]) -> None:
        stops = [c for c in commands if isinstance(c, Stop)]
        await asyncio.gather(*(self._flag(stop) for stop in stops))
        await asyncio.gather(*(self._stop_one(stop) for stop in stops))
        for command in commands:
            if isinstance(command, Bury) and (live := self._live.get(command.agent)) is not None:
                live.died = command.reason
                self._asks.abandon(command.agent)
                if live.call is not None:
                    live.call.cancel()

    async def _stop_one(self, stop: Stop) -> None:
        """After the flag the call, then its processes; partial work stays where it is."""
        live = self._live.get(stop.agent)
        if live is None or live.call is None:
            return
        if live.host is not None and not live.call.done():
            await asyncio.wait({live.call}, timeout=COOPERATE_S)
        if not live.call.done():
            live.broken = True
            live.call.cancel()
        await reap({RUN_MARK: self._settings.run_id, AGENT_MARK: stop.agent}, self.emit)
        await asyncio.wait({live.call})

    async def _flag(self, stop: Stop) -> None:
        """Tell the whole tree before the first of it ends: a parent must not go on with what its children leave."""
        live = self._live.get(stop.agent)
        if live is None:
            return
        live.stopping = live.stopping or stop.reason
        try:
            async with asyncio.timeout(COOPERATE_S):
                if live.host is not None:
                    await live.host.ref.ask("cancel", stop.agent, stop.reason)
        except (OpenDevError, TimeoutError):
            return

    async def _host_down(self, down: Down) -> None:
        self._tree, commands = supervision.step(self._tree, HostDown(down.name, down.reason))
        await self._carry_out(commands)

    def _placed(self, live: Live) -> None:
        if live.host is not None:
            self._tree, _ = supervision.step(self._tree, Placed(live.task.id, live.host.ref.name))
            self._pids[live.host.pid] = None

    def _task_of(self, agent_id: str) -> AgentTask | None:
        live = self._live.get(agent_id)
        return live.task if live else None

    def _elapsed(self, agent_id: str) -> float:
        live = self._live.get(agent_id)
        return self._ports.clock.monotonic() - live.since if live else 0.0

    async def _take(self, envelope: Envelope) -> None:
        agent, body = agent_of(envelope.sender), envelope.body
        if isinstance(body, Progress):
            self.emit(body.event.model_copy(update={"agent": agent}))
        elif isinstance(body, CostReport):
            self._total, self._calls = self._total + body.usage, self._calls + 1
            self.emit(Cost(agent=agent, total=self._total, calls=self._calls))

    async def _reply(self, envelope: Envelope) -> Body:
        agent, body = agent_of(envelope.sender), envelope.body
        answer: Body
        match body:
            case Spawn():
                answer = await self._spawn(agent, body)
            case CollectOutput():
                async with self._permits.lent(agent):
                    answer = await self._broker.collect(agent, body.agent_id, body.wait_s)
            case AskApproval():
                answer = Answer(approval=await self._asks.approve(agent, body.request))
            case AskUser():
                answer = Answer(texts=await self._asks.question(agent, body.questions))
            case ModelCall():
                answer = ModelAnswer(reply=await self.model.ask("complete", body.request))
            case Compact():
                answer = await self._sides.compact(body)
            case AskRoster():
                answer = Summary(text=self._broker.roster(agent))
            case _:
                answer = await self._reply_rest(agent, envelope)
        return answer

    async def _reply_rest(self, agent: str, envelope: Envelope) -> Body:
        body = envelope.body
        answer: Body = Ok()
        match body:
            case Result():
                if body.report is not None and (live := self._live.get(agent)) is not None:
                    live.early = body.report
            case Cancel():
                if body.agent_id == agent or all(n.agent != body.agent_id for n in self._tree.subtree(agent)):
                    return _failed(ErrorKind.DENIED, f"{body.agent_id} is not a sub-agent of yours.")
                await self.cancel(body.agent_id, body.reason)
            case PeerMessage():
                if not await self.deliver(envelope.to, body.text):
                    answer = _failed(
                        ErrorKind.NOT_FOUND, f"{envelope.to} does not run, or takes no messages."
                    )
            case _:
                answer = _failed(ErrorKind.INTERNAL, f"The hub does not answer letters of kind {body.kind}.")
        return answer

    async def _spawn(self, agent: str, body: Spawn) -> Result:
        if body.request.background:
            return await self._broker.spawn(agent, body.request)
        async with self._permits.lent(agent):  # it only waits: its children may use its permit
            return await self._broker.spawn(agent, body.request)


def _failed(kind: ErrorKind, message: str) -> Failed:
    return Failed(error=ErrorInfo(kind=kind, message=message))
