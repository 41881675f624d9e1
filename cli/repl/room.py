"""One session at work: its hub, opened behind the prompt, its turns, its costs, and the end of everything it started."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from ...actors.hub import Hub
from ...actors.spending import Spending
from ...actors.titles import Titler
from ...core.agent import AgentReport, AgentTask
from ...core.chat import Role
from ...core.clock import iso
from ...core.errors import ErrorKind, OpenDevError
from ...core.events import Event, Notice, ProcessChanged
from ...core.ops import COMPACT
from ...core.session import Spent
from ...store.sessions import OpenSession
from ..catalogue import keep_current
from ..task import PromptOptions, chosen_models, foreground_task, need_model
from ..wiring import agent_settings, keeper_if_repository, open_hub, refit
from .figures import Figures
from .managers import ApprovalManager, ConfigManager

PING_S = 5.0


class Room:
    """``show`` is told every event of the session. ``run`` is called for one prompt after the other."""

    def __init__(
        self,
        config: ConfigManager,
        approvals: ApprovalManager,
        held: OpenSession,
        options: PromptOptions,
        show: Callable[[Event], None],
    ) -> None:
        self.held, self.figures = held, Figures(f"main-{held.id}", held.meta().spent)
        self.hub: Hub | None = None
        self._config, self._approvals, self._options, self._show = config, approvals, options, show
        self._stack = contextlib.AsyncExitStack()
        self._spending: Spending | None = None
        self._titler: Titler | None = None
        self._showing: asyncio.Task[None] | None = None
        self._late: asyncio.Task[None] | None = None
        self.late: Callable[[str], None] = lambda _text: (
            None
        )  # is told a prompt that came when the agent ended
        self._fitted = 0
        self._turns = 0
        self._lock = asyncio.Lock()

    @property
    def root(self) -> Path:
        """The project."""
        return self._config.project.path

    def say(self, event: Event) -> None:
        """Into the session's events, or to the screens alone while there is no hub."""
        if self.hub is not None:
            self.hub.emit(event)
        else:
            at = iso(self._config.project.clock.now())
            self._show(event.model_copy(update={"run": self.held.id, "at": at}))

    async def ready(self) -> Hub:
        """The hub, started when there is none or its model service is gone, fitted to the settings as they are now.

        Raises:
            OpenDevError: it cannot be started; the next call tries again.
        """
        return await asyncio.shield(
            asyncio.ensure_future(self._ready())
        )  # who gives up waiting does not tear it

    async def _ready(self) -> Hub:
        async with self._lock:
            if self.hub is not None and not await _answers(self.hub):
                self.say(Notice(level="warning", text="The model service is gone; it is started again."))
                await self._shut()
            if self.hub is None:
                self.hub = await self._open()
            elif self._fitted != self._config.changes:
                await self._fit(self.hub)
            return self.hub

    async def task(self, options: PromptOptions) -> AgentTask:
        """The task of one turn. Raises ``OpenDevError`` (config) when there is no model."""
        project = self._config.project
        models = await asyncio.to_thread(chosen_models, project, options)
        need_model(models)
        return await asyncio.to_thread(foreground_task, project, self.held, options, models)

    async def run(self, hub: Hub, task: AgentTask) -> AgentReport:
        """One turn; its cost is in the session's record afterwards."""
        report = await hub.run_agent(task)
        self._turns += task.prompt != COMPACT
        await self.settle()
        self._entitle(hub, task)
        return report

    async def settle(self) -> Spent:
        """The session's exact cost so far, also written into its record."""
        if self._spending is not None:
            done = self._spending.hub.total
            await self._spending.refresh()
            self.figures.settle(self.held.carried + self._spending.total, done)
            try:
                await asyncio.to_thread(self.held.save_cost, self._spending.total)
            except OpenDevError as error:
                self.say(Notice(level="warning", text=error.info.sentence()))
        return self.figures.before

    def task_of(self, id: str) -> ProcessChanged:
        """A background task of this session. Raises ``OpenDevError`` (usage) when it is not known."""
        if (found := self.figures.tasks.get(id)) is None:
            known = ", ".join(self.figures.tasks) or "none"
            raise OpenDevError(
                ErrorKind.USAGE, f"There is no background task `{id[:80]}`.", f"Known: {known}."
            )
        return found

    async def close(self) -> None:
        """End the agents, the hub and all it started. Idempotent."""
        async with self._lock:
            await self._shut()

    async def _open(self) -> Hub:
        project, options = self._config.project, self._options
        models = project.config.models()
        if options.replay is None:
            await asyncio.to_thread(keep_current, project, models.values())
        async with contextlib.AsyncExitStack() as stack:
            hub = await stack.enter_async_context(
                open_hub(
                    project,
                    self.held.id,
                    options.runtime,
                    desk=lambda: keeper_if_repository(project),
                    record=options.record,
                    replay=options.replay,
                    startup="startup" if self.held.fresh and not self._turns else "resume",
                    keep=True,
                )
            )
            self.figures.fresh_hub()
            self._showing = asyncio.create_task(self._forward(hub))
            await asyncio.sleep(0)  # it subscribes now
            self._late = asyncio.create_task(self._pass_on(hub))
            stack.callback(self._late.cancel)
            self._spending = await Spending.begin(hub, f"run:{self.held.id}", options.max_cost_usd)
            self._approvals.attach(hub)
            self._stack = stack.pop_all()
        self._note_window()
        self._fitted = self._config.changes
        return hub

    async def _shut(self) -> None:
        if self._titler is not None:
            titler, self._titler = self._titler, None
            await titler.close()
        if self.hub is None:
            return
        await self.settle()
        self._approvals.detach()
        self.hub = None
        await self._stack.aclose()
        if self._showing is not None:
            await asyncio.wait({self._showing})  # the last events

    async def _fit(self, hub: Hub) -> None:
        """The next agent is built from the settings as they are now (REPL-06)."""
        await refit(hub, self._config.project, self.held.id)
        self._note_window()
        self._fitted = self._config.changes

    def _note_window(self) -> None:
        project = self._config.project
        model = project.config.models().get(Role.ACTION, "")
        self.figures.window = agent_settings(project).window(model) if model else 0

    async def _forward(self, hub: Hub) -> None:
        async for event in hub.subscribe(hub.began):  # a session that goes on has shown the others
            self.figures.take(event)
            self._show(event)

    async def _pass_on(self, hub: Hub) -> None:
        while True:
            self.late(await hub.next_prompt())

    def _entitle(self, hub: Hub, task: AgentTask) -> None:
        """A light model makes a title for a conversation that has gone on, beside whatever comes next (SES-07).

        Only here: `opendev -p` costs the calls of its task, and its prompt's own words are title enough.
        """
        wanted = self._config.project.config.sessions.titles == "auto" and Role.COMPACT in task.models
        if self._titler is None and wanted and self._turns > 1 and self._options.replay is None:
            self._titler = Titler(hub.model, self.held.files)
            self._titler.start(task.models[Role.COMPACT], task.scopes)


async def _answers(hub: Hub) -> bool:
    try:
        async with asyncio.timeout(PING_S):
            await hub.model.ask("ping")
    except (OpenDevError, TimeoutError):
        return False
    return True
