"""Puts together what one run of the loop needs: folders, gate, tools' context, conversation (C-10: rebuilt per run)."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..context.compaction import Compaction, Window
from ..context.composer import Composer
from ..context.environment import environment_block, project_rules, user_rules
from ..context.messages import ValidatedMessageList, loaded
from ..context.picker import ContextPicker
from ..context.reminders import Reminders, load_own
from ..context.sections import PromptContext, prompt_provider
from ..core.agent import AgentTask
from ..core.chat import Role, SystemMessage, ThinkingLevel, ToolSchema, UserMessage
from ..core.errors import ErrorKind, OpenDevError
from ..core.interrupt import InterruptToken
from ..core.scope import Scope
from ..core.tool import AgentMemo, ToolContext
from ..llm import recipes
from ..llm.roles import model_for
from ..policy.gate import Gate
from ..policy.secrets import values_in
from ..store.atomic import make_private
from ..store.layout import Layout
from ..tools.dispatch import Dispatcher
from ..tools.files import SeenHashes
from ..tools.mcp.directory import Directory, servers_note
from ..tools.registry import ToolRegistry
from ..tools.skills import SkillLoader
from .children import Children
from .container import machine
from .cover import cover_of
from .doomloop import DoomLoop
from .inbox import Inbox
from .iteration import CallModel, IterationContext
from .memory import Memory
from .opening import attach_references
from .planning import plan_file, plan_note, prompt_of, route, starting_mode
from .recovery import Recovery
from .resume import restore
from .settings import AgentPorts, AgentSettings
from .sight import Sight
from .signals import note_result
from .specs import iteration_cap
from .summing_up import only_sums_up
from .transcript import Transcript, files_of
from .verifier import Verifier

_NOTHING = Scope(avoid=("**",))
_TURNS_PER_STEP = 3  # of a recipe, renames included
_RESERVE = 4_096  # tokens kept free for an answer when no limit is set


class _Places(NamedTuple):
    """The folders of a run, and its plan file, if it has one."""

    root: Path
    scratch: Path
    plan: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """One agent's parts that outlive a run."""

    settings: AgentSettings
    ports: AgentPorts
    registry: ToolRegistry
    composer: Composer
    prompt: PromptContext
    tools: tuple[ToolSchema, ...]
    inbox: Inbox
    call_llm: CallModel
    schemas: Callable[[Collection[str]], tuple[ToolSchema, ...]]
    skills: SkillLoader

    async def context(self, task: AgentTask, token: InterruptToken) -> IterationContext:
        """The state of a fresh run. Raises ``OpenDevError``: no model (config), no such folder, disk (infra)."""
        settings, ports = self.settings, self.ports
        model = choose_model(task, settings)
        root, scratch, rules = await asyncio.to_thread(self._folders, task)
        memo = AgentMemo()
        files = await asyncio.to_thread(files_of, ports.home, task)
        transcript = Transcript(files, ports.clock, settings.auto_save_interval)
        plan = await asyncio.to_thread(plan_file, task, self.registry.names, ports, root)
        reminders = Reminders(await asyncio.to_thread(load_own, Layout(ports.home).reminders(root)))
        sight = Sight()
        dispatcher = self._dispatcher(task, _Places(root, scratch, plan), memo, token, sight)
        dispatcher.known = await asyncio.to_thread(values_in, root)
        window = 0 if task.recipe else settings.window(model)
        picker = ContextPicker(window, settings.max_tokens or _RESERVE)
        memory = Memory(task, settings, ports)
        await asyncio.to_thread(memory.load)
        composed = await asyncio.to_thread(self._composed, task, model, _Places(root, scratch, plan))
        ctx = IterationContext(
            task=task,
            settings=settings,
            ports=ports,
            token=token,
            inbox=self.inbox,
            call_llm=self.call_llm,
            model=model,
            cap=_cap(task, settings),
            system=picker.system(composed, rules, memory.bullets()),
            picker=picker,
            tools=self.tools,
            schemas=self.schemas,
            dispatcher=dispatcher,
            messages=ValidatedMessageList(on_append=transcript.note),
            transcript=transcript,
            compaction=Compaction(
                Window(window, settings.max_tokens or _RESERVE, settings.thresholds, settings.small_window),
                ports.compact,
                scratch,
                ports.roster,
            ),
            memo=memo,
            memory=memory,
            doom=DoomLoop(self.registry),
            recovery=Recovery(can_complete="task_complete" in self.registry.names, reminders=reminders),
            verifier=self._verifier(task, root),
            reminders=reminders,
            children=Children(ports.spawner),
            thinks=memory,
            thinking=ThinkingLevel.OFF if task.recipe or task.depth else settings.thinking,
            models={**settings.models, **task.models, Role.ACTION: model},
            cover=cover_of(task, settings, ports, files, dispatcher),
        )
        sight.ctx = ctx
        dispatcher.on_result, dispatcher.persist = partial(note_result, ctx), ctx.transcript.result
        if ports.hooks is not None:
            ctx.compaction.before_summary = ports.hooks.compacting
        await self._begin(ctx)
        route(ctx, plan)
        await ctx.flush()
        return ctx

    def _verifier(self, task: AgentTask, root: Path) -> Verifier:
        return Verifier(
            command=task.verify,
            root=root,
            env={**self.ports.child_env, **task.env},
            shell=self.ports.shell,
            limits=self.settings.limits,
        )

    async def _begin(self, ctx: IterationContext) -> None:
        """History of an earlier run, then the task. A resumed agent's history is in its transcript already (SUB-09)."""
        task = ctx.task
        earlier = await ctx.transcript.begin(task)
        if task.history and await asyncio.to_thread(ctx.transcript.path.exists):
            ctx.messages = ValidatedMessageList(loaded(task.history))
            ctx.messages.on_append = ctx.transcript.note
        else:
            ctx.transcript.note(ctx.system)
            ctx.messages = ValidatedMessageList(loaded(task.history), on_append=ctx.transcript.note)
        restore(ctx, earlier if task.history else None)
        if only_sums_up(task):
            return
        text = f"{task.prompt}\n\n{recipes.fence(task.recipe)}" if task.recipe else prompt_of(task)
        await attach_references(ctx)
        ctx.messages.add_user(UserMessage(content=text))
        await ctx.flush()

    def _folders(self, task: AgentTask) -> tuple[Path, Path, tuple[str, ...]]:
        root = Path(task.root)
        if not root.is_dir():
            raise OpenDevError(ErrorKind.INFRA, f"The working folder {root} does not exist.")
        scratch = self.ports.home / "scratch" / task.id
        try:
            make_private(scratch)
        except OSError as error:
            raise OpenDevError(
                ErrorKind.INFRA, f"The scratch folder {scratch} cannot be made: {error}"
            ) from error
        return root.resolve(), scratch.resolve(), (project_rules(root), user_rules(self.ports.home))

    def _composed(self, task: AgentTask, model: str, places: _Places) -> SystemMessage:
        """The prompt of this run, composed for the model that will read it. Blocking."""
        date = datetime.fromtimestamp(self.ports.clock.now(), tz=UTC).date().isoformat()
        context = replace(
            self.prompt,
            model_provider=prompt_provider(model),
            session_id=task.run_id or task.id,
            scratch=str(places.scratch),
            environment=environment_block(places.root, date)
            + plan_note(task, places.plan)
            + self._on_demand(),
        )
        return self.composer.message(context)

    def _on_demand(self) -> str:
        """What the prompt says of skills and of MCP servers: names, never schemas (PRM-14, MCP-01)."""
        tools, servers = self.registry.names, self.settings.mcp if self.ports.mcp else ()
        return (self.skills.note() if "invoke_skill" in tools else "") + (
            servers_note(server.name for server in servers) if "search_tools" in tools else ""
        )

    def _dispatcher(
        self, task: AgentTask, places: _Places, memo: AgentMemo, token: InterruptToken, sight: Sight
    ) -> Dispatcher:
        ports = self.ports
        root, scratch, plan = places
        # An agent that does not write may write its scratch folder only, whatever tools it holds (SUB-13).
        scope = task.scope if task.spec.writes else _NOTHING
        seen = SeenHashes()
        shell, processes = machine(task, ports, (root, scratch))
        starts = starting_mode(task, plan)
        gate = self._gate(task, places, scope, (scratch, *(processes.places if processes else ())))

        def make_context(call_id: str) -> ToolContext:
            return ToolContext(
                agent_id=task.id,
                call_id=call_id,
                root=root,
                scratch=scratch,
                scope=scope,
                mode=gate.mode if starts is task.mode else task.mode,  # a child of the Planner plans too
                env={**ports.child_env, **task.env},
                clock=ports.clock,
                shell=shell,
                ask=ports.ask,
                spawner=ports.spawner,
                symbols=ports.symbols,
                seen=seen,
                emit=ports.emit,
                interrupt=token,
                memo=memo,
                limits=self.settings.limits,
                approve=task.approve,
                plans=ports.home / "plans",
                plan=plan,
                processes=processes,
                offers=frozenset(self.registry.names),
                directory=Directory(self.registry, ports.mcp),
                skills=self.skills.by_name,
                web=self.settings.web,
                deny_read=self.settings.deny_read,
                vision=sight,
            )

        return Dispatcher(
            registry=self.registry,
            gate=gate,
            make_context=make_context,
            asker=ports.ask,
            emit=ports.emit,
            clock=ports.clock,
            agent=task.spec.name,
            hooks=ports.hooks,
        )

    def _gate(self, task: AgentTask, places: _Places, scope: Scope, own: tuple[Path, ...]) -> Gate:
        """``own`` are the agent's folders besides its root."""
        return Gate(
            level=task.approve,
            mode=starting_mode(task, places.plan),
            root=places.root,
            scope=scope,
            extra_roots=(*own, *([places.plan] if places.plan else [])),
            blocked_commands=self.settings.blocked_commands,
            deny_read=self.settings.deny_read,
            permissions=self.settings.permissions,
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
