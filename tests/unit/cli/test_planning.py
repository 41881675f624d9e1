"""`opendev swarm plan`: one Planner, reading only, against a scripted model; a checked file, one repair, never a run."""

import asyncio
import os
import signal
import sys
import tomllib
from pathlib import Path

import pytest
from support.model_server import ModelServer, Reply, Seen, call, failing, text
from support.repos import fingerprint, make_repo
from support.waiting import until

from .conftest import CommandLine

GOOD = """[swarm]
into = "swarm/rename"

[[task]]
id = "rename"
goal = "Rename A to B."
scope = ["a.py"]
verify = "true"
done = "B exists."
recipe = [ { replace = { pattern = "A", with = "B", glob = "a.py" } } ]

[[task]]
id = "note"
goal = "Say so in a note."
scope = ["NOTE.md"]
verify = "true"
done = "The note exists."
depends_on = ["rename"]
"""
BAD = GOOD.replace('depends_on = ["rename"]', 'depends_on = ["renam"]').replace("goal =", "gaol =", 1)


def fenced(body: str) -> Reply:
    return text(f"Here it is.\n\n```toml\n{body}```\n")


@pytest.fixture
def repo(cli: CommandLine) -> Path:
    folder = make_repo(cli.project / "repo")
    cli.patch.chdir(folder)
    return folder


def plan(cli: CommandLine, server: ModelServer, *options: str) -> int:
    for name, value in server.env().items():
        cli.patch.setenv(name, value)
    done = cli("swarm", "plan", "Rename A to B", "-o", "../t.toml", "--model", "openai/mock", *options)
    assert done.out == ""
    cli.told = done.err
    return done.code


@pytest.mark.slow
def test_it_reads_answers_and_writes_the_file(cli: CommandLine, repo: Path) -> None:
    before = fingerprint(repo)
    with ModelServer([call("read_file", {"file_path": "a.py"}), fenced(GOOD)]) as server:
        assert plan(cli, server) == 0, cli.told
        first, second = server.seen
    assert (cli.project / "t.toml").read_text() == GOOD
    assert fingerprint(repo) == before
    assert "2 tickets from" in cli.told
    assert "wave 2: note" in cli.told
    assert "opendev swarm run ../t.toml" in cli.told
    assert "price of openai/mock is unknown" in cli.told
    assert {tool["function"]["name"] for tool in first.body["tools"]} == {
        "read_file",
        "list_files",
        "search",
        "find_symbol",
    }
    assert first.says("Rename A to B")
    assert first.says("`main`")
    assert first.says("You split one goal into tickets")
    assert not first.says("System prompt of")  # the template's comment is for people
    assert second.says("A = 1")
    assert not first.says("could not be used")


@pytest.mark.slow
def test_what_libraries_print_meanwhile_goes_to_the_log(cli: CommandLine, repo: Path) -> None:
    def noisy(_seen: Seen) -> Reply:
        os.write(1, b"noise of a library\n")
        os.write(2, b"its warning\n")
        return fenced(GOOD)

    with ModelServer(noisy) as server:
        assert plan(cli, server) == 0, cli.told
    (log,) = (cli.home / "runs").glob("*/runtime.log")
    assert {"noise of a library", "its warning"} <= set(log.read_text().splitlines())


@pytest.mark.slow
def test_an_answer_with_faults_goes_back_once_with_all_of_them(cli: CommandLine, repo: Path) -> None:
    with ModelServer([fenced(BAD), fenced(GOOD)]) as server:
        assert plan(cli, server) == 0, cli.told
        assert server.seen[1].says("there is no ticket `renam`")
        assert server.seen[1].says("task[0].gaol: unknown key")
        assert not server.seen[1].says("opendev-plan-")  # our temporary folder is nobody's business
    assert tomllib.loads((cli.project / "t.toml").read_text())["task"][1]["id"] == "note"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replies", "told"),
    [
        ([fenced(BAD), fenced(BAD)], "there is no ticket `renam`"),
        ([text("I would rather not."), text("Still not.")], "0 fenced blocks"),
        ([text(f"```toml\n{GOOD}```\n```toml\n{GOOD}```")] * 2, "2 fenced blocks"),
        ([fenced(GOOD.replace("[swarm]", '[swarm]\nbase = "nowhere"'))] * 2, "swarm.base"),
    ],
)
def test_two_answers_that_are_off_write_nothing(
    cli: CommandLine, repo: Path, replies: list[Reply], told: str
) -> None:
    with ModelServer(replies) as server:
        assert plan(cli, server) == 1
        assert len(server.seen) == 2
    assert told in cli.told
    assert not (cli.project / "t.toml").exists()


@pytest.mark.slow
def test_the_exit_codes_are_the_usual_ones(cli: CommandLine, repo: Path) -> None:
    with ModelServer([failing(401, "bad key")], repeat=True) as server:
        assert plan(cli, server) == 6
    with ModelServer([fenced(GOOD)], repeat=True) as server:
        assert plan(cli, server, "--max-cost", "0.0001") == 5
        assert server.seen == []
    assert not (cli.project / "t.toml").exists()


@pytest.mark.slow
async def test_an_interrupt_ends_it_with_130(cli: CommandLine, repo: Path) -> None:
    with ModelServer([fenced(GOOD)], latency_s=60) as server:
        words = ("swarm", "plan", "Rename A to B", "-o", "../t.toml", "--model", "openai/mock")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from opendev.cli.entry import main; main()", *words),
            env={**os.environ, **server.env()},  # noqa: TID251 - a test's own process
            stderr=asyncio.subprocess.PIPE,
        )
        await until(lambda: len(server.seen) == 1 or process.returncode is not None)
        assert process.returncode is None, await process.communicate()
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(15):
            _, told = await process.communicate()
    assert (process.returncode, b"Traceback" in told) == (130, False), told
    assert not (repo.parent / "t.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("Do it", "-o", "new.toml"), "No model is configured"),
        (("Do it", "-o", "taken.toml", "--model", "a/b"), "exists already"),
        (("Do it", "-o", "new.json", "--model", "a/b"), "does not end in .toml"),
        ((" ", "-o", "new.toml", "--model", "a/b"), "goal is empty"),
        (("Do it", "--model", "a/b"), "-o"),
    ],
)
def test_wrong_usage_starts_nothing(
    cli: CommandLine, repo: Path, arguments: tuple[str, ...], told: str
) -> None:
    (repo / "taken.toml").write_text("mine")
    done = cli("swarm", "plan", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert (repo / "taken.toml").read_text() == "mine"
    assert not (cli.home / "runs").exists()
