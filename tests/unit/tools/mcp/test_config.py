"""The MCP files of the user and of a project, and the consent between them (MCP-09, T14, D05)."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import OpenDevError
from opendev.store.consent import agree
from opendev.tools.mcp.config import change_user_file, expand, load_mcp, read_server, usable


def write(path: Path, **servers: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.req("MCP-09")
def test_the_users_servers_are_used_and_the_projects_only_after_consent(home: Path, project: Path) -> None:
    write(home / "mcp.json", mine={"command": "a"}, both={"command": "user"})
    write(project / ".mcp.json", both={"command": "theirs"}, new={"command": "touch", "args": ["MARK"]})
    config = load_mcp(home, project)
    ready, notes = usable(config, {})
    assert {s.name: s.command for s in ready} == {"mine": "a", "both": "user"}
    assert any("new" in note and "not trusted" in note and "touch MARK" in note for note in notes)

    entry = next(e for e in config.entries if e.scope == "project" and e.server.name == "both")
    agree(home, entry.key, entry.digest)
    assert {s.name: s.command for s in usable(load_mcp(home, project), {})[0]} == {
        "mine": "a",
        "both": "theirs",
    }

    write(project / ".mcp.json", both={"command": "theirs", "args": ["--evil"]})
    assert {s.name: s.command for s in usable(load_mcp(home, project), {})[0]} == {
        "mine": "a",
        "both": "user",
    }

    agree(home, entry.key, None)
    assert entry.key not in (home / "trust.json").read_text()


@pytest.mark.req("MCP-09")
def test_a_consent_ends_when_the_script_that_the_server_runs_changes(home: Path, project: Path) -> None:
    write(
        project / ".mcp.json",
        lint={"command": "node", "args": ["lint.js", "--rules=rules.json", "absent.js"]},
    )
    (project / "lint.js").write_text("one")

    def trusted() -> bool:
        return load_mcp(home, project).entries[0].trusted

    def consent() -> None:
        entry = load_mcp(home, project).entries[0]
        agree(home, entry.key, entry.digest)

    consent()
    assert trusted()
    for name, text in (("lint.js", "two"), ("rules.json", "{}"), ("absent.js", "now it is there")):
        (project / name).write_text(text)
        assert not trusted(), name
        consent()
        assert trusted()
    (project / "lint.js").unlink()
    (project / "lint.js").mkdir()
    assert not trusted()


def test_disabled_and_not_started_servers_are_left_out_without_a_word(home: Path, project: Path) -> None:
    write(
        home / "mcp.json", off={"command": "a", "enabled": False}, later={"command": "a", "auto_start": False}
    )
    assert usable(load_mcp(home, project), {}) == ((), ())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "no `command`"),
        ("x", "no JSON object"),
        ({"url": "file:///etc"}, "http"),
        ({"command": "a", "timeout": 1}, "timeout"),
        ({"command": "a", "oauth": {"client_id": "x"}}, "oauth"),
        ({"url": "https://h", "oauth": {"client_id": "x", "client_secret": "s"}}, "issuer"),
        ({"url": "https://h", "oauth": {"grant": "client_credentials"}}, "client_secret"),
        ({"url": "https://h", "oauth": {"client_metadata_url": "http://h/x.json"}}, "client_metadata_url"),
        ({"url": "https://h", "oauth": {"scope": "all"}}, "scope"),
        ({"command": "a", "nonsense": 1}, "nonsense"),
        ({"command": "a", "transport": "carrier-pigeon"}, "transport"),
    ],
)
def test_a_bad_entry_costs_only_itself(home: Path, project: Path, body: Any, why: str) -> None:
    write(home / "mcp.json", bad=body, good={"command": "a"})
    config = load_mcp(home, project)
    assert [e.server.name for e in config.entries] == ["good"]
    assert why in config.refused[0]
    assert "bad" in config.refused[0]


def test_a_broken_file_is_told_of_and_never_overwritten(home: Path, project: Path) -> None:
    home.mkdir()
    (home / "mcp.json").write_text("{")
    assert "mcp.json" in load_mcp(home, project).refused[0]
    with pytest.raises(OpenDevError):
        change_user_file(home, lambda servers: servers.clear())
    assert (home / "mcp.json").read_text() == "{"


@pytest.mark.parametrize("place", ["pipe", "/dev/zero", "/dev/tty", "."])
def test_what_is_no_file_is_told_of_at_once(home: Path, project: Path, place: str) -> None:
    project.mkdir(exist_ok=True)
    os.mkfifo(project / "pipe")
    (project / ".mcp.json").symlink_to(place)
    assert "cannot be read" in load_mcp(home, project).refused[0]


def test_variables_are_filled_in_everywhere_and_a_missing_one_is_named() -> None:
    body = {"url": "${BASE}/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-none}"}}
    server = read_server("s", body, "/p", Path("mcp.json"))
    filled = expand(server, {"BASE": "https://h"})
    assert (filled.url, filled.headers) == ("https://h/mcp", {"Authorization": "Bearer none"})
    assert "TOKEN" not in repr(filled)
    oauth = {"client_id": "me", "client_secret": "${SECRET}", "issuer": "https://as"}
    known = read_server(
        "s", {"url": "https://h", "oauth": oauth, "home": "/elsewhere"}, "/p", Path("mcp.json")
    )
    assert known.home == ""  # where logins are is not for the entry to say
    assert expand(known, {"SECRET": "s3cret"}).oauth.client_secret == "s3cret"
    assert "s3cret" not in repr(expand(known, {"SECRET": "s3cret"}))
    with pytest.raises(OpenDevError, match="BASE"):
        expand(server, {})


def test_writers_at_once_lose_nothing(home: Path) -> None:
    def add(name: str) -> None:
        change_user_file(home, lambda servers: servers.update({name: {"command": name}}))

    def work(name: str) -> None:
        for n in range(5):
            add(f"{name}{n}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads((home / "mcp.json").read_text())["mcpServers"]) == 20
