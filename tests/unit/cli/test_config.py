"""`opendev config`: what is set, by whom, where, and changes that are checked first."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from opendev.cli.config import change_setting
from opendev.cli.project import open_place

from .conftest import CommandLine


def test_show_prints_every_setting_as_json(cli: CommandLine) -> None:
    cli.settings({"model": "a/b", "api_key": "sk-1"})
    done = cli("config", "show")
    assert done.code == 0
    shown = done.json()
    assert (shown["model"], shown["cost"]) == ("a/b", {"assumed_input_usd": 3.0, "assumed_output_usd": 15.0})
    assert "`api_key` looks like a key" in done.err
    assert "sk-1" not in done.out + done.err


def test_explain_names_the_layer(cli: CommandLine) -> None:
    path = cli.settings({"model": "a/b"}, project=True)
    told = cli("config", "explain", "model").json()
    assert (told["value"], told["set_by"], told["layers"][-1]["place"]) == ("a/b", "project", str(path))
    wrong = cli("config", "explain", "modle")
    assert (wrong.code, wrong.out) == (2, "")
    assert "no setting `modle`" in wrong.err


def test_set_writes_the_users_or_the_projects_file(cli: CommandLine) -> None:
    assert cli("config", "set", "agents.max_depth", "1").code == 0
    path = cli.home / "settings.json"
    assert json.loads(path.read_text()) == {"agents": {"max_depth": 1}}
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert cli("config", "set", "--project", "model", "openai/gpt-5").code == 0
    own = cli.project / ".opendev" / "settings.json"
    assert json.loads(own.read_text()) == {"model": "openai/gpt-5"}
    assert oct(own.stat().st_mode & 0o777) == "0o644"
    assert cli("config", "explain", "agents.max_depth").json()["value"] == 1


def test_set_checks_before_it_writes(cli: CommandLine) -> None:
    path = cli.settings({"model": "a/b"})
    before = path.read_bytes()
    for arguments in (("agents.max_depth", "99"), ("approval", "yolo"), ("no.such", "1"), ("prices", "3")):
        done = cli("config", "set", *arguments)
        assert (done.code, done.out) == (2, "")
        assert arguments[0] in done.err
    assert path.read_bytes() == before


def test_set_tells_that_a_key_was_taken_out_of_the_file(cli: CommandLine) -> None:
    path = cli.settings({"api_key": "sk-1"})
    done = cli("config", "set", "model", "a/b")
    assert json.loads(path.read_text()) == {"model": "a/b"}
    assert "`api_key` looks like a key" in done.err


def test_the_price_a_notice_suggests_can_be_set(cli: CommandLine) -> None:
    assert cli("config", "set", "prices", '{"openai/x": {"input": 1.0, "output": 2.0}}').code == 0
    assert cli("models", "show", "openai/x").json()["price"]["output"] == 2.0


def test_path_says_which_files_exist(cli: CommandLine) -> None:
    path = cli.settings({})
    lines = cli("config", "path").out.splitlines()
    assert lines[0] == str(path)
    assert lines[1] == f"{cli.project / '.opendev' / 'settings.json'}  (does not exist)"


def test_check_ends_with_two_and_the_place_of_the_fault(cli: CommandLine) -> None:
    assert cli("config", "check").out == "The settings are valid.\n"
    path = cli.settings({"agents": {"max_depth": "deep"}})
    done = cli("config", "check")
    assert (done.code, done.out) == (2, "")
    assert f"{path}, line 3: `agents.max_depth`" in done.err


def test_a_widening_project_is_told_of(cli: CommandLine) -> None:
    cli.settings({"approval": "auto"}, project=True)
    done = cli("config", "check")
    assert done.code == 0
    assert "`approval` would widen" in done.err
    assert cli("config", "show").json()["approval"] == "semi-auto"


def test_check_tells_every_fault_of_every_file_at_once(cli: CommandLine) -> None:
    """File, line, key, what is wrong and the nearest name; also of a value that a later layer hides."""
    mine = cli.settings(
        {"modle": "a/b", "temperature": 9, "api_key": "sk-1", "agents": {"max_depth": "deep", "max_totl": 1}}
    )
    own = cli.settings({"temperature": 0.5, "retry": 3, "approval": "yolo"}, project=True)
    rules = cli.home / "permissions.json"
    rules.write_text('{"rules": [{"rule_type": "prefix", "pattern": "x"}]}')
    (cli.project / ".opendev/permissions.json").write_text("{")
    (cli.project / ".mcp.json").write_text('{"mcpServers": {"a": {}}}')
    (cli.home / "agents").mkdir()
    (cli.home / "agents/x.md").write_text("no front matter")
    (cli.home / "skills").mkdir()
    (cli.home / "skills/y.md").write_text("no front matter")
    before = {path: path.read_bytes() for path in (mine, own, rules)}
    done = cli("config", "check")
    assert (done.code, done.out) == (2, "")
    expected = (
        f"Warning: {mine}, line 4: `api_key` looks like a key",
        f"{mine}, line 2: unknown setting `modle`; did you mean `model`",
        f"{mine}, line 3: `temperature` is 9",
        f"{mine}, line 6: `agents.max_depth` is 'deep'",
        f"{mine}, line 7: unknown setting `agents.max_totl`; did you mean `agents.max_total`",
        f"{own}, line 3: `retry` is a group of settings",
        f"{own}, line 4: `approval` is 'yolo'",
        f"{rules}, line 1",
        "permissions.json, line 1: not valid JSON",
        "The MCP server a in",
        "agents/x.md",
        "skills/y.md",
    )
    lines = done.err.splitlines()
    assert [part for part in expected if sum(part in line for line in lines) != 1] == []
    assert len(lines) == len(expected)
    assert {path: path.read_bytes() for path in before} == before


def test_a_command_tells_the_first_fault_and_where_all_are_listed(cli: CommandLine) -> None:
    cli.settings({"modle": "a/b", "temprature": 1})
    done = cli("config", "show")
    assert (done.code, done.out) == (2, "")
    assert "`modle`" in done.err
    assert "There is one other fault: `opendev config check` lists all." in done.err
    assert cli("config", "path").code == 0
    explained = cli("config", "explain", "temperature")  # as the hints of faults advise
    assert (explained.code, explained.json()["set_by"], "`modle`" in explained.err) == (0, "default", True)


def test_check_tells_what_has_no_effect(cli: CommandLine) -> None:
    """Neither is a fault: a key that was left out, a file that waits for consent, a variable with a slip of the pen."""
    cli.settings({"api_key": "sk-1"})
    (cli.project / ".opendev/agents").mkdir(parents=True)
    (cli.project / ".opendev/agents/x.md").write_text("---\nname: X\n---\nDo x.\n")
    cli.patch.setenv("OPENDEV_MODLE", "a/b")
    done = cli("config", "check")
    assert (done.code, done.out) == (0, "The settings are valid.\n")
    warnings = done.err.splitlines()
    for part in (
        "`api_key` looks like a key",
        "you have not agreed",
        "OPENDEV_MODLE sets nothing; did you mean `OPENDEV_MODEL`",
    ):
        assert sum(part in line for line in warnings) == 1, part


@pytest.mark.req("CFG-04")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key", "abc"),
        ("model", "sk-live-0123456789"),
        ("mcp_servers", '{"x": {"command": "y", "env": {"A_TOKEN": "abcdefgh"}}}'),
    ],
)
def test_set_takes_no_secret(cli: CommandLine, key: str, value: str) -> None:
    done = cli("config", "set", key, value)
    assert (done.code, done.out) == (2, "")
    assert "no settings file" in done.err
    assert value not in done.err
    assert not (cli.home / "settings.json").exists()


def test_set_mends_a_file_and_leaves_what_it_was_not_asked_about(cli: CommandLine) -> None:
    path = cli.settings({"$schema": "x", "modle": "a/b", "agents": {"max_depth": 99}})
    assert cli("config", "show").code == 2
    done = cli("config", "set", "agents.max_depth", "2")
    assert done.code == 0
    assert "`modle`" in done.err
    assert json.loads(path.read_text()) == {"$schema": "x", "modle": "a/b", "agents": {"max_depth": 2}}
    broken = path.read_text().replace("}", "", 1)
    path.write_text(broken)
    assert cli("config", "set", "model", "a/b").code == 2
    assert path.read_text() == broken


@pytest.mark.parametrize("key", ["approval", "auto_approve", "web.allow_private", "prices", "mcp_servers"])
def test_a_projects_value_that_would_widen_is_not_written(cli: CommandLine, key: str) -> None:
    value = {"approval": "auto", "prices": '{"a/b": {"input": 0, "output": 0}}', "mcp_servers": "{}"}.get(
        key, "true"
    )
    done = cli("config", "set", "--project", key, value)
    assert (done.code, "would widen" in done.err) == (2, True)
    assert not (cli.project / ".opendev/settings.json").exists()


def test_set_says_when_another_layer_counts(cli: CommandLine) -> None:
    own = cli.settings({"model": "p/q"}, project=True)
    done = cli("config", "set", "model", "a/b")
    assert (done.code, f"{own} sets model too" in done.err) == (0, True)


def test_a_link_of_the_users_file_is_kept_and_a_projects_never_followed(cli: CommandLine) -> None:
    dotfiles = cli.home.parent / "dotfiles.json"
    cli.home.mkdir()
    dotfiles.write_text('{"model": "a/b"}')
    (cli.home / "settings.json").symlink_to(dotfiles)
    assert cli("config", "set", "temperature", "1").code == 0
    assert (cli.home / "settings.json").is_symlink()
    assert json.loads(dotfiles.read_text()) == {"model": "a/b", "temperature": 1}
    (cli.project / ".opendev").mkdir()
    (cli.project / ".opendev/settings.json").symlink_to(dotfiles)
    done = cli("config", "set", "--project", "temperature", "0")
    assert (done.code, "leads out of the project" in done.err) == (2, True)
    assert json.loads(dotfiles.read_text()) == {"model": "a/b", "temperature": 1}


def test_d05_settings_set_at_once_are_all_there(cli: CommandLine) -> None:
    values = {
        "agents.max_depth": 1,
        "agents.max_total": 2,
        "retry.max_tries": 3,
        "temperature": 1,
        "max_tokens": 5,
    }
    place = open_place(cli.project)
    with ThreadPoolExecutor(len(values)) as pool:
        for done in [pool.submit(change_setting, place, key, str(value)) for key, value in values.items()]:
            done.result()
    kept = json.loads((cli.home / "settings.json").read_text())
    assert kept == {
        "agents": {"max_depth": 1, "max_total": 2},
        "retry": {"max_tries": 3},
        "temperature": 1,
        "max_tokens": 5,
    }
    assert sorted(path.name for path in cli.home.iterdir()) == ["settings.json", "settings.lock"]


@pytest.mark.req("CFG-11")
def test_a_server_of_the_settings_is_listed_and_switched(cli: CommandLine) -> None:
    cli.settings({"mcp_servers": {"files": {"command": "run-files", "env": {"A_TOKEN": "${A_TOKEN}"}}}})
    assert "run-files" in cli("mcp", "list").out
    assert cli("mcp", "disable", "files").code == 0
    assert "disabled" in cli("mcp", "list").out
    cli.settings({"mcp_servers": {"evil": {"command": "touch"}}}, project=True)
    listed = cli("mcp", "list")
    assert "evil" not in listed.out
    assert "`mcp_servers` would widen" in cli("config", "check").err


@pytest.mark.req("SAF-09")
def test_trust_lists_agrees_and_withdraws(cli: CommandLine) -> None:
    file = cli.project / ".opendev/agents/x.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: X\ndescription: For x.\n---\nDo \u202ex.\n")
    assert cli("config", "trust").out.split() == ["not", "trusted", ".opendev/agents/x.md"]
    assert "opendev config trust .opendev/agents/x.md" in cli("agents", "list").err
    told = cli("config", "trust", ".opendev/agents/x.md")
    assert (told.code, "Do \\u202ex." in told.out) == (0, True)
    assert cli("config", "trust").out.split() == ["trusted", ".opendev/agents/x.md"]
    assert "\nX " in cli("agents", "list").out
    file.write_text(file.read_text() + "And more.\n")
    assert cli("config", "trust").out.split() == ["changed", ".opendev/agents/x.md"]
    assert "\nX " not in cli("agents", "list").out
    assert cli("config", "trust", "--withdraw", ".opendev/agents/x.md").code == 0
    assert cli("config", "trust").out.split() == ["not", "trusted", ".opendev/agents/x.md"]
    for wrong in ("README.md", "../x", ".opendev/settings.json"):
        assert cli("config", "trust", wrong).code == 2
