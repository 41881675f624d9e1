"""Ticket files: whatever is in them, loading gives a plan or one usage error; globs and plans keep their promises."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.scope import Scope
from opendev.core.ticket import Overlap, SwarmPlan, SwarmSettings, Ticket
from opendev.swarm.globs import may_meet, shared_files
from opendev.swarm.plan import make_plan, topological
from opendev.swarm.tickets import cycles, load_plan
from support.fake_swarm import SPECS

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([*Ticket.model_fields, "copy", "oops"])
TABLE = st.dictionaries(KEYS, JSON | st.just("one"), max_size=6)
FILE = st.fixed_dictionaries({"swarm": TABLE | JSON, "task": st.lists(TABLE | JSON, max_size=3) | JSON})


def load(text: str | bytes, suffix: str) -> SwarmPlan | OpenDevError:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t{suffix}")
        path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        try:
            return load_plan(path, agents=SPECS)
        except OpenDevError as error:
            return error


@settings(max_examples=150, deadline=None)
@given(FILE, st.sampled_from([".json", ".yaml"]))
def test_odd_values_give_one_usage_error(raw: dict[str, Any], suffix: str) -> None:
    found = load(json.dumps(raw), suffix)
    if isinstance(found, OpenDevError):
        assert found.info.kind is ErrorKind.USAGE
        assert f"t{suffix}:" in found.info.message


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60), st.sampled_from([".toml", ".yaml", ".json", ".jsonl"]))
def test_garbage_gives_one_usage_error(text: str | bytes, suffix: str) -> None:
    found = load(text, suffix)
    assert isinstance(found, OpenDevError)
    assert found.info.kind is ErrorKind.USAGE


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f"])


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3), min_size=1))
def test_a_cycle_is_found_exactly_when_there_is_no_order(parents: dict[str, list[str]]) -> None:
    rings = cycles(parents)
    known = {name: tuple(p for p in wanted if p in parents) for name, wanted in parents.items()}
    for ring in rings:
        following = [*ring[1:], ring[0]]
        assert all(after in known[name] for name, after in zip(ring, following, strict=True))
    if not rings:
        order = topological([Ticket(id=name, goal="g", depends_on=wanted) for name, wanted in known.items()])
        place = {name: index for index, name in enumerate(order)}
        assert all(place[p] < place[name] for name, wanted in known.items() for p in wanted)


SEGMENT = st.sampled_from(["src", "s*", "*.py", "a?.py", "ab.py", "net", "**", "*"])
PATTERN = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
PATH = st.lists(st.sampled_from(["src", "sub", "net", "ab.py", "ax.py", "x"]), min_size=1, max_size=4).map(
    "/".join
)
SCOPE = st.builds(
    Scope, may=st.lists(PATTERN, max_size=2).map(tuple), avoid=st.lists(PATTERN, max_size=1).map(tuple)
)


@settings(max_examples=400, deadline=None)
@given(SCOPE, SCOPE, PATH)
def test_no_shared_path_without_a_predicted_meeting(one: Scope, other: Scope, path: str) -> None:
    if one.allows(path) and other.allows(path):
        assert shared_files(one, other, (path,)) == (path,)
        assert may_meet(one, other)
    assert may_meet(one, other) == may_meet(other, one)


TICKETS = st.lists(
    st.tuples(st.lists(PATTERN, max_size=2), st.booleans(), st.sets(st.integers(0, 5), max_size=2)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(TICKETS, st.sampled_from([Overlap.AUTO, Overlap.SERIAL, Overlap.PARALLEL]))
def test_waves_hold_every_ticket_once_and_nothing_waits_in_a_ring(
    items: list[tuple[list[str], bool, set[int]]], overlap: Overlap
) -> None:
    tickets = tuple(
        Ticket(
            id=f"t{n}",
            goal="g",
            scope=tuple(scope),
            depends_on=tuple(f"t{p}" for p in sorted(parents) if p < n),
            recipe=({"run": {"command": "x"}},) if recipe else (),  # pyright: ignore[reportArgumentType]
        )
        for n, (scope, recipe, parents) in enumerate(items)
    )
    view = make_plan(
        SwarmPlan(swarm=SwarmSettings(into="x", overlap=overlap), task=tickets), base="0" * 40, files=()
    )
    flat = [name for wave in view.waves for name in wave]
    assert sorted(flat) == sorted(ticket.id for ticket in tickets)
    wave_of = {name: number for number, wave in enumerate(view.waves) for name in wave}
    for ticket in tickets:
        before = (*ticket.depends_on, *view.waits.get(ticket.id, ()))
        assert all(wave_of[other] < wave_of[ticket.id] for other in before)
    by_id = {ticket.id: ticket for ticket in tickets}
    for item in view.overlaps:
        both = bool(by_id[item.first].recipe and by_id[item.second].recipe)
        assert item.serial == (overlap is Overlap.SERIAL or (overlap is Overlap.AUTO and not both))
