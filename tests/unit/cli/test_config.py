"""`opendev config`: what is set, by whom, where, and changes that are checked first."""

import json

import pytest

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
