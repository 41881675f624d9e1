"""What a hook's end means, which hooks an event concerns, and what an allow can answer (HOK-04, HOK-05, HOK-07, HOK-09, C-11)."""

import json
from typing import Any

import pytest
from opendev.core.hooks import BLOCKING, HookEvent, HookSet
from opendev.policy.hooks import Ended, Matchers, Said, answered, interpret, questioned
from opendev.policy.verdict import allow, ask, deny
from support.hooking import hooks

PRE = HookEvent.PRE_TOOL_USE
ALL = [
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("SubagentStart", "SubagentStop", "Stop", "PreCompact", "SessionEnd"),
]


@pytest.mark.req("HOK-01", "HOK-04")
def test_there_are_ten_events_and_three_of_them_block() -> None:
    assert [event.value for event in HookEvent] == ALL
    assert [HookEvent[name].value for name in ("SESSION_START", "STOP")] == ["SessionStart", "Stop"]
    assert {event.value for event in BLOCKING} == {"PreToolUse", "UserPromptSubmit", "SubagentStart"}


@pytest.mark.req("HOK-07", "HOK-02")
def test_matchers_choose_by_name_from_one_to_all_and_the_users_come_first() -> None:
    own = hooks(
        ("PreToolUse", "^run_command$", "one"),
        ("PreToolUse", "write|edit", "two"),
        ("PreToolUse", "*", "all"),
    )
    projects = hooks(("PreToolUse", "", "theirs"), ("PostToolUse", "", "later"))
    found = Matchers(HookSet(own=own, projects=projects))

    def chosen(name: str) -> list[str]:
        return [plan.hook.command for plan in found.of(PRE, name)]

    assert chosen("run_command") == ["one", "all", "theirs"]
    assert chosen("write_file") == chosen("edit_file") == ["two", "all", "theirs"]
    assert chosen("rerun_commands") == ["all", "theirs"]
    assert [plan.foreign for plan in found.of(PRE, "read_file")] == [False, True]
    assert found.of(HookEvent.STOP, "Main") == ()


JSON_MEANINGS: list[tuple[Any, Said]] = [
    ({}, Said()),
    ({"decision": "block", "reason": "no"}, Said(refused="no")),
    ({"decision": "deny"}, Said(refused="Blocked by hook")),
    ({"permissionDecision": "deny", "permissionDecisionReason": "why"}, Said(refused="why")),
    ({"permissionDecision": "allow", "decision": "block"}, Said(refused="Blocked by hook")),
    ({"continue": False, "stopReason": "enough"}, Said(refused="enough")),
    ({"permissionDecision": "allow"}, Said(allowed=True)),
    ({"decision": "approve"}, Said(allowed=True)),
    ({"permissionDecision": "ask", "reason": "look"}, Said(question="look")),
    ({"permissionDecision": "perhaps"}, Said(question="A hook wants a person to decide.")),
    ({"permissionDecision": ["allow"]}, Said(question="A hook wants a person to decide.")),
    ({"updatedInput": {"a": 1}}, Said(update={"a": 1})),
    ({"tool_input": {"a": 1}}, Said(update={"a": 1})),
    ({"tool_input": {"a": 1}, "updatedInput": {"a": 2}}, Said(update={"a": 2})),
    ({"additionalContext": " mind "}, Said(context="mind")),
    (
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}},
        Said(refused="Blocked by hook"),
    ),
]


@pytest.mark.req("HOK-05")
@pytest.mark.parametrize(("answer", "meaning"), JSON_MEANINGS)
def test_an_answer_in_json(answer: Any, meaning: Said) -> None:
    assert interpret(PRE, Ended(0, json.dumps(answer))) == meaning


@pytest.mark.req("HOK-04")
@pytest.mark.parametrize(
    ("out", "err", "reason"),
    [
        ('{"reason": "of the JSON"}', "of the error", "of the JSON"),
        ('{"updatedInput": {}}', "of the error", "of the error"),
        ("{broken", "", "Blocked by hook"),
        ("", "", "Blocked by hook"),
        ('{"permissionDecision": "allow"}', "", "Blocked by hook"),
    ],
)
def test_exit_code_two_refuses_whatever_else_is_said(out: str, err: str, reason: str) -> None:
    for event in BLOCKING:
        assert interpret(event, Ended(2, out, err)) == Said(refused=reason)
    assert interpret(HookEvent.STOP, Ended(2, out, err)) == Said()


@pytest.mark.req("HOK-09")
@pytest.mark.parametrize("code", [1, 3, 125, 255])
def test_another_exit_code_is_told_and_passed_over(code: int) -> None:
    ended = Ended(code, '{"decision": "block"}', "oops")
    for event in HookEvent:
        assert interpret(event, ended) == Said(trouble=f"exit code {code}; oops")


@pytest.mark.req("SAF-09", "HOK-09")
@pytest.mark.parametrize(
    "ended",
    [
        Ended(None, trouble="it did not end within 1 s"),
        Ended(-11),
        Ended(126, err="permission denied"),
        Ended(127, err="not found"),
        Ended(0, '{"permissionDecision": "al'),
        Ended(0, '{"permissionDecision": "allow"}', cut=True),
        Ended(0, '{"updatedInput": "rm"}'),
        Ended(0, '{"updatedInput": []}'),
        Ended(0, "{" * 100_000),
    ],
)
def test_no_answer_refuses_where_it_was_waited_for(ended: Ended) -> None:
    for event in BLOCKING:
        said = interpret(event, ended)
        assert said.refused
        assert said.trouble
    assert not interpret(HookEvent.POST_TOOL_USE, ended).refused


def test_plain_words_are_no_answer_and_secrets_do_not_get_through() -> None:
    assert interpret(PRE, Ended(0, "checked 3 files\n")) == Said()
    assert interpret(PRE, Ended(0, "[1, 2]")) == Said()
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    assert key not in interpret(PRE, Ended(2, "", f"bad key {key}")).refused
    assert key not in interpret(PRE, Ended(1, "", f"bad key {key}")).trouble
    assert len(interpret(PRE, Ended(2, "", "x" * 99_999)).refused) == 1_000


@pytest.mark.req("HOK-05", "HOK-08")
def test_an_allow_answers_the_level_and_rules_only() -> None:
    assert answered(ask("level", "x")).decision == "allow"
    assert answered(ask("rules", "x")).decision == "allow"
    assert answered(ask("rules", "x").model_copy(update={"edit": True})).decision == "ask"
    for verdict in (
        ask("confirm", "x"),
        ask("paths", "x"),
        ask("parse", "x"),
        deny("floor", "x"),
        deny("rules", "x"),
    ):
        assert answered(verdict) == verdict
    assert questioned(allow("level"), "sure?").decision == "ask"
    assert questioned(deny("floor", "x"), "sure?").decision == "deny"
