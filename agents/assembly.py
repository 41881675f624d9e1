"""Puts together what one run of the loop needs: folders, gate, tools' context, conversation (C-10: rebuilt per run)."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..context.compaction import Compaction, Window
from ..context.environment import environment_block, project_rules
from ..context.messages import ValidatedMessageList
from ..core.agent import AgentTask
from ..core.chat import Role, SystemMessage, ToolSchema, UserMessage
from ..core.errors import ErrorKind, OpenDevError
from ..core.interrupt import InterruptToken
from ..core.scope import Scope
from ..core.tool import AgentMemo, ToolContext
from ..llm import recipes
from ..llm.roles import model_for
from ..policy.gate import Gate
from ..tools.dispatch import Dispatcher
from ..tools.files import SeenHashes
from ..tools.registry import ToolRegistry
from .doomloop import DoomLoop
from .inbox import Inbox
from .iteration import CallModel, IterationContext
from .recovery import Recovery
from .settings import AgentPorts, AgentSettings
from .specs import iteration_cap
from .transcript import Transcript
from .verifier import Verifier

_NOTHING = Scope(avoid=("**",))
_TURNS_PER_STEP = 3  # of a recipe, renames included
_RESERVE = 4_096  # tokens kept free for an answer when no limit is set


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """One agent's parts that outlive a run."""

    settings: AgentSettings
    ports: AgentPorts
    registry: ToolRegistry
    system: SystemMessage
    tools: tuple[ToolSchema, ...]
    inbox: Inbox
    call_llm: CallModel

    async def context(self, task: AgentTask, token: InterruptToken) -> IterationContext:
        """The state of a fresh run. Raises ``OpenDevError``: no model (config), no such folder, disk (infra)."""
        settings, ports = self.settings, self.ports
        model = choose_model(task, settings)
        root, scratch, rules = await asyncio.to_thread(self._folders, task)
        memo = AgentMemo()
        transcript = Transcript(ports.home, task.run_id, task.id, ports.clock)
        dispatcher = self._dispatcher(task, root, scratch, memo, token)
        system = self._prompt(root, scratch, rules)
        window = 0 if task.recipe else settings.window(model)
        ctx = IterationContext(
            task=task,
            settings=settings,
            ports=ports,
            token=token,
            inbox=self.inbox,
            call_llm=self.call_llm,
            model=model,
            cap=_cap(task, settings),
            system=system,
            tools=self.tools,
            dispatcher=dispatcher,
            messages=ValidatedMessageList(on_append=transcript.note),
            transcript=transcript,
            compaction=Compaction(
                Window(window, settings.max_tokens or _RESERVE, settings.thresholds), ports.compact, scratch
            ),
            memo=memo,
            doom=DoomLoop(self.registry),
            recovery=Recovery(can_complete="task_complete" in self.registry.names),
            verifier=Verifier(
                command=task.verify,
                root=root,
                env={**ports.child_env, **task.env},
                shell=ports.shell,
                limits=settings.limits,
            ),
        )
        await self._begin(ctx)
        return ctx

    async def _begin(self, ctx: IterationContext) -> None:
        """History of an earlier run, then the task. A resumed agent's history is in its transcript already (SUB-09)."""
        task = ctx.task
        if task.history and await asyncio.to_thread(ctx.transcript.path.exists):
            ctx.messages = ValidatedMessageList(task.history)
            ctx.messages.on_append = ctx.transcript.note
        else:
            ctx.transcript.note(ctx.system)
            ctx.messages = ValidatedMessageList(task.history, on_append=ctx.transcript.note)
        text = f"{task.prompt}\n\n{recipes.fence(task.recipe)}" if task.recipe else task.prompt
        ctx.messages.add_user(UserMessage(content=text))
        await ctx.flush()

    def _folders(self, task: AgentTask) -> tuple[Path, Path, str]:
        root = Path(task.root)
        if not root.is_dir():
            raise OpenDevError(ErrorKind.INFRA, f"The working folder {root} does not exist.")
        scratch = self.ports.home / "scratch" / task.id
        try:
            scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OpenDevError(
                ErrorKind.INFRA, f"The scratch folder {scratch} cannot be made: {error}"
            ) from error
        return root.resolve(), scratch.resolve(), project_rules(root)

    def _prompt(self, root: Path, scratch: Path, rules: str) -> SystemMessage:
        date = datetime.fromtimestamp(self.ports.clock.now(), tz=UTC).date().isoformat()
        parts = (self.system.dynamic, environment_block(root, scratch, date), rules)
        return self.system.model_copy(update={"dynamic": "\n\n".join(part for part in parts if part)})

    def _dispatcher(
        self, task: AgentTask, root: Path, scratch: Path, memo: AgentMemo, token: InterruptToken
    ) -> Dispatcher:
        ports = self.ports
        # An agent that does not write may write its scratch folder only, whatever tools it holds (SUB-13).
        scope = task.scope if task.spec.writes else _NOTHING
        seen = SeenHashes()

        def make_context(call_id: str) -> ToolContext:
            return ToolContext(
                agent_id=task.id,
                call_id=call_id,
                root=root,
                scratch=scratch,
                scope=scope,
                mode=task.mode,
                env={**ports.child_env, **task.env},
                clock=ports.clock,
                shell=ports.shell,
                ask=ports.ask,
                spawner=ports.spawner,
                symbols=ports.symbols,
                seen=seen,
                emit=ports.emit,
                interrupt=token,
                memo=memo,
                limits=self.settings.limits,
            )

        gate = Gate(
            level=task.approve,
            mode=task.mode,
            root=root,
            scope=scope,
            extra_roots=(scratch,),
            blocked_commands=self.settings.blocked_commands,
        )
        return Dispatcher(
            registry=self.registry,
            gate=gate,
            make_context=make_context,
            asker=ports.ask,
            emit=ports.emit,
            clock=ports.clock,
            agent=task.spec.name,
        )


def choose_model(task: AgentTask, settings: AgentSettings) -> str:
    """The action model: the spec's own, else the task's, else the configured one; a recipe without a model needs none.

    Raises ``OpenDevError`` (config) when there is none.
    """
    named = {Role.ACTION: task.spec.model} if task.spec.model else {}
    models = {**task.models, **named}
    if task.recipe:
        models.setdefault(Role.ACTION, recipes.MODEL)
    return model_for(Role.ACTION, {**settings.models, **models}, lambda _model: False)


def _cap(task: AgentTask, settings: AgentSettings) -> int:
    """The iterations of a run: an explicit cap counts, of two the lower one; a long recipe may exceed the default."""
    own, budget = task.spec.max_iterations, task.budget.max_iterations
    explicit = [cap for cap in (own, budget) if cap is not None]
    default = iteration_cap(task.spec, settings.max_iterations, settings.subagent_iterations)
    return min(explicit) if explicit else max(default, _TURNS_PER_STEP * len(task.recipe))
