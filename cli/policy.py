"""`opendev policy check`: the verdict on a shell command, without running it."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..core.approval import ApprovalLevel
from ..policy.gitconfig import judge_git
from ..policy.rules import judge_command
from ..policy.secrets import secrets_of
from ..policy.shell import parts
from ..policy.verdict import Verdict, join
from .project import open_project

app = typer.Typer(
    help="Safety rules. Example: opendev policy check -- git push --force", no_args_is_help=True
)


@app.callback()
def group() -> None:
    """Safety rules."""


@app.command()
def check(
    context: typer.Context,
    command: Annotated[
        list[str], typer.Argument(help="the command after --, or - to read it from standard input")
    ],
    mode: Annotated[ApprovalLevel | None, typer.Option(help="the approval level to judge by")] = None,
    cwd: Annotated[Path | None, typer.Option(help="the folder it would run in; default: the project")] = None,
) -> None:
    """Judge a shell command and every simple command in it. Example: opendev policy check -- 'ls && rm -rf /'"""
    project = open_project(context.obj)
    level = mode or project.config.approval_level
    text = sys.stdin.read() if command == ["-"] else " ".join(command)
    root = (cwd or project.path).absolute()
    blocked = project.config.blocked_commands
    secrets = secrets_of(project.config.deny_read)

    def judge(line: str) -> Verdict:
        return join(
            (
                judge_command(line, level, (root,), blocked, root),
                secrets.judge_command(line, root, root),
                judge_git(line, level, root),
            )
        )

    whole = judge(text)
    commands = [
        {"text": part, "decision": found.decision, "rule": found.layer, "reason": found.reason}
        for part in parts(text)
        if (found := judge(part))
    ]
    if not any(
        entry["decision"] == whole.decision for entry in commands
    ):  # the line as a whole is worse than its parts
        commands.append(
            {"text": text, "decision": whole.decision, "rule": whole.layer, "reason": whole.reason}
        )
    typer.echo(
        json.dumps({"decision": whole.decision, "floor": whole.layer == "floor", "commands": commands})
    )
