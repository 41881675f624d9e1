"""The table of commands (`commands.toml`) against the judge: nothing wrong on the side of danger, no needless questions (groups 2, 3)."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalLevel
from opendev.policy.rules import judge_command

ROOTS = (Path("/work/proj"), Path("/scratch/s1"))
TABLE: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "commands.toml").read_text("utf-8"))[
    "case"
]


def met(expect: str, command: str) -> bool:
    """Whether the verdict on ``command`` is what the table wants."""
    semi = expect in ("reads", "asks_semi")
    verdict = judge_command(command, ApprovalLevel.SEMI_AUTO if semi else ApprovalLevel.AUTO, ROOTS)
    match expect:
        case "deny":
            return (verdict.decision, verdict.layer) == ("deny", "floor")
        case "ask":
            return verdict.decision == "ask"
        case "not_allow" | "asks_semi":
            return verdict.decision != "allow"
        case "allow" | "reads":
            return verdict.decision == "allow"
        case "not_floor":
            return verdict.decision != "deny"
        case _:
            raise AssertionError(expect)


@pytest.mark.req("APR-01")
@pytest.mark.req("APR-04")
@pytest.mark.req("SAF-04")
@pytest.mark.req("SHL-02")
@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case['kind']}-{case['expect']}")
def test_every_command_of_the_table_gets_its_verdict(case: dict[str, Any]) -> None:
    wrong = [command for command in case["commands"] if not met(case["expect"], command)]
    assert wrong == []


def test_the_table_is_wide_and_has_no_doubles() -> None:
    pairs = [(case["expect"], command) for case in TABLE for command in case["commands"]]
    assert len(pairs) > 3_000
    assert len({case["kind"] for case in TABLE}) >= 15
