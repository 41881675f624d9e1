"""`opendev tools list|show|run`."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..actors.audit import Audit
from ..actors.worker import AGENT_MARK
from ..core.agent import AgentReport, SpawnRequest
from ..core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from ..core.chat import Question, ToolCall
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import Event, Notice, ToolFinished
from ..core.exits import Exit
from ..core.ids import new_id
from ..core.interrupt import InterruptToken
from ..core.model import JsonObject
from ..core.scope import Scope
from ..core.tool import AgentMemo, Tool, ToolContext, ToolResult
from ..policy.gate import Gate
from ..policy.secrets import values_in
from ..store.permissions import load_permissions
from ..tools.catalog import BUILTIN, RECIPE
from ..tools.dispatch import Dispatcher
from ..tools.files import SeenHashes
from ..tools.hooked import AgentHooks
from ..tools.hooks import HookEngine
from ..tools.lsp.symbols import LspSymbols
from ..tools.registry import ToolRegistry
from ..tools.schema import card_shape
from ..tools.shell.background import BackgroundTasks
from ..tools.shell.process import ProcessShell
from ..tools.shell.reap import HAS_PROC, kill_marked
from ..tools.shell.sandbox import Sandbox, Work, choose
from .extensions import load_hooks
from .project import Project, open_project
from .signals import stopping
from .wiring import tool_limits, web_rules

app = typer.Typer(help="Tools: list, show, run by hand. Example: opendev tools list", no_args_is_help=True)
_REFUSED = {ErrorKind.DENIED, ErrorKind.UNANSWERED, ErrorKind.SCOPE}


@app.command(name="list")
def list_tools() -> None:
    """List every tool with its category and effects. Example: opendev tools list"""
    for tool in (*BUILTIN, *RECIPE):
        effects = ", ".join(sorted(effect.value for effect in tool.effects))
        typer.echo(f"{tool.name:22} {tool.category:14} {effects}")


@app.command()
def show(name: Annotated[str, typer.Argument(help="a tool, for example edit_file")]) -> None:
    """Print a tool's schema, effects, description and approval card as JSON. Example: opendev tools show edit_file"""
    tool = _find(name)
    schema = ToolRegistry([tool]).schemas()[0]
    detail = {
        "category": tool.category,
        "effects": sorted(tool.effects),
        "read_only": tool.read_only,
        "aliases": dict(tool.aliases),
        "card": card_shape(tool),
    }
    typer.echo(json.dumps({**schema.model_dump(mode="json"), **detail}, indent=2))


@app.command()
def run(
    context: typer.Context,
    name: str,
    args: Annotated[str, typer.Option(help="the arguments as a JSON object")] = "{}",
    approve: Annotated[
        ApprovalLevel, typer.Option(help="how much passes; nobody can be asked here")
    ] = ApprovalLevel.SEMI_AUTO,
) -> None:
    """Run one tool through the same gates as an agent. Example: opendev tools run read_file --args '{"file_path": "a.py"}'"""
    project = open_project(context.obj)
    call = _call(_find(name).name, args)
    try:
        result = asyncio.run(_run(project, call, approve))
    except asyncio.CancelledError:
        raise typer.Exit(int(Exit.INTERRUPTED)) from None
    body = {"ok": result.ok, "text": result.text, "data": result.data, "error": None}
    if result.error:
        body["error"] = result.error.model_dump(mode="json")
    typer.echo(json.dumps(body, ensure_ascii=False))
    if not result.ok:
        refused = result.error is not None and result.error.kind in _REFUSED
        raise typer.Exit(int(Exit.UNANSWERED if refused else Exit.FAILED))


def _find(name: str) -> Tool[Any]:
    found = next((tool for tool in (*BUILTIN, *RECIPE) if tool.name == name), None)
    if found is None:
        raise OpenDevError(ErrorKind.USAGE, f"There is no tool `{name}`.", "`opendev tools list` shows them.")
    return found


def _call(name: str, text: str) -> ToolCall:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise OpenDevError(
            ErrorKind.USAGE, f"--args is not JSON: {error}.", 'Example: --args \'{"file_path": "a.py"}\''
        ) from error
    if not isinstance(arguments, dict):
        raise OpenDevError(
            ErrorKind.USAGE, "--args must be one JSON object.", 'Example: --args \'{"file_path": "a.py"}\''
        )
    whole: JsonObject = {str(key): value for key, value in arguments.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return ToolCall(id="by-hand", name=name, arguments=whole)


class _Nobody:
    """Asker and spawner of a tool run by hand: nobody can answer, and there are no sub-agents."""

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Nobody answers."""
        return ApprovalAnswer(decision="no_answer", digest=request.digest)

    async def question(self, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        """Nobody answers, whatever ``questions`` ask."""
        return None if questions else ()

    async def spawn(self, request: SpawnRequest) -> AgentReport | str | ErrorInfo:
        """Refused."""
        return ErrorInfo(
            kind=ErrorKind.USAGE,
            message=f"{request.agent} cannot be spawned by hand.",
            hint="Use opendev -p.",
        )

    async def output(self, agent_id: str, wait_s: float) -> AgentReport | str | ErrorInfo:
        """There is none."""
        return ErrorInfo(
            kind=ErrorKind.NOT_FOUND, message=f"There is no agent {agent_id} (waited {min(wait_s, 0):.0f} s)."
        )


async def _run(project: Project, call: ToolCall, level: ApprovalLevel) -> ToolResult:
    """The tool's own result: text, data and error as an agent's dispatcher got them. Nothing it started outlives it."""
    agent = f"hand-{new_id(10)}"
    env = project.environment.child_env()
    scratch = project.layout.home / "scratch" / agent
    await asyncio.to_thread(scratch.mkdir, mode=0o700, parents=True, exist_ok=True)
    marker = {AGENT_MARK: agent}
    confined = await asyncio.to_thread(choose, project.config.sandbox)
    if confined.kind == "none" and call.name == "run_command":
        typer.echo(confined.why, err=True)
    work = Work(roots=(project.path, scratch))
    sandbox = Sandbox(project.config.sandbox, work, env=env, home=project.layout.home)
    shell = ProcessShell(log_dir=scratch, marker=marker, sandbox=sandbox)
    processes = BackgroundTasks(root=project.path, marker=marker, sandbox=sandbox)
    symbols = LspSymbols(
        env=env,
        cache_dir=project.layout.home / "cache",
        path=env.get("PATH", ""),
        diagnostics=project.config.lsp.diagnostics == "on",
    )
    hooks = await asyncio.to_thread(_hooks, project, agent, {**env, **marker})
    this = asyncio.current_task()
    try:
        with stopping(lambda why: this and this.cancel(why)):
            ctx = _context(project, agent, scratch, shell, symbols)
            return await _dispatch(project, call, level, replace(ctx, processes=processes), hooks)
    finally:
        await hooks.close()
        await symbols.close()
        await _tidy(shell, marker, scratch)
        await processes.close()


async def _tidy(shell: ProcessShell, marker: Mapping[str, str], scratch: Path) -> None:
    """End what the call left running, and say so; keep the scratch folder only when there is something in it."""
    if HAS_PROC and (ended := await kill_marked(marker)):
        pids = ", ".join(str(pid) for pid in ended)
        typer.echo(f"Ended what the command left running: {pids}.", err=True)
    await shell.close()
    with contextlib.suppress(OSError):  # it is not empty: logs that the result names
        await asyncio.to_thread(scratch.rmdir)


def _context(
    project: Project, agent: str, scratch: Path, shell: ProcessShell, symbols: LspSymbols
) -> ToolContext:
    return ToolContext(
        agent_id=agent,
        call_id="by-hand",
        root=project.path,
        scratch=scratch,
        scope=Scope(),
        mode=Mode.NORMAL,
        env=project.environment.child_env(),
        clock=project.clock,
        shell=shell,
        ask=_Nobody(),
        spawner=_Nobody(),
        symbols=symbols,
        seen=SeenHashes(),
        emit=_drop,
        interrupt=InterruptToken(),
        memo=AgentMemo(),
        limits=tool_limits(project.config),
        web=web_rules(project.config),
        deny_read=project.config.deny_read,
    )


def _hooks(project: Project, agent: str, env: Mapping[str, str]) -> HookEngine:
    """The hooks that an agent would have; what is to be said about them goes to standard error."""

    def tell(event: Event) -> None:
        if isinstance(event, Notice):
            typer.echo(event.text, err=True)

    found, notes = load_hooks(project)
    for text in notes:
        typer.echo(text, err=True)
    return HookEngine(found, session=agent, env=env, emit=tell)


def _drop(_event: Event) -> None:
    """Nobody draws the live output of a tool run by hand; its result holds it."""


async def _dispatch(
    project: Project, call: ToolCall, level: ApprovalLevel, context: ToolContext, hooks: HookEngine
) -> ToolResult:
    rules = await asyncio.to_thread(load_permissions, project.layout.home, project.path)
    for text in rules.notes:
        typer.echo(text, err=True)
    gate = Gate(
        level=level,
        mode=Mode.NORMAL,
        root=project.path,
        scope=Scope(),
        extra_roots=(context.scratch,),
        blocked_commands=project.config.blocked_commands,
        deny_read=project.config.deny_read,
        permissions=rules.permissions,
    )
    kept: list[Event] = []
    audit = Audit(project.layout.project(project.path))

    def emit(event: Event) -> None:
        kept.append(event)
        audit.take(event)

    results: list[ToolResult] = []
    dispatcher = Dispatcher(
        registry=ToolRegistry((*BUILTIN, *RECIPE)),
        gate=gate,
        make_context=lambda _call_id: context,
        asker=_Nobody(),
        emit=emit,
        clock=project.clock,
        agent="by hand",
        known=values_in(project.path),
        on_result=results.append,
        hooks=AgentHooks(hooks, project.path),
    )
    (message,) = await dispatcher.run([call])
    await audit.flush()
    error = next((event.error for event in kept if isinstance(event, ToolFinished)), None)
    data = results[-1].data if results else None
    return ToolResult(
        ok=not message.is_error, text=message.content, data=data, error=error or dispatcher.last_failure
    )
