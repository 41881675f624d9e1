"""A worker hosts agents: builds each one from its task by the agents' factory, runs it, and passes cancels and messages on."""

import contextlib
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.settings import AgentPorts, AgentSettings
from ..configs.schema import SandboxSettings
from ..core.agent import AgentStatus, AgentTask
from ..core.clock import SystemClock, iso
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import ProcessChanged
from ..core.interrupt import InterruptToken
from ..core.model import Frozen
from ..core.ports import ProcessInfo, Ref
from ..policy.redact import redact
from .outbox import WINDOW_S, Outbox
from .postroom import sender_of
from .servers import SharedServers
from .uplink import Uplink

if TYPE_CHECKING:
    from ..tools.shell.background import BackgroundTasks

RUN_MARK, AGENT_MARK = (
    "OPENDEV_RUN",
    "OPENDEV_AGENT",
)  # in the environment of every child, so that it can be reaped

LATE_S = 1.0  # how long hooks may go on after an agent that did not end well: the hub waits no longer
_SHOWN = 4_000  # characters of a command in an event


class WorkerSettings(Frozen):
    """What every worker of a run gets; plain data. ``child_env`` holds no keys; ``home`` keeps transcripts and logs."""

    run_id: str
    home: str
    child_env: dict[str, str] = {}
    agent: AgentSettings = AgentSettings()
    diagnostics: bool = True  # of language servers, after edits (FIL-10)
    sandbox: SandboxSettings = SandboxSettings()
    keep: bool = (
        False  # the foreground agent's background tasks live on until its next run: it is a conversation
    )
    window_s: float = WINDOW_S  # 0 in process: nothing is saved by waiting there


class Worker:
    """``post`` is the hub's mail (the mailbox actor under Ray), ``model`` the model service if one runs beside."""

    def __init__(self, settings: dict[str, Any], post: Ref, model: Ref | None = None) -> None:
        self._settings = WorkerSettings.model_validate(settings)
        self._post, self._model = post, model
        self._clock = SystemClock()
        self._running: dict[str, tuple[Any, InterruptToken]] = {}
        self._kept: dict[str, BackgroundTasks] = {}  # background tasks of the one foreground agent
        env = {**self._settings.child_env, RUN_MARK: self._settings.run_id}
        self._servers = SharedServers(self._settings.agent.mcp, env, self._clock)

    async def ping(self) -> dict[str, Any]:
        """Its process, and the agents that live here."""
        return {"pid": os.getpid(), "agents": sorted(self._running)}

    async def configure(self, settings: dict[str, Any]) -> None:
        """Build the next agents from other ``WorkerSettings``; who runs is not disturbed."""
        self._settings = WorkerSettings.model_validate(settings)
        await self._servers.fit(self._settings.agent.mcp)

    async def close(self) -> None:
        """End what was kept for the foreground agent's next run."""
        await self._servers.close()
        for tasks in self._kept.values():
            with contextlib.suppress(OpenDevError):  # the hub ends, and names, what would not die
                await tasks.close()

    async def run(self, task_json: str) -> str:
        """Run one ``AgentTask`` to its end; its ``AgentReport`` as JSON. Raises ``OpenDevError``."""
        from ..agents.factory import AgentFactory  # heavy: a warm host imports it at its first task
        from ..tools.hooked import AgentHooks
        from ..tools.hooks import FINISH_S, HookEngine
        from ..tools.lsp.symbols import LspSymbols

        task = AgentTask.model_validate_json(task_json)
        if task.id in self._running:
            raise OpenDevError(ErrorKind.INTERNAL, f"Agent {task.id} runs in this host already.")
        token = InterruptToken()
        uplink = self._uplink(task)
        home = Path(self._settings.home)
        marks = {RUN_MARK: self._settings.run_id, AGENT_MARK: task.id}
        env = {**self._settings.child_env, **marks}
        symbols = LspSymbols(
            env=env,
            cache_dir=home / "cache",
            path=env.get("PATH", os.defpath),
            diagnostics=self._settings.diagnostics and not task.recipe,  # nobody reads them there
        )
        sandbox = self._sandbox(task)
        ports = self._ports(task, uplink, symbols, marks, sandbox)
        hooks = HookEngine(self._settings.agent.hooks, session=task.run_id, env=env, emit=uplink)
        tasks = self._tasks(task, marks, sandbox)
        tasks.on_change = partial(self._tell_change, task, uplink)  # of this run, whichever started them
        try:
            keep = self._settings.keep and task.stream
            async with self._servers.used_by(task, uplink, keep=keep) as mcp:
                ports = replace(ports, mcp=mcp, processes=tasks, hooks=AgentHooks(hooks, Path(task.root)))
                factory = AgentFactory(settings=self._settings.agent, ports=ports)
                agent = factory.agent_for(task)
                self._running[task.id] = (agent, token)
                report = await agent.run(task, token)
                done = report.status is AgentStatus.DONE  # else it is stopped, or late already
                await hooks.close(FINISH_S if done else LATE_S)
        finally:
            self._running.pop(task.id, None)
            await hooks.close(0)
            await symbols.close()
            if task.id not in self._kept:
                with contextlib.suppress(OpenDevError):  # the hub ends, and names, what would not die
                    await tasks.close()
        report = report.model_copy(update={"pid": os.getpid()})
        await uplink.finish(report)
        return report.to_json()

    async def cancel(self, agent_id: str, reason: str) -> bool:
        """Set the agent's interrupt token; it stops at its next boundary. False when it does not run here."""
        found = self._running.get(agent_id)
        return found is not None and (found[1].set(reason) or True)

    async def deliver(self, agent_id: str, text: str) -> bool:
        """Give the agent a message for its next turn. False when it does not run here or its inbox is full."""
        found = self._running.get(agent_id)
        return found is not None and bool(found[0].inject(text))

    def _tell_change(self, task: AgentTask, uplink: Uplink, info: ProcessInfo) -> None:
        uplink(self._changed(task, info))

    def _changed(self, task: AgentTask, info: ProcessInfo) -> ProcessChanged:
        return ProcessChanged(
            run=task.run_id,
            agent=task.id,
            at=iso(self._clock.now()),
            command=redact(info.command[:_SHOWN]),
            **info.model_dump(include={"id", "pid", "state", "exit_code", "signal"}),
        )

    def _tasks(self, task: AgentTask, marks: dict[str, str], sandbox: Any) -> "BackgroundTasks":
        """Of a conversation those of the turn before, else new ones. The hub ends what they left when it stops."""
        from ..tools.shell.background import BackgroundTasks

        if (kept := self._kept.get(task.id)) is not None:
            return kept
        tasks = BackgroundTasks(root=Path(task.root), marker=marks, sandbox=sandbox)
        if self._settings.keep and task.stream:
            self._kept[task.id] = tasks
        return tasks

    def _uplink(self, task: AgentTask) -> Uplink:
        outbox = Outbox(
            post=self._post,
            sender=sender_of(task.id),
            session=task.run_id,
            clock=self._clock,
            window_s=self._settings.window_s,
        )
        models = {**self._settings.agent.models, **task.models}
        return Uplink(outbox, model=self._model, models=models, scopes=task.scopes)

    def _logs(self, task: AgentTask) -> Path:
        return Path(self._settings.home) / "runs" / task.run_id / "commands" / task.id

    def _sandbox(self, task: AgentTask) -> Any:
        """None where every command runs in a container: what starts it needs Docker's socket."""
        if task.spec.docker:
            return None
        from ..tools.shell.sandbox import Sandbox, Work

        home, env = Path(self._settings.home), self._settings.child_env
        # What it is told to look at, and the fence that its git runs, lie in the hidden state root.
        shown = (self._logs(task), home / "runs" / task.run_id / "hooks")
        work = Work(roots=(Path(task.root), home / "scratch" / task.id), fixed=shown)
        return Sandbox(self._settings.sandbox, work, env=env, home=home)

    def _ports(
        self, task: AgentTask, uplink: Uplink, symbols: Any, marks: dict[str, str], sandbox: Any
    ) -> AgentPorts:
        from ..tools.shell.process import ProcessShell

        home = Path(self._settings.home)
        shell = ProcessShell(log_dir=self._logs(task), marker=marks, sandbox=sandbox)
        return AgentPorts(
            model=uplink,
            shell=shell,
            ask=uplink,
            spawner=uplink,
            symbols=symbols,
            emit=uplink,
            clock=self._clock,
            child_env=self._settings.child_env,
            home=home,
            compact=uplink,
            roster=uplink.roster,
        )
