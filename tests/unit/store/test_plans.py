"""Plan files have readable names, an index in upstream's form, and each agent keeps its own (TSK-06)."""

import json
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import pytest
from opendev.store import plans
from opendev.store.plans import PlanShelf
from support.fixed_clock import FixedClock


@pytest.mark.req("SUB-12")
def test_a_name_is_reserved_once_per_agent_and_indexed(tmp_path: Path) -> None:
    shelf = PlanShelf(tmp_path, FixedClock())
    first = shelf.reserve(agent="p1", session="s", project=Path("/work/x"))
    assert re.fullmatch(r"[a-z]+-[a-z]+-[a-z]+\.md", first.name)
    assert first.parent == tmp_path / "plans"
    assert not first.exists()
    assert shelf.reserve(agent="p1", session="s", project=Path("/work/x")) == first
    second = shelf.reserve(agent="p2", session="s", project=Path("/work/x"))
    assert second != first
    index = json.loads((tmp_path / "plans" / "plans-index.json").read_text())
    assert index["version"] == 1
    assert [entry["name"] for entry in index["entries"]] == [first.stem, second.stem]
    assert {"name", "sessionId", "projectPath", "created"} <= set(index["entries"][0])
    assert (index["entries"][0]["sessionId"], index["entries"][0]["projectPath"]) == ("s", "/work/x")


def test_the_newest_plan_of_a_session_is_found_when_it_was_written(tmp_path: Path) -> None:
    shelf = PlanShelf(tmp_path, FixedClock())
    project = Path("/work/x")
    first, second = (shelf.reserve(agent=name, session="s", project=project) for name in ("p1", "p2"))
    assert shelf.latest(session="s", project=project) is None
    first.write_text("x")
    assert shelf.latest(session="s", project=project) == first
    second.write_text("x")
    assert shelf.latest(session="s", project=project) == second
    assert shelf.latest(session="t", project=project) is None


def test_names_run_out_into_numbers_and_the_index_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(words: Sequence[str]) -> str:
        return words[0]

    monkeypatch.setattr(secrets, "choice", first)
    monkeypatch.setattr(plans, "KEPT", 3)
    shelf = PlanShelf(tmp_path, FixedClock())
    found = [shelf.reserve(agent=f"p{n}", session="s", project=tmp_path).stem for n in range(3)]
    assert found == ["amber-building-anchor", "amber-building-anchor-2", "amber-building-anchor-3"]
    for n in range(5):
        (
            tmp_path / "plans" / f"{shelf.reserve(agent=f'q{n}', session='s', project=tmp_path).stem}.md"
        ).write_text("x")
    assert len(json.loads((tmp_path / "plans" / "plans-index.json").read_text())["entries"]) == 3


def test_a_damaged_index_is_begun_anew(tmp_path: Path) -> None:
    shelf = PlanShelf(tmp_path, FixedClock())
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "plans-index.json").write_text("{not json")
    shelf.reserve(agent="p", session="s", project=tmp_path)
    assert len(json.loads((tmp_path / "plans" / "plans-index.json").read_text())["entries"]) == 1
