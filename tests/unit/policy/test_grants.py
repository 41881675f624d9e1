"""What "session" and "always" allow: the proposed rules, their words on the card, and where they are offered (APR-06)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from opendev.core.permissions import Permissions, Rule
from opendev.core.scope import Scope
from opendev.policy import grants
from opendev.policy.gate import Gate
from opendev.policy.grants import Grants, choices, proposal, shown_call
from opendev.tools.catalog import BUILTIN

TOOLS = {tool.name: tool for tool in BUILTIN}


def asked(tool: str = "run_command", keep: str = "always", **arguments: Any) -> ApprovalRequest:
    return ApprovalRequest.model_validate(
        {"id": "q", "agent_id": "a", "agent": "Coder", "tool": tool, "arguments": arguments, "reason": "r", "card": "c", "keep": keep}
    )  # fmt: skip


def answer(request: ApprovalRequest, decision: str) -> ApprovalAnswer:
    return ApprovalAnswer.model_validate({"decision": decision, "digest": request.digest})


@pytest.mark.req("APR-06")
@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("npm install left-pad", [("prefix", "npm install")]),
        ("make", [("command", "make")]),
        ("pytest -q tests", [("command", "pytest -q tests")]),
        ("ls && cargo build", [("prefix", "cargo build")]),
        ("python3 -m pytest", [("command", "python3 -m pytest")]),
        ("python3 setup", [("command", "python3 setup")]),
        ("rm a", [("command", "rm a")]),
        ("env A=1 make test", [("command", "env A=1 make test")]),
        ("make $TARGET", []),
        ("make 'unterminated", []),
        ("; ".join(f"tool{n} x" for n in range(9)), []),
    ],
)
def test_the_rules_that_always_would_save(command: str, rules: list[tuple[str, str]]) -> None:
    assert [(r.rule_type.value, r.pattern) for r in proposal("run_command", {"command": command})] == rules


@pytest.mark.req("APR-06")
@pytest.mark.parametrize(
    ("tool", "args", "keep"),
    [
        ("run_command", {"command": "npm install x"}, "always"),
        ("run_command", {"command": "npm install x > log"}, "session"),  # no rule covers what writes a file
        ("run_command", {"command": "rm -rf build"}, "session"),  # confirmed at every level
        ("run_command", {"command": "make $TARGET"}, "session"),
        ("run_command", {"command": "npm publish"}, "once"),  # must be changed
        ("write_file", {"file_path": "a.py", "content": "x"}, "always"),
        ("write_file", {"file_path": ".opendev/a", "content": "x"}, "session"),
    ],
)
def test_how_far_an_answer_may_go(tmp_path: Path, tool: str, args: dict[str, Any], keep: str) -> None:
    edit = Rule.model_validate({"rule_type": "prefix", "pattern": "npm publish", "action": "require_edit"})
    gate = Gate(
        level=ApprovalLevel.SEMI_AUTO, mode=Mode.NORMAL, root=tmp_path, scope=Scope(), permissions=Permissions(rules=(edit,))
    )  # fmt: skip
    given = TOOLS[tool].args.model_validate(args)
    verdict = gate.judge(TOOLS[tool], given)
    assert verdict.decision == "ask"
    assert gate.keep(TOOLS[tool], given, verdict) == keep


def test_each_choice_says_what_exactly_it_means() -> None:
    request = asked(command="npm install left-pad && make")
    told = {choice.decision: choice.meaning for choice in choices(request)}
    assert list(told) == ["once", "session", "always", "deny"]
    rules = "commands that begin with the words `npm install`; exactly the command `make`"
    assert (
        told["session"]
        == f"until this session ends, without asking: {rules}, by any agent, each in its own folder"
    )
    assert told["always"] == f"from now on in this project, saved in permissions.json: {rules}"
    exact = {c.decision: c.meaning for c in choices(asked(keep="session", command="rm -rf build"))}
    assert list(exact) == ["once", "session", "deny"]
    assert "exactly this call" in exact["session"]
    assert [c.decision for c in choices(asked(keep="once", command="x"))] == ["once", "deny"]
    assert (
        "write_file with any path in the working folder"
        in choices(asked("write_file", file_path="a"))[2].meaning
    )
    assert [c.label for c in choices(asked("present_plan", "session"))] == ["Approve", "Approve with its edits", "Change it"]  # fmt: skip


@pytest.mark.req("APR-06")
def test_a_grant_covers_what_was_said_and_nothing_beside_it() -> None:
    found = Grants()
    first = asked(command="npm install left-pad")
    found.note(first, answer(first, "once"))
    found.note(first, answer(first, "deny"))
    assert not found.cover(first)
    found.note(first, answer(first, "session"))
    assert found.cover(asked(command="npm install other"))
    assert found.cover(asked(command="ls && npm install other"))
    assert not found.cover(asked(command="npm publish"))
    assert not found.cover(asked(command="npm install x; npm publish"))
    assert not found.cover(asked(keep="session", command="npm install x > log"))
    push = asked(command="git push")
    found.note(push, answer(push, "session"))
    assert found.cover(asked(command="git push origin"))
    assert not found.cover(asked(keep="session", command="git push --force"))  # confirmed at every level
    exact = asked(keep="session", command="rm -rf build")
    found.note(exact, answer(exact, "session"))
    assert found.cover(exact)
    assert not found.cover(asked(keep="session", command="rm -rf build2"))
    assert not found.cover(exact.model_copy(update={"must_edit": True}))
    edit = asked("write_file", file_path="a", content="x")
    found.note(edit, answer(edit, "always"))
    assert found.cover(asked("write_file", file_path="b", content="y"))
    assert not found.cover(asked("delete_file", file_path="b"))
    plan = asked("present_plan", "session", plan_file_path="p")
    found.note(plan, answer(plan, "session"))
    assert not found.cover(plan)


def test_grants_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "MAX_GRANTS", 3)
    found = Grants()
    made = [asked(keep="session", command=f"rm -rf {n}") for n in range(5)]
    wide = [asked(command=f"npm sub{n}") for n in "abcde"]
    for request in (*made, *wide):
        found.note(request, answer(request, "session"))
    assert [found.cover(request) for request in made] == [True, True, True, False, False]
    assert [found.cover(request) for request in wide] == [True, True, True, False, False]


def test_logs_show_calls_without_secrets() -> None:
    assert (
        shown_call({"command": "curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz123456'"}).count(
            "abcdef"
        )
        == 0
    )
    assert shown_call({"path": "a"}) == '{"path":"a"}'
    assert len(shown_call({"command": "x" * 9_000})) == 4_000
