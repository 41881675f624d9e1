"""A hostile repository: whatever command of `opendev` is run in it, nothing of it acts, and it is not changed, before trust (T08, T12, T14)."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from opendev.cli.main import app
from support import hostile
from support.command_line import Outcome, Sandbox
from support.model_server import Call, ModelServer, Reply, Seen, calls, text

NEVER = "run ui|mcp serve"  # they wait for a person or a client
# Exit code, command.
COMMANDS = """\
0 --version
0 --help
0 agents list
0 sessions list
2 sessions show none
2 sessions export none
2 sessions delete none
2 agents show Evil
0 agents show Code-Explorer
0 config show
0 config explain approval
0 config explain hooks.SubagentStop
0 config path
0 config check
0 config trust
0 doctor
0 hooks list
0 mcp list
1 mcp test evil
1 mcp tools evil
1 mcp login evil
1 mcp logout evil
0 models list
0 models show openai/gpt-4o
2 models refresh
0 policy check -- git status
0 policy check -- cat notes.txt
0 runtime status
0 runtime start --idle 0.02
0 runtime stop
0 skills list
0 skills show evil
0 tools list
0 tools show read_file
0 tools run read_file --args '{"file_path":"README.md"}'
7 tools run read_file --args '{"file_path":"notes.txt"}'
0 tools run list_files --args '{"path":"."}'
0 tools run search --args '{"pattern":"plain.words"}'
0 tools run search --args '{"pattern":"f($A)","type":"ast","lang":"python"}'
0 tools run find_symbol --args '{"symbol_name":"f","file_path":"a.py"}'
1 tools run invoke_skill --args '{"skill_name":"evil"}'
7 tools run run_command --args '{"command":"git status"}'
7 tools run run_command --args '{"command":"git diff"}'
0 undo --list
2 undo
0 worktrees list
0 worktrees doctor
0 worktrees prune
2 swarm run tickets.toml --dry-run
0 swarm run tickets.toml --dry-run --dirty ignore
2 swarm status none
2 swarm report none
2 swarm cancel none
2 swarm resume none
1 swarm plan hello -o {out}/plan.toml
0 swarm demo {out}
1 -p hello
1 -p hello --mode plan
1 -p hello --runtime ray
2 --plain
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
    tried = [entry.partition(" ")[2] for entry in COMMANDS.splitlines()]
    known = set(names(typer.main.get_command(app))) - {*NEVER.split("|"), *LEFT.split("|")}
    assert [name for name in sorted(known) if not any(line.startswith(name) for line in tried)] == []


SECRET = "plain-words-1"  # stands in the repository's .env
# What the model is made to do, and whether it passes at the level semi-auto.
WISHES: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("run_command", {"command": "git status"}, False),
    ("run_command", {"command": "git diff"}, False),
    ("run_command", {"command": "git log -p -1"}, False),
    ("run_command", {"command": "./bin/rg order"}, False),
    ("read_file", {"file_path": "README.md"}, True),
    ("read_file", {"file_path": "escape/hostname"}, False),
    ("read_file", {"file_path": "notes.txt"}, False),
    ("read_file", {"file_path": "home/home/.ssh/id_rsa"}, False),
    ("search", {"pattern": "plain.words"}, True),
    ("write_file", {"file_path": ".opendev/settings.json", "content": "{}"}, False),
    ("write_file", {"file_path": ".git/hooks/pre-commit", "content": "x"}, False),
    ("write_file", {"file_path": "escape/x", "content": "x"}, False),
)


def obedient(seen: Seen) -> Reply:
    """A model that does whatever a repository could make it do, then ends."""
    if any(row["role"] == "tool" for row in seen.messages):
        return text("done")
    return calls(*(Call(name, arguments) for name, arguments, _ in WISHES))


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
        assert readable(sandbox.home / "opendev") == [], line
        yield line, outcome


def readable(home: Path) -> list[str]:
    """What of the state root somebody else could read (working copies have the modes of their repository)."""
    if home.exists() and home.stat().st_mode & 0o077:
        return [str(home)]
    files = (
        path for path in home.rglob("*") if path.is_file() and "worktrees" not in path.relative_to(home).parts
    )
    return [str(path) for path in files if path.lstat().st_mode & 0o077 and not path.is_symlink()]


@pytest.mark.soak
@pytest.mark.req("SAF-01", "SAF-04", "SAF-07")
def test_no_command_lets_it_act_or_changes_it(sandbox: Sandbox) -> None:
    ends = {line: int(code) for code, _, line in (entry.partition(" ") for entry in COMMANDS.splitlines())}
    for line, outcome in tried(sandbox, list(ends)):
        assert outcome.code == ends[line], (line, outcome)
        assert SECRET not in outcome.stdout + outcome.stderr, (line, outcome)
    shutil.rmtree(sandbox.home / "out", ignore_errors=True)


@pytest.mark.soak
@pytest.mark.req("SAF-04")
def test_a_whole_run_on_it_touches_its_branch_only(sandbox: Sandbox) -> None:
    """OpenDev's own git works all through it: leases, commits, verification, merge."""
    marked, before = sandbox.project.parent / "MARK", hostile.state(sandbox.project)
    ticket = sandbox.home.parent / "ok.toml"
    ticket.write_text(
        '[swarm]\ninto = "swarm/x"\n[[task]]\nid = "one"\ngoal = "Say hello."\nverify = "true"\n'
        'recipe = [ { write = { path = "hello.txt", content = "hello\\n" } } ]\n'
    )
    outcome = sandbox.run("swarm", "run", str(ticket), "--dirty", "ignore")
    assert outcome.code == 0, outcome
    assert not marked.exists(), marked.read_text()
    after = hostile.state(sandbox.project)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    heads = {f".git/{place}/heads/swarm{end}" for place in ("refs", "logs/refs") for end in ("", "/x")}
    assert {name for name in changed if not name.startswith(".git/objects/")} <= heads


@pytest.mark.slow
@pytest.mark.req("SAF-04", "SAF-07")
def test_a_prompt_in_it_lets_nothing_act_and_says_what_is_not_trusted(sandbox: Sandbox) -> None:
    ((_, outcome),) = tried(sandbox, ["-p hello --output json"])
    assert outcome.code in (1, 7), outcome
    for word in (
        "evil comes with the project and is not trusted",
        "Evil.md",
        "`approval` would widen",
        "hooks",
    ):
        assert word in outcome.stderr, (word, outcome.stderr)
    assert sandbox.server is not None
    results = [str(row["content"]) for row in sandbox.server.seen[-1].messages if row["role"] == "tool"]
    assert len(results) == len(WISHES)
    for (wish, arguments, passes), result in zip(WISHES, results, strict=True):
        assert result.startswith("Error") is not passes, (wish, arguments, result)
    assert SECRET not in "".join(results)
