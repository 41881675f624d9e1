"""The demo repository: the same commit everywhere, enough tickets, its own tests green."""

import subprocess
from pathlib import Path

import pytest
from opendev.agents.specs import builtin_specs
from opendev.core.errors import OpenDevError
from opendev.swarm.demo import make_demo
from opendev.swarm.plan import worst_case
from opendev.swarm.tickets import load_plan, missing_parts
from support.repos import git


def test_the_demo_is_deterministic_complete_and_green(tmp_path: Path) -> None:
    one, two = make_demo(tmp_path / "one"), make_demo(tmp_path / "two")
    assert git(one.repo, "rev-parse", "HEAD") == git(two.repo, "rev-parse", "HEAD")
    assert git(one.repo, "status", "--porcelain") == ""
    plan = load_plan(one.tickets, agents=builtin_specs())
    steps = {step.step for ticket in plan.task for step in ticket.recipe}
    assert {"rename_symbol", "replace", "rewrite", "insert", "write", "move"} <= steps
    assert len(plan.task) >= 6
    assert all(ticket.recipe for ticket in plan.task)
    assert any(ticket.depends_on for ticket in plan.task)
    assert (missing_parts(plan), worst_case(plan)) == ((), 0.0)
    done = subprocess.run(
        ["bash", "-c", plan.swarm.verify], cwd=one.repo, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    demo = make_demo(tmp_path)
    before = demo.tickets.read_bytes()
    with pytest.raises(OpenDevError, match="exists already"):
        make_demo(tmp_path)
    assert demo.tickets.read_bytes() == before
