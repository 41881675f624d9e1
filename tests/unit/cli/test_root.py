"""The root command: version, wrong usage, and help with an example everywhere."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from opendev import __version__
from opendev.cli.border import border
from opendev.cli.main import app
from opendev.core.errors import ErrorKind, OpenDevError

from .conftest import CommandLine


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the tree with its words."""
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, name), *path, name)


TREE = list(commands(typer.main.get_command(app)))


def test_the_tree_holds_the_documented_commands() -> None:
    found = {" ".join(path) for path, _ in TREE}
    assert found >= {
        *(
            "swarm run",
            "swarm plan",
            "swarm resume",
            "swarm status",
            "swarm report",
            "swarm cancel",
            "swarm demo",
        ),
        *("worktrees list", "worktrees doctor", "worktrees prune", "agents list", "agents show"),
        *("models list", "models show", "config show", "config explain", "config set", "config path"),
        *("config check", "tools list", "tools show", "tools run", "policy check", "doctor"),
    }


@pytest.mark.parametrize("path", [path for path, _ in TREE], ids=" ".join)
def test_every_command_has_help_with_an_example(cli: CommandLine, path: tuple[str, ...]) -> None:
    cli.patch.setenv("COLUMNS", "200")
    done = cli(*path, "--help")
    assert done.code == 0
    if path:
        assert f"opendev {path[0]}" in done.out
    assert "Example:" in done.out


@pytest.mark.parametrize("path", [path for path, _ in TREE], ids=" ".join)
def test_an_unknown_option_is_wrong_usage(cli: CommandLine, path: tuple[str, ...]) -> None:
    done = cli(*path, "--no-such-option")
    assert (done.code, done.out) == (2, "")
    assert "--no-such-option" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("path", [(), ("config",), ("tools",), ("agents",), ("worktrees",), ("policy",)])
def test_a_wrong_sub_command_is_wrong_usage(cli: CommandLine, path: tuple[str, ...]) -> None:
    done = cli(*path, "no-such-command")
    assert (done.code, done.out) == (2, "")
    assert "no-such-command" in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-p",), "-p"),
        (("-p", "x", "doctor"), "sub-command"),
        (("-p", "x", "--output", "xml"), "xml"),
        (("-p", "x", "--max-iterations", "0"), "--max-iterations"),
        (("--working-dir", "/no/such/folder", "doctor"), "/no/such/folder"),
        (("swarm", "no-such-file.toml"), "no-such-file.toml"),
    ],
)
def test_wrong_usage_is_two_and_a_sentence(cli: CommandLine, arguments: tuple[str, ...], told: str) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_the_version(cli: CommandLine) -> None:
    assert cli("--version").out == f"opendev {__version__}\n"


@pytest.mark.req("CLI-01")
def test_without_a_terminal_the_way_is_named(cli: CommandLine) -> None:
    for arguments in ((), ("--plain",), ("--continue",)):
        done = cli(*arguments)
        assert (done.code, done.out) == (2, "")
        assert 'opendev -p "' in done.err
    for arguments in (("--plain", "-p", "x"), ("--plain", "doctor"), ("--output", "json")):
        done = cli(*arguments)
        assert (done.code, bool(done.out)) == (2, "json" in arguments)
        assert "does not go with" in done.err or "goes with -p only" in done.err


def test_a_broken_settings_file_stops_every_command_that_reads_it(cli: CommandLine) -> None:
    path = cli.settings({"no_such": 1})
    for arguments in (("doctor",), ("models", "list"), ("tools", "run", "read_file"), ("-p", "x")):
        done = cli(*arguments)
        assert (done.code, done.out, f"{path}, line 2" in done.err) == (2, "", True), done.err


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (MemoryError(), "no more memory"),
        (RuntimeError("can't start new thread"), "no more threads"),
    ],
)
def test_a_limit_of_the_machine_is_no_defect(error: Exception, why: str) -> None:
    with pytest.raises(OpenDevError) as caught, border():
        raise error
    assert caught.value.info.kind is ErrorKind.INFRA
    assert why in caught.value.info.message


def test_a_folder_whose_name_is_no_utf_8_is_refused_by_its_name(cli: CommandLine) -> None:
    odd = Path(os.fsdecode(os.fsencode(cli.project) + b"/bad\xff"))
    odd.mkdir()
    done = cli("--working-dir", str(odd), "config", "path")
    assert done.code == 2
    assert "bad\\xff is no UTF-8" in done.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("-p hi --output json --approve atuo", 2),
        ("-p hi --output=stream-json --no-such", 2),
        ("--output json", 2),
        ("swarm run gone.toml --output json", 2),
        ("swarm resume gone --output stream-json", 2),
    ],
)
def test_where_json_is_asked_for_a_command_that_cannot_start_prints_json(
    cli: CommandLine, words: str, code: int
) -> None:
    done = cli(*words.split())
    told = done.json()
    assert (done.code, told["exit_code"], told["status"]) == (code, code, "failed")
    assert told["error"]["message"] in done.err
    assert ("run_id" in told, told.get("kind")) == ("swarm" in words, "report" if "stream" in words else None)
