"""The record beside a transcript: titles, links, costs that add up, and that a torn file costs nothing (SUB-09, MOD-07)."""

from pathlib import Path

import pytest
from opendev.core.chat import Usage
from opendev.store.sessions import CHILDREN, SessionMeta, read_meta, title_of, write_meta


def session() -> SessionMeta:
    return SessionMeta(id="a", created_at="t0", updated_at="t0", working_directory="/w", parent_id="p")


def test_a_title_is_eighty_characters_on_one_line_and_names_the_type() -> None:
    assert title_of("Do\n  this.") == "Do this."
    assert title_of("x" * 200, "Planner") == f"{'x' * 80} (@Planner)"


def test_it_is_written_and_read_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "s" / "a.json"
    assert read_meta(path) is None
    made = session().with_child("call-1", "child")
    write_meta(path, made)
    assert read_meta(path) == made
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text('{"id": "a", "torn')
    assert read_meta(path) is None


def test_links_are_bounded_and_a_call_has_one() -> None:
    made = session()
    for number in range(CHILDREN + 5):
        made = made.with_child(f"c{number}", "x")
    assert len(made.subagent_sessions) == CHILDREN
    assert "c0" not in made.subagent_sessions
    assert made.with_child("c9", "y").subagent_sessions["c9"] == "y"


@pytest.mark.req("MOD-07")
def test_the_costs_of_several_runs_add_up() -> None:
    used = Usage(input=10, output=2, cost_usd=0.5)
    made = session().ended("t1", "failed", used, 3).ended("t2", "done", used, 1)
    assert made.metadata == {
        "status": "done",
        "cost_tracking": {
            "total_cost_usd": 1.0,
            "total_input_tokens": 20,
            "total_output_tokens": 4,
            "api_call_count": 4,
        },
    }
    assert (made.created_at, made.updated_at) == ("t0", "t2")
