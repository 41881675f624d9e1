"""Recipe steps as written in ticket files, and the limits of a ticket (SWM-05, cli.md)."""

from typing import Any

import pytest
from opendev.core.ticket import (
    Delete,
    Insert,
    Move,
    RecipeStep,
    RenameSymbol,
    Replace,
    Rewrite,
    Run,
    SwarmPlan,
    Ticket,
    Write,
)
from pydantic import ValidationError

STEPS: dict[str, tuple[dict[str, Any], RecipeStep]] = {
    "rename_symbol": ({"symbol": "A", "to": "B"}, RenameSymbol(symbol="A", to="B")),
    "replace": (
        {"pattern": "a", "with": "b", "glob": "*.md"},
        Replace.model_validate({"pattern": "a", "replacement": "b", "glob": "*.md"}),
    ),
    "rewrite": (
        {"lang": "python", "pattern": "f($A)", "rewrite": "g($A)"},
        Rewrite(lang="python", pattern="f($A)", rewrite="g($A)"),
    ),
    "write": ({"path": "a", "content": "x"}, Write(path="a", content="x")),
    "insert": ({"path": "a", "after": "x", "content": "y"}, Insert(path="a", after="x", content="y")),
    "delete": ({"path": "a"}, Delete(path="a")),
    "move": ({"from": "a", "to": "b"}, Move.model_validate({"source": "a", "to": "b"})),
    "run": ({"command": "true"}, Run(command="true")),
}


def ticket(**fields: Any) -> Ticket:
    return Ticket.model_validate({"id": "t", "goal": "Do it.", **fields})


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_read_as_written_and_survives_json(name: str) -> None:
    fields, step = STEPS[name]
    read = ticket(recipe=[{name: fields}])
    assert read.recipe == (step,)
    assert Ticket.model_validate_json(read.model_dump_json(by_alias=True)) == read
    assert ticket(recipe=[step.model_dump(by_alias=True)]).recipe == (step,)


@pytest.mark.parametrize(
    "step",
    [
        {"no_such_step": {}},
        {"run": {"command": "true"}, "delete": {"path": "a"}},
        {},
        "run",
        {"run": "true"},
        {"run": {"command": "true", "cwd": "x"}},
        {"run": {}},
        {"insert": {"path": "a", "content": "y"}},
        {"insert": {"path": "a", "after": "x", "before": "x", "content": "y"}},
    ],
)
def test_a_step_that_is_off_is_refused(step: Any) -> None:
    with pytest.raises(ValidationError):
        ticket(recipe=[step])


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "Upper"},
        {"id": ""},
        {"id": "-a"},
        {"id": "a/b"},
        {"id": "a" * 65},
        {"goal": ""},
        {"attempts": 0},
        {"best_of": 9},
        {"max_cost_usd": 0},
        {"timeout_s": 0},
        {"unknown": 1},
    ],
)
def test_limits_of_a_ticket(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ticket(**fields)


def test_a_plan_survives_json() -> None:
    plan = SwarmPlan.model_validate(
        {
            "swarm": {"into": "swarm/x", "copy": [".env"]},
            "task": [
                {"id": "t", "goal": "g", "recipe": [{name: fields}]} for name, (fields, _) in STEPS.items()
            ],
        }
    )
    assert plan.swarm.copy_files == (".env",)
    assert SwarmPlan.model_validate_json(plan.to_json()) == plan
