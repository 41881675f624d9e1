"""The root command: `opendev -p PROMPT`, its options, and the sub-commands."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from .. import __version__
from ..core.approval import ApprovalLevel, Mode
from ..core.chat import ThinkingLevel
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError, exit_of
from ..core.exits import Exit
from .border import border
from .lazy import LazyGroup
from .stdio import say
from .unstarted import unstarted

if TYPE_CHECKING:
    from .task import PromptOptions

app = typer.Typer(
    name="opendev",
    cls=LazyGroup,
    help="A terminal coding agent that runs many agents in parallel and lands their work on a branch that is always green.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    add_completion=False,
)


class Output(StrEnum):
    """How `-p` prints."""

    TEXT = "text"
    JSON = "json"
    STREAM = "stream-json"


class RuntimeChoice(StrEnum):
    """Where agents run."""

    AUTO = "auto"
    RAY = "ray"
    LOCAL = "local"


PromptOption = Annotated[
    str | None, typer.Option("-p", "--prompt", help="one prompt; - reads it from standard input")
]
ModeOption = Annotated[
    Mode | None, typer.Option(help="normal, or plan: refuses every tool that writes or runs")
]
ThinkingOption = Annotated[
    ThinkingLevel | None, typer.Option(help="how much the agent thinks before each step")
]
VerifyOption = Annotated[str, typer.Option(help="a command that must exit 0 before the work counts as done")]
ScopeOption = Annotated[
    list[str] | None, typer.Option(help="a pattern of files that may be changed; again for more")
]
AvoidOption = Annotated[list[str] | None, typer.Option(help="a pattern of files that must not be changed")]
RuntimeOption = Annotated[RuntimeChoice, typer.Option(help="auto starts Ray when sub-agents need processes")]
ContinueOption = Annotated[
    bool, typer.Option("--continue", help="go on with the newest session of this project")
]
ResumeOption = Annotated[
    str | None, typer.Option(metavar="ID", help="go on with this session of this project")
]


@app.callback(invoke_without_command=True)
def root(  # noqa: PLR0913 - the command line is fixed
    context: typer.Context,
    prompt: PromptOption = None,
    output: Annotated[Output, typer.Option(help="how to print the result")] = Output.TEXT,
    agent: Annotated[str, typer.Option(help="the agent type that works")] = "Main",
    model: Annotated[str | None, typer.Option(help="provider/NAME, above every setting")] = None,
    mode: ModeOption = None,
    approve: Annotated[ApprovalLevel | None, typer.Option(help="how much passes without asking")] = None,
    thinking: ThinkingOption = None,
    verify: VerifyOption = "",
    scope: ScopeOption = None,
    avoid: AvoidOption = None,
    done: Annotated[str, typer.Option(help="when the work counts as done, in a sentence")] = "",
    max_iterations: Annotated[int | None, typer.Option(min=1, help="cap of loop iterations")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="cap in US dollars")] = None,
    runtime: RuntimeOption = RuntimeChoice.AUTO,
    record: Annotated[Path | None, typer.Option(help="write every model answer to this file")] = None,
    replay: Annotated[Path | None, typer.Option(help="answer from a recorded file, without a model")] = None,
    go_on: ContinueOption = False,
    resume: ResumeOption = None,
    working_dir: Annotated[Path | None, typer.Option(help="the project; default: the current folder")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="the line REPL, in colour where there is any")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    """Talk with the agent, give one prompt with -p, or call a sub-command. Example: opendev -p "Fix the failing test" --verify "pytest -q" """
    context.obj = working_dir
    if version:
        typer.echo(f"opendev {__version__}")
        return
    session = _session(resume, context.invoked_subcommand, go_on=go_on)
    _check_prompt(prompt, context.invoked_subcommand, output, plain=plain)
    if context.invoked_subcommand is not None:
        return
    from ..core.scope import Scope
    from .task import PromptOptions

    options = PromptOptions(
        prompt=_read(prompt or ""),
        output=output.value,
        agent=agent,
        mode=mode,
        verify=verify,
        scope=Scope(may=tuple(scope or ()), avoid=tuple(avoid or ())),
        done=done,
        max_iterations=max_iterations,
        max_cost_usd=max_cost,
        runtime=runtime.value,
        record=record,
        replay=replay,
        resume=session,
    )
    overrides = {
        "model": model,
        "approval": approve.value if approve else None,
        "thinking.level": thinking.value if thinking else None,
    }
    raise typer.Exit(_start(working_dir, overrides, options, talk=prompt is None))


def _start(
    working_dir: Path | None, overrides: dict[str, Any], options: "PromptOptions", *, talk: bool
) -> int:
    """One prompt, or a conversation. What the other one needs is not imported."""
    if talk:
        from .repl.start import run_conversation

        return run_conversation(working_dir, overrides, options)
    from .run import run_prompt

    return run_prompt(working_dir, overrides, options)


def _session(resume: str | None, subcommand: str | None, *, go_on: bool) -> str | None:
    """The session to go on with, empty for the newest; None starts a new one. Raises ``OpenDevError`` (usage)."""
    if go_on and resume is not None:
        raise OpenDevError(ErrorKind.USAGE, "--continue does not go with --resume.", "Give one or the other.")
    if (go_on or resume is not None) and subcommand is not None:
        raise OpenDevError(
            ErrorKind.USAGE,
            "A sub-command has no session to go on with.",
            "Leave --continue and --resume out.",
        )
    if resume == "":
        raise OpenDevError(
            ErrorKind.USAGE, "--resume needs the id of a session.", "`opendev sessions list` shows them."
        )
    return "" if go_on else resume


def _check_prompt(prompt: str | None, subcommand: str | None, output: Output, *, plain: bool) -> None:
    """A prompt, a sub-command or a conversation: one of the three. Raises ``OpenDevError`` (usage)."""
    if subcommand is not None and (prompt is not None or plain):
        option = "--plain" if plain else "-p"
        raise OpenDevError(
            ErrorKind.USAGE, f"{option} does not go with a sub-command.", "Give one or the other."
        )
    if prompt is not None and plain:
        raise OpenDevError(ErrorKind.USAGE, "-p does not go with --plain.", "Give one or the other.")
    if prompt is None and output is not Output.TEXT:
        raise OpenDevError(ErrorKind.USAGE, "--output goes with -p only.", 'Say what to do: opendev -p "…".')


@app.command(name="doctor")
def doctor_command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say what is installed, what is missing and how to mend it. Example: opendev doctor"""
    from . import doctor
    from .project import open_project

    findings = doctor.examine(open_project(context.obj))
    typer.echo(doctor.report(findings, as_json=as_json))
    raise typer.Exit(0 if all(finding.ok or not finding.needed for finding in findings) else int(Exit.INFRA))


def _read(prompt: str) -> str:
    """The prompt, from standard input for ``-``. Bytes that are no UTF-8 become question marks: no request could carry them."""
    if prompt == "-":
        if reconfigure := getattr(sys.stdin, "reconfigure", None):
            reconfigure(encoding="utf-8", errors="replace")
        prompt = getattr(sys.stdin, "read", str)()  # None: the caller closed it
    return prompt.encode("utf-8", "replace").decode("utf-8")


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code. The last border: whatever fails ends as a sentence on stderr."""
    try:
        with border():
            code = app(arguments, standalone_mode=False)
    except OpenDevError as error:
        return _complain(error.info, arguments)
    except typer.Abort:
        return int(Exit.INTERRUPTED)
    except TyperException as error:  # typer carries a click of its own: click's classes would never match
        return _complain(
            ErrorInfo(kind=ErrorKind.USAGE, message=error.format_message(), hint="See opendev --help."),
            arguments,
        )
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    return int(code or 0)


def end_of_output(code: int) -> int:
    """Write out what is buffered; the exit code, which says so when that fails."""
    try:
        say("")
    except OpenDevError as error:
        return max(code, _complain(error.info))
    return code


def _complain(info: ErrorInfo, arguments: Sequence[str] = ()) -> int:
    sys.stderr.write(f"opendev: {info.sentence()}\n")
    code = int(exit_of(info.kind))
    if told := unstarted(arguments, info, code):
        with suppress(OpenDevError):  # it is told on standard error
            say(told)
    return code
