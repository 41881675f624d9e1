"""`opendev policy check --rules` and the stores behind it (cli.md, APR-02, APR-05)."""

import json
from pathlib import Path
from typing import Any

import pytest
from opendev.store.history import CommandHistory
from opendev.store.layout import Layout

from .conftest import CommandLine

DENY = {"name": "no push", "rule_type": "prefix", "pattern": "git push", "action": "auto_deny"}
ALLOW = {"name": "build", "rule_type": "prefix", "pattern": "make", "action": "auto_approve"}


def write(path: Path, *rules: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "rules": rules}))
    return path


def decision(cli: CommandLine, *words: str) -> str:
    return cli("policy", "check", "--mode", "semi-auto", *words).json()["decision"]


@pytest.mark.req("APR-02")
def test_rules_of_a_file_stand_in_place_of_the_stores(cli: CommandLine, tmp_path: Path) -> None:
    write(cli.home / "permissions.json", {**ALLOW, "pattern": "npm"})
    rules = str(write(tmp_path / "rules.json", ALLOW, DENY))
    done = cli(
        "policy", "check", "--mode", "semi-auto", "--rules", rules, "--", "make all && git push origin"
    )
    found = done.json()
    assert (done.code, found["decision"], found["floor"]) == (0, "deny", False)
    assert [(c["text"], c["decision"], c["rule"]) for c in found["commands"]] == [
        ("make all", "allow", "build"), ("git push origin", "deny", "no push"),
    ]  # fmt: skip
    assert "no push" in found["commands"][1]["reason"]
    assert decision(cli, "--rules", rules, "--", "npm test") == "ask"
    assert decision(cli, "--", "npm test") == "allow"  # without it the user's own rules count
    floor = cli("policy", "check", "--mode", "auto", "--rules", rules, "--", "make; rm -rf /").json()
    assert (floor["decision"], floor["floor"]) == ("deny", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{"rules": [\n{"rule_type": "prefix",\n"pattern": "a", "action": "allow"}]}',
            "line 3: `rules[0].action`",
        ),
        (
            '{"rules": [\n{"rule_type": "prefix", "action": "auto_deny"}]}',
            "line 2: `rules[0].pattern`: Field required",
        ),
        ("{", "line 1: not valid JSON"),
    ],
)
def test_a_file_that_is_unclear_ends_with_its_line_and_field(
    cli: CommandLine, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "rules.json").write_text(text)
    done = cli("policy", "check", "--rules", str(tmp_path / "rules.json"), "--", "ls")
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err
    (cli.home).mkdir(exist_ok=True)
    (cli.home / "permissions.json").write_text(text)
    for words in (("policy", "check", "--", "ls"), ("tools", "run", "list_files"), ("config", "check")):
        own = cli(*words)
        assert own.code == 2, own
        assert says in own.err


def test_a_missing_file_is_said(cli: CommandLine) -> None:
    done = cli("policy", "check", "--rules", "nowhere.json", "--", "ls")
    assert (done.code, done.out) == (2, "")
    assert "nowhere.json" in done.err


@pytest.mark.req("APR-05")
def test_a_projects_rules_count_as_far_as_it_is_trusted(cli: CommandLine) -> None:
    path = write(cli.project / ".opendev/permissions.json", ALLOW, DENY)
    assert [decision(cli, "--", command) for command in ("make", "git push")] == ["ask", "deny"]
    assert "(1) are not used" in cli("config", "check").err
    assert cli("config", "trust", ".opendev/permissions.json").code == 0
    assert [decision(cli, "--", command) for command in ("make", "git push")] == ["allow", "deny"]
    write(path, ALLOW, {**ALLOW, "pattern": "curl"})  # other content: consent is gone
    assert [decision(cli, "--", command) for command in ("make", "curl x.test")] == ["ask", "ask"]


@pytest.mark.req("APR-03", "APR-07", "SHL-02")
def test_a_tool_run_by_hand_obeys_the_rules(cli: CommandLine) -> None:
    write(
        cli.home / "permissions.json",
        {**ALLOW, "pattern": "touch"},
        {**DENY, "pattern": "touch b", "priority": 9},
    )
    args = [json.dumps({"command": f"touch {name}"}) for name in ("a", "b")]
    assert [cli("tools", "run", "run_command", "--args", one).code for one in args] == [0, 7]
    assert [path.name for path in cli.project.iterdir()] == ["a"]
    history = CommandHistory(Layout(cli.home).project(cli.project))
    assert [(row.command, row.action) for row in history.decisions()] == [
        ("touch a", "allow"),
        ("touch b", "deny"),
    ]
