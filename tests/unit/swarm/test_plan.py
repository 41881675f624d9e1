"""The plan: overlaps, waves, worst-case cost, and the dry run."""

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.scope import Scope
from opendev.swarm.globs import may_meet
from opendev.swarm.plan import make_plan, render_plan, worst_case
from support.fake_swarm import plan

FILES = ("src/a.py", "src/net/b.py", "tests/t.py")
RUN = [{"run": {"command": "true"}}]


@pytest.mark.req("SWM-16")
def test_overlaps_name_files_and_who_waits() -> None:
    tickets = plan(
        {"id": "one", "scope": ["src/**"]},
        {"id": "two", "scope": ["src/net/**"]},
        {"id": "three", "scope": ["tests/**"], "depends_on": ["two"]},
        {"id": "four", "scope": ["src/new/**"], "depends_on": ["one"]},
    )
    view = make_plan(tickets, base="b" * 40, files=FILES)
    assert [(item.first, item.second, item.files, item.serial) for item in view.overlaps] == [
        ("one", "two", ("src/net/b.py",), True)
    ]
    assert view.waits == {"two": ("one",)}
    assert view.waves == (("one",), ("two", "four"), ("three",))
    shown = render_plan(view)
    assert "overlap: one and two in src/net/b.py: two waits for one" in shown
    assert "wave 1: one" in shown
    assert shown.endswith("Nothing was run.")


@pytest.mark.req("SWM-16")
def test_recipes_run_side_by_side_under_auto() -> None:
    tasks = ({"id": "one", "recipe": RUN}, {"id": "two", "recipe": RUN})
    assert make_plan(plan(*tasks), base="b", files=FILES).waits == {}
    assert make_plan(plan(*tasks, overlap="serial"), base="b", files=FILES).waits == {"two": ("one",)}
    with pytest.raises(OpenDevError, match="one and two overlap") as caught:
        make_plan(plan(*tasks, overlap="refuse"), base="b", files=FILES)
    assert caught.value.info.kind is ErrorKind.USAGE


def test_avoid_keeps_scopes_apart() -> None:
    wide = Scope(may=("src/**",), avoid=("src/legacy/**",))
    assert not may_meet(wide, Scope(may=("src/legacy/**",)))
    assert may_meet(wide, Scope(may=("src/n*w.py",)))
    assert may_meet(Scope(), wide)
    assert not may_meet(Scope(may=("a/*.py",)), Scope(may=("a/*.md",)))
    assert may_meet(Scope(may=("a",)), Scope(may=("a/deep/x.py",)))


def test_worst_case_cost() -> None:
    assert worst_case(plan({"id": "a"})) is None
    assert worst_case(plan({"id": "a"}, max_cost_usd=3)) == 3
    assert worst_case(plan({"id": "a", "max_cost_usd": 1}, {"id": "b", "recipe": RUN}, max_cost_usd=3)) == 1
    assert (
        worst_case(plan({"id": "a", "max_cost_usd": 2}, {"id": "b", "max_cost_usd": 2}, max_cost_usd=3)) == 3
    )


@pytest.mark.req("BLG-19", "SWM-16")
def test_goals_that_should_be_watched_are_warned_of_before_anything_runs() -> None:
    four = {"scope": ["d/**"], "verify": "true", "done": "It is."}
    tickets = plan({"id": "a", "goal": "Improve the docs", **four}, {"id": "b", "goal": "Add `x`.", **four})
    view = make_plan(tickets, base="0" * 40, files=())
    assert view.warnings == ("Ticket a: `Improve` names no result that can be checked.",)
    assert "warning: Ticket a: `Improve`" in render_plan(view)
