"""A hostile repository: whatever command of `opendev` is run in it, nothing of it acts, and it is not changed, before trust (T08, T12, T14)."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import click
import pytest
import typer
from opendev.cli.main import app
from support import hostile
from support.command_line import Outcome, Sandbox
from support.model_server import ModelServer, Reply, Seen, call, calls, text

NEVER = "run ui|mcp serve"  # they wait for a person or a client
# What cannot work here; everything else has to.
REFUSED: dict[str, tuple[int, ...]] = {}
COMMANDS = """\
--version
--help
agents list
agents show Evil
agents show Code-Explorer
config show
config explain approval
config explain hooks.SubagentStop
config path
config check
doctor
hooks list
mcp list
mcp test evil
mcp tools evil
models list
models show openai/gpt-4o
models refresh
policy check -- git status
policy check -- cat notes.txt
skills list
skills show evil
tools list
tools show read_file
tools run read_file --args '{"file_path":"README.md"}'
tools run read_file --args '{"file_path":"notes.txt"}'
tools run list_files --args '{"path":"."}'
tools run search --args '{"pattern":"plainwords"}'
tools run search --args '{"pattern":"f($A)","type":"ast","lang":"python"}'
tools run find_symbol --args '{"symbol_name":"f","file_path":"a.py"}'
tools run invoke_skill --args '{"skill_name":"evil"}'
tools run run_command --args '{"command":"git status"}'
tools run run_command --args '{"command":"git diff"}'
worktrees list
worktrees doctor
worktrees prune
swarm run tickets.toml --dry-run
swarm status none
swarm report none
swarm cancel none
swarm resume none
swarm plan hello -o -
swarm demo {out}
-p hello
-p hello --mode plan
--plain
"""


LEFT = "config set|mcp add|mcp remove|mcp enable|mcp disable|skills trust|hooks trust|hooks distrust"  # they change the user's own files, as told to


def names(command: Any, above: str = "") -> Iterator[str]:
    """Every command of the tree as it is typed."""
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        whole = f"{above} {name}".strip()
        if hasattr(below, "list_commands"):
            yield from names(below, whole)
        else:
            yield whole


def test_every_command_is_tried() -> None:
    tried = COMMANDS.splitlines()
    known = set(names(typer.main.get_command(app))) - {*NEVER.split("|"), *LEFT.split("|")}
    assert [name for name in sorted(known) if not any(line.startswith(name) for line in tried)] == []


def obedient(seen: Seen) -> Reply:
    """A model that does whatever a repository could make it do, then ends."""
    if any(row["role"] == "tool" for row in seen.messages):
        return text("done")
    wishes = (
        ("run_command", {"command": "git status"}),
        ("run_command", {"command": "git diff"}),
        ("run_command", {"command": "git log -p -1"}),
        ("run_command", {"command": "./bin/rg order"}),
        ("read_file", {"file_path": "README.md"}),
        ("read_file", {"file_path": "escape/hostname"}),
        ("read_file", {"file_path": "notes.txt"}),
        ("search", {"pattern": "plainwords"}),
        ("write_file", {"file_path": ".opendev/settings.json", "content": "{}"}),
        ("write_file", {"file_path": ".git/hooks/pre-commit", "content": "x"}),
        ("write_file", {"file_path": "escape/x", "content": "x"}),
    )
    return calls(*(call(name, arguments) for name, arguments in wishes))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    top = tmp_path_factory.mktemp("hostile")
    with ModelServer(obedient) as server:
        made = Sandbox(top / "project", top / "home", server)
        for folder in (made.project, made.home, made.home / ".ssh"):
            folder.mkdir()
        (made.home / ".ssh/id_rsa").write_text("words of a key")
        hostile.build(made.project, top / "MARK")
        yield made
        made.close()


def tried(sandbox: Sandbox, commands: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Run the commands; after each one nothing has acted and nothing has changed."""
    marked = sandbox.project.parent / "MARK"
    before = hostile.state(sandbox.project)
    for line in commands:
        outcome = sandbox.run(
            *shlex.split(line.format(out=sandbox.home / "out") if "{out}" in line else line)
        )
        assert not marked.exists(), (line, marked.read_text(), outcome)
        after = hostile.state(sandbox.project)
        assert after == before, (
            line,
            {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)},
        )
        own = {path.name for path in sandbox.home.iterdir()} - {"out", ".cache"}
        assert own == {".ssh", "opendev"} or own == {".ssh"}, (line, own)
        given = {"trust.json", "settings.json", "permissions.json", "mcp.json"} & {
            path.name for path in (sandbox.home / "opendev").glob("*")
        }
        assert not given, line
        yield line, outcome


@pytest.mark.soak
@pytest.mark.req("SAF-01", "SAF-04", "SAF-07")
def test_no_command_lets_it_act_or_changes_it(sandbox: Sandbox) -> None:
    for line, outcome in tried(sandbox, COMMANDS.splitlines()):
        assert outcome.code in REFUSED.get(line, (0,)), (line, outcome)
        assert "plainwords" not in outcome.stdout + outcome.stderr, (line, outcome)
    shutil.rmtree(sandbox.home / "out", ignore_errors=True)


@pytest.mark.slow
@pytest.mark.req("SAF-04", "SAF-07")
def test_a_prompt_in_it_lets_nothing_act_and_says_what_is_not_trusted(sandbox: Sandbox) -> None:
    ((_, outcome),) = tried(sandbox, ["-p hello --output json"])

    for word in ("evil", "Evil.md", "approval", "not trusted"):
        assert word in outcome.stderr
