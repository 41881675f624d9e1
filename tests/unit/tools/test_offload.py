"""Offload: what stays, what goes to a file, and that the folder stays bounded (TOR-05, TOR-06, C-16)."""

import stat
from pathlib import Path

import pytest
from opendev.core.tool import Limits
from opendev.tools import offload
from opendev.tools.offload import Offloader
from opendev.tools.read_file import TOOL as READ
from opendev.tools.read_file import Args as ReadArgs
from opendev.tools.run_command import TOOL as RUN
from opendev.tools.run_command import Args as RunArgs

LONG = "line\n" * 2_000


def make(path: Path, *tools: str) -> Offloader:
    return Offloader(path / "scratch", Limits(), frozenset(tools))


@pytest.mark.req("TOR-05")
def test_the_threshold(tmp_path: Path) -> None:
    found = make(tmp_path)
    assert found.shorten(RUN, RunArgs(command="x"), "c", "a" * 8_000) == "a" * 8_000
    assert not (tmp_path / "scratch").exists()
    shown = found.shorten(RUN, RunArgs(command="x"), "c", "a" * 8_001)
    path = tmp_path / "scratch/results/run_command-c.txt"
    assert shown.startswith("a" * 500 + f"\n[Output offloaded: 1 lines, 8,001 chars → {path}]\n")
    assert path.read_text() == "a" * 8_001
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.req("TOR-05")
def test_an_explicit_window_may_be_larger(tmp_path: Path) -> None:
    found = make(tmp_path)
    assert found.shorten(READ, ReadArgs(file_path="x"), "c", LONG) != LONG
    assert found.shorten(READ, ReadArgs(file_path="x", offset=1), "c", LONG) == LONG
    assert found.shorten(READ, ReadArgs(file_path="x", max_lines=2_000), "c", "a" * 30_000) == "a" * 30_000
    assert found.shorten(READ, ReadArgs(file_path="x", offset=1), "c", "a" * 30_001) != "a" * 30_001


@pytest.mark.req("TOR-06")
@pytest.mark.parametrize(
    "tools", [("read_file",), ("search",), ("read_file", "search", "spawn_subagent"), ()]
)
def test_the_advice_names_only_tools_the_agent_has(tmp_path: Path, tools: tuple[str, ...]) -> None:
    advice = make(tmp_path, *tools).write("run_command", "c", LONG).rsplit("\n", 1)[-1]
    named = {"read_file": "read_file", "search": "by search", "spawn_subagent": "Code-Explorer"}
    assert {tool for tool, words in named.items() if words in advice} == set(tools)
    assert advice


def test_names_are_safe_and_never_reused(tmp_path: Path) -> None:
    found = make(tmp_path)
    outside = tmp_path / "victim"
    outside.write_text("keep")
    folder = tmp_path / "scratch/results"
    folder.mkdir(parents=True)
    (folder / "t-c.txt").symlink_to(outside)
    for text in ("one", "two"):
        found.write("t", "c", text)
    found.write("../../t", "../c\0", "three")
    assert outside.read_text() == "keep"
    contents = {p.name: p.read_text() for p in folder.iterdir() if not p.is_symlink()}
    assert contents == {"t-c-1.txt": "one", "t-c-2.txt": "two", "______t-___c_.txt": "three"}


def test_files_and_folder_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offload, "FILES", 5)
    monkeypatch.setattr(offload, "FILE_BYTES", 1_000)
    found = make(tmp_path)
    for number in range(9):
        found.write("t", f"c{number}", "a" * 5_000 + "z")
    files = sorted((tmp_path / "scratch/results").iterdir())
    assert len(files) == 5
    assert "t-c8.txt" in {f.name for f in files}
    assert "4,001 bytes left out" in files[-1].read_text()
    assert files[-1].read_text().endswith("z")
    assert files[-1].stat().st_size < 1_100
