"""`opendev mcp …`, `opendev skills …` (MCP-09, CLI-05, SKL-05)."""

import json
import sys
from pathlib import Path

import pytest
from opendev.cli.extensions import load_extensions
from opendev.cli.project import open_project
from opendev.tools.mcp.logins import LoginStore

from .conftest import CommandLine

PLAIN = str(Path(__file__).parents[2] / "support" / "plain_mcp_server.py")


@pytest.mark.req("MCP-09", "CLI-05")
def test_a_server_is_added_listed_switched_and_removed(cli: CommandLine) -> None:
    assert cli("mcp", "add", "--env", "A=${B}", "plain", sys.executable, "-S", PLAIN, "--", "-x").code == 0
    entry = json.loads((cli.home / "mcp.json").read_text())["mcpServers"]["plain"]
    assert entry["command"] == sys.executable
    assert entry["args"][:2] == ["-S", PLAIN]
    assert entry["env"] == {"A": "${B}"}
    assert cli("mcp", "add", "plain", "again").code == 2
    assert "enabled" in cli("mcp", "list").out
    assert cli("mcp", "disable", "plain").code == 0
    assert "disabled" in cli("mcp", "list").out
    assert load_extensions(open_project(cli.project)).mcp == ()
    assert cli("mcp", "enable", "plain").code == 0
    assert "B" in load_extensions(open_project(cli.project)).notes[0]  # the variable is not set
    cli.patch.setenv("B", "b")
    (server,) = load_extensions(open_project(cli.project)).mcp
    assert server.env == {"A": "b"}
    assert cli("mcp", "remove", "plain").code == 0
    assert cli("mcp", "list").out == ""
    assert cli("mcp", "remove", "plain").code == 2
    assert cli("mcp", "add", "nothing").code == 2
    assert cli("mcp", "add", "--url", "ftp://x", "odd").code == 2


@pytest.mark.req("MCP-09")
def test_a_login_needs_an_address_and_a_person(cli: CommandLine) -> None:
    cli("mcp", "add", "plain", sys.executable)
    cli("mcp", "add", "--url", "http://127.0.0.1:9/mcp", "far")
    (far,) = (server for server in load_extensions(open_project(cli.project)).mcp if server.name == "far")
    store = LoginStore(cli.home, far.url)
    assert cli("mcp", "login", "plain").code == 2
    nobody = cli("mcp", "login", "far")
    assert (nobody.code, nobody.out) == (7, "")
    assert "terminal" in nobody.err
    store.save(tokens={"access_token": "x"})
    assert Path(far.home) == cli.home
    assert cli("mcp", "logout", "far").out == "Forgot the login to far.\n"
    assert store.load() == {}
    assert cli("mcp", "logout", "far").out == "There was no login to far.\n"


@pytest.mark.req("MCP-09")
def test_a_server_is_tried_and_its_tools_listed(cli: CommandLine) -> None:
    cli("mcp", "add", "plain", sys.executable, "-S", PLAIN)
    done = cli("mcp", "test", "plain")
    assert (done.code, done.out) == (0, "plain: ready, 1 tools\n")
    assert cli("mcp", "tools", "plain").out.startswith("mcp__plain__echo  ")
    cli("mcp", "add", "broken", "/no/such/program")
    broken = cli("mcp", "test", "broken")
    assert broken.code == 6
    assert "/no/such/program" in broken.out
    assert cli("mcp", "test", "nobody").code == 2


@pytest.mark.req("MCP-09")
def test_a_server_of_the_project_never_starts_before_consent(cli: CommandLine) -> None:
    mark = cli.project / "MARK"
    body = {"command": "touch", "args": [str(mark)]}
    (cli.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": body}}))
    assert "not trusted" in cli("mcp", "list").out
    refused = cli("mcp", "test", "theirs")
    assert refused.code != 0
    assert "not trusted" in refused.err
    assert load_extensions(open_project(cli.project)).mcp == ()
    assert not mark.exists()
    assert str(mark) in cli("mcp", "enable", "theirs").out
    assert [s.name for s in load_extensions(open_project(cli.project)).mcp] == ["theirs"]
    cli("mcp", "test", "theirs")
    assert mark.exists()
    cli("mcp", "disable", "theirs")
    assert load_extensions(open_project(cli.project)).mcp == ()


@pytest.mark.req("SKL-05", "SKL-06")
def test_skills_are_listed_shown_and_trusted(cli: CommandLine) -> None:
    own = cli.home / "skills" / "mine.md"
    theirs = cli.project / ".opendev" / "skills" / "theirs.md"
    for path in (own, theirs):
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {path.stem}\ndescription: Use when asked.\n---\nBody of {path.stem}.\n")
    listed = cli("skills", "list")
    assert "mine" in listed.out
    assert "theirs" not in listed.out
    assert "not trusted" in listed.err
    assert "Body of theirs." in cli("skills", "show", "theirs").out
    assert cli("skills", "trust", "theirs").code == 0
    assert "<skill_content" in cli("skills", "show", "theirs").out
    assert [s.name for s in load_extensions(open_project(cli.project)).skills] == ["theirs", "mine"]
    assert cli("skills", "show", "none").code == 2
