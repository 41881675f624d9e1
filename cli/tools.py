"""`opendev tools list|show|run`."""

import asyncio
import json
from typing import Annotated, Any

import typer

from ..core.agent import AgentReport, SpawnRequest
from ..core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from ..core.chat import Question, ToolCall
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import Event, ToolFinished
from ..core.exits import Exit
from ..core.ids import new_id
from ..core.interrupt import InterruptToken
from ..core.model import JsonObject
from ..core.scope import Scope
from ..core.tool import AgentMemo, Tool, ToolContext, ToolResult
from ..policy.gate import Gate
from ..tools.catalog import BUILTIN, RECIPE
from ..tools.dispatch import Dispatcher
from ..tools.files import SeenHashes
from ..tools.lsp.symbols import LspSymbols
from ..tools.registry import ToolRegistry
from ..tools.shell.process import ProcessShell
from .project import Project, open_project
from .wiring import tool_limits

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
    """Print a tool's schema, effects and description as JSON. Example: opendev tools show edit_file"""
    tool = _find(name)
    schema = ToolRegistry([tool]).schemas()[0]
    detail = {"category": tool.category, "effects": sorted(tool.effects), "read_only": tool.read_only}
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
    call = _call(name, args)
    result = asyncio.run(_run(project, call, approve))
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
    """The tool's own result: text, data and error as an agent's dispatcher got them."""
    agent = f"hand-{new_id(6)}"
    config, env = project.config, project.environment.child_env()
    scratch = project.layout.home / "scratch" / agent
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    symbols = LspSymbols(env=env, cache_dir=project.layout.home / "cache", path=env.get("PATH", ""))
    kept: list[Event] = []
    results: list[ToolResult] = []
    context = ToolContext(
        agent_id=agent,
        call_id=call.id,
        root=project.path,
        scratch=scratch,
        scope=Scope(),
        mode=Mode.NORMAL,
        env=env,
        clock=project.clock,
        shell=ProcessShell(log_dir=scratch, marker={"OPENDEV_AGENT": agent}),
        ask=_Nobody(),
        spawner=_Nobody(),
        symbols=symbols,
        seen=SeenHashes(),
        emit=kept.append,
        interrupt=InterruptToken(),
        memo=AgentMemo(),
        limits=tool_limits(config),
    )
    gate = Gate(
        level=level,
        mode=Mode.NORMAL,
        root=project.path,
        scope=Scope(),
        extra_roots=(scratch,),
        blocked_commands=config.blocked_commands,
    )
    dispatcher = Dispatcher(
        registry=ToolRegistry((*BUILTIN, *RECIPE)),
        gate=gate,
        make_context=lambda _call_id: context,
        asker=_Nobody(),
        emit=kept.append,
        clock=project.clock,
        agent="by hand",
        on_result=results.append,
    )
    try:
        (message,) = await dispatcher.run([call])
    finally:
        await symbols.close()
    error = next((event.error for event in kept if isinstance(event, ToolFinished)), None)
    data = results[-1].data if results else None
    return ToolResult(
        ok=not message.is_error, text=message.content, data=data, error=error or dispatcher.last_failure
    )
