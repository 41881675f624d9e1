"""`opendev policy check`: the verdict on a shell command, without running it."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..core.approval import ApprovalLevel
from ..core.errors import ErrorKind, OpenDevError
from ..core.permissions import Permissions, by_priority
from ..policy.gitconfig import judge_git
from ..policy.rules import judge_command
from ..policy.secrets import secrets_of
from ..policy.shell import parts
from ..policy.verdict import Verdict, join
from ..store.permissions import load_permissions, read_rules
from .project import Project, open_project

_MAX_BYTES = 1_000_000
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
    rules: Annotated[
        Path | None,
        typer.Option(help="a file of rules, in place of your own and the project's permissions.json"),
    ] = None,
) -> None:
    """Judge a shell command and every simple command in it. Example: opendev policy check -- 'ls && rm -rf /'"""
    project = open_project(context.obj)
    level = mode or project.config.approval_level
    text = _standard_input() if command == ["-"] else _line(command)
    root = (cwd or project.path).absolute()
    if not root.is_dir():
        raise OpenDevError(
            ErrorKind.USAGE, f"The folder {root} does not exist.", "Give an existing folder to --cwd."
        )
    blocked = project.config.blocked_commands
    secrets = secrets_of(project.config.deny_read)
    permissions = _permissions(project, rules)

    def judge(line: str) -> Verdict:
        return join(
            (
                judge_command(line, level, (root,), blocked, root, permissions),
                secrets.judge_command(line, root, root),
                judge_git(line, level, root),
            )
        )

    whole = judge(text)
    commands = [
        {"text": part, "decision": found.decision, "rule": found.rule or found.layer, "reason": found.reason}
        for part in parts(text)
        if (found := judge(part))
    ]
    if not any(
        entry["decision"] == whole.decision for entry in commands
    ):  # the line as a whole is worse than its parts
        commands.append(
            {
                "text": text,
                "decision": whole.decision,
                "rule": whole.rule or whole.layer,
                "reason": whole.reason,
            }
        )
    typer.echo(
        json.dumps({"decision": whole.decision, "floor": whole.layer == "floor", "commands": commands})
    )


def _standard_input() -> str:
    """The command byte for byte: no line ending is changed. What is longer than any command that is judged is cut."""
    raw = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if raw is None else raw.read(_MAX_BYTES).decode("utf-8", "replace")


def _line(words: list[str]) -> str:
    """The words as a shell would have had them: one word is a whole line, of several those with blanks stood in quotes."""
    return (
        words[0]
        if len(words) == 1
        else " ".join(shlex.quote(w) if re.search(r"\s|^$", w) else w for w in words)
    )


def _permissions(project: Project, rules: Path | None) -> Permissions:
    """The rules that hold in the project, or those of the given file, as if they were the user's own."""
    if rules is None:
        return load_permissions(project.layout.home, project.path).permissions
    if not rules.exists():
        raise OpenDevError(
            ErrorKind.USAGE, f"There is no file {rules}.", "Give a file in the format of permissions.json."
        )
    here = str(project.path)
    return Permissions(rules=by_priority(tuple(r for r in read_rules(rules) if r.project in ("", here))))
