"""Layers with stable interfaces (BLG-16), and shared managers that are made at the entry point and handed down (CFG-09)."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Who may construct what everybody shares. Everybody else is given it.
ENTRY = {
    "Hub": {"cli/wiring.py"},
    "Keeper": {"cli/wiring.py"},
    "Layout": None,  # a value: paths of a state root
    "AskDesk": {"actors/hub.py"},
    "EventLog": {"actors/hub.py"},
    "Broker": {"actors/hub.py"},
}
LAYERS = {  # of the row -> rooms that stand for it, upper ones first
    "experience": ("cli", "ui"),
    "orchestration": ("swarm", "actors", "agents"),
    "context": ("context",),
    "tools": ("tools",),
    "model": ("llm",),
    "protocol": ("core",),
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), parsed(path)


def everything() -> Iterator[tuple[str, ast.Module]]:
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    yield from modules(*sorted({room.split(".")[1] for room in rooms if "." in room}))


@pytest.mark.req("CFG-09")
def test_what_is_shared_is_built_at_the_entry_point_and_handed_down() -> None:
    built: dict[str, set[str]] = {name: set() for name in ENTRY}
    for path, tree in everything():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in built:
                built[node.func.id].add(path)
    for name, places in ENTRY.items():
        assert built[name], f"nobody builds {name}"
        assert places is None or built[name] == places, name


@pytest.mark.req("CFG-09")
def test_no_module_keeps_state() -> None:
    """No ``global``, and no module-level container or object under a name of a variable."""
    found: list[str] = []
    for path, tree in everything():
        found += [f"{path}: global {node.names}" for node in ast.walk(tree) if isinstance(node, ast.Global)]
        for node in tree.body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            value = getattr(node, "value", None)
            holds = isinstance(
                value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
            )
            found += [
                f"{path}: {name}"
                for name in names
                if holds and not re.fullmatch(r"_?_?[A-Z][A-Za-z0-9_]*_{0,2}", name)
            ]
    assert [entry for entry in found if "__all__" not in entry] == []


@pytest.mark.req("BLG-16")
def test_the_upper_layer_reaches_the_disk_only_through_the_ones_below() -> None:
    """What draws and what orchestrates neither opens files nor starts processes by itself."""
    strays: list[str] = []
    for path, tree in modules("ui"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                if name in {
                    "open",
                    "write_text",
                    "write_bytes",
                    "unlink",
                    "mkdir",
                    "Popen",
                    "create_subprocess_exec",
                    "create_subprocess_shell",
                }:
                    strays.append(f"{path}:{node.lineno} {name}")
    assert strays == []


@pytest.mark.req("BLG-16")
def test_lower_layers_know_no_business_goal() -> None:
    """Nothing below the batch layer reads tickets, but the nouns in core that cross the wire and the recipe they carry."""
    strays: list[str] = []
    for path, tree in modules("tools", "context", "llm", "store", "policy", "worktrees", "configs"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith("ticket"):
                names = {alias.name for alias in node.names}
                strays += [
                    f"{path}: {name}"
                    for name in names & {"Ticket", "SwarmPlan", "SwarmSettings", "RunReport"}
                ]
    assert strays == []


@pytest.mark.req("BLG-16")
def test_the_floors_are_a_contract_that_is_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (floors,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    order = [room.strip().rsplit(".", 1)[-1] for floor in floors for room in re.split(r"[|:]", floor)]
    assert {room for rooms in LAYERS.values() for room in rooms} <= set(order)
    assert [room for room in order if room in ("cli", "swarm", "actors", "agents", "tools", "llm", "core")] == [
        "cli", "swarm", "actors", "agents", "tools", "llm", "core",
    ]  # fmt: skip
    assert "lint-imports" in (ROOT / "scripts/check").read_text()
