"""Random rule sets: a refusal never loosens, a foreign project's rules never widen, a child has no more than its parent (APR-03..05)."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.permissions import Action, Permissions, Rule, RuleType, by_priority
from opendev.core.scope import Scope
from opendev.policy.gate import Gate
from opendev.policy.rules import judge_command
from opendev.tools.run_command import TOOL

ROOTS = (Path("/work/proj"),)
LEVELS = [
    ApprovalLevel.AUTO,
    ApprovalLevel.SEMI_AUTO,
    ApprovalLevel.MANUAL,
]  # the child's is at least as strict
WORDS = st.sampled_from(["git", "git push", "make", "make all", "npm test", "rm", "ls", "echo", "cat a"])
SIMPLE = st.sampled_from(
    ["git push", "git push origin main", "git status", "make", "make all", "npm test", "rm a", "rm -rf b", "ls -la", "echo hi > f",
     "cat a", "env make", "sh -c 'git push'", "A=1 make", "sudo ls"]
)  # fmt: skip
LINES = st.lists(SIMPLE, min_size=1, max_size=3).flatmap(
    lambda found: st.sampled_from([" && ", "; ", " | ", "\n"]).map(lambda sign: sign.join(found))
)


def rules_of(*actions: Action) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        rule_type=st.sampled_from([RuleType.PATTERN, RuleType.COMMAND, RuleType.PREFIX]),
        pattern=WORDS,
        action=st.sampled_from(actions),
        enabled=st.sampled_from([True, True, False]),
        priority=st.integers(-2, 2),
    )


ANY = st.lists(rules_of(*Action), max_size=5).map(tuple)
DENY = rules_of(Action.DENY) | st.builds(Rule, rule_type=st.just(RuleType.DANGER), pattern=WORDS, action=st.just(Action.DENY))  # fmt: skip
LEVEL = st.sampled_from(LEVELS)


def rank(line: str, level: ApprovalLevel, rules: tuple[Rule, ...], narrowing: tuple[Rule, ...] = ()) -> int:
    permissions = Permissions(rules=by_priority(rules), narrowing=by_priority(narrowing))
    return judge_command(line, level, ROOTS, permissions=permissions).rank


@pytest.mark.req("APR-03")
@settings(max_examples=80, deadline=None)
@given(LINES, LEVEL, ANY, DENY, st.integers(0, 5))
def test_one_more_refusal_never_loosens(
    line: str, level: ApprovalLevel, rules: tuple[Rule, ...], more: Rule, at: int
) -> None:
    assert rank(line, level, (*rules[:at], more, *rules[at:])) >= rank(line, level, rules)


@pytest.mark.req("APR-05", "SAF-01")
@settings(max_examples=80, deadline=None)
@given(LINES, LEVEL, ANY, ANY)
def test_a_foreign_projects_rules_never_widen(
    line: str, level: ApprovalLevel, rules: tuple[Rule, ...], foreign: tuple[Rule, ...]
) -> None:
    assert rank(line, level, rules, foreign) >= rank(line, level, rules)


@pytest.mark.req("APR-04")
@settings(max_examples=50, deadline=None)
@given(LINES, LEVEL, ANY)
def test_rules_never_lift_a_denial_or_a_line_that_holds_one(
    line: str, level: ApprovalLevel, rules: tuple[Rule, ...]
) -> None:
    floor = judge_command("sudo ls", level, ROOTS).rank
    assert rank(f"{line}; sudo ls", level, rules) == floor == 2


@pytest.mark.req("APR-09", "SAF-01")
@settings(max_examples=50, deadline=None)
@given(LINES, st.integers(0, 2), st.integers(0, 2), ANY, st.sampled_from(list(Mode)))
def test_a_child_has_no_more_than_its_parent(
    line: str, parent: int, stricter: int, rules: tuple[Rule, ...], mode: Mode
) -> None:
    permissions = Permissions(rules=by_priority(rules))

    def gate(level: int, mode: Mode) -> Gate:
        where = LEVELS[min(level, 2)]
        return Gate(level=where, mode=mode, root=ROOTS[0], scope=Scope(), permissions=permissions)

    args = TOOL.args.model_validate({"command": line})
    above = gate(parent, Mode.NORMAL).judge(TOOL, args).rank
    assert gate(parent + stricter, mode).judge(TOOL, args).rank >= above
