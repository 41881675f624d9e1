"""Copied files and set-up of worktrees: nothing outside of the worktree, nothing over tracked files, nothing left to be committed."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.swarm import provision
from opendev.swarm.provision import Provision, clear, hashes
from opendev.tools.shell.process import ProcessShell
from support.fake_swarm import ENV


def make(tmp_path: Path, patterns: tuple[str, ...], setup: str = "") -> tuple[Provision, Path, Path]:
    repo, folder = tmp_path / "repo", tmp_path / "tree"
    repo.mkdir()
    folder.mkdir()
    shell = ProcessShell(log_dir=tmp_path / "logs", marker={"OPENDEV_RUN": "t"})
    made = Provision(repo=repo, patterns=patterns, setup=setup, shell=shell, env=ENV, timeout_s=20)
    return made, repo, folder


async def test_copies_by_pattern_and_takes_away_what_is_unchanged(tmp_path: Path) -> None:
    made, repo, folder = make(tmp_path, (".env", "cfg/*.json", ".git/**"))
    for name in (".env", "cfg/a.json", "cfg/b.json", "other", ".git/config"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(f"mine {name}")
    (repo / "cfg/link.json").symlink_to("/etc/passwd")
    (folder / "cfg").mkdir()
    (folder / "cfg/b.json").write_text("tracked")
    put = await made.fill(folder)
    assert set(put) == {".env", "cfg/a.json"}
    assert (folder / "cfg/b.json").read_text() == "tracked"
    (folder / "cfg/a.json").write_text("changed by the agent")
    clear(folder, put)
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == [
        "cfg/a.json",
        "cfg/b.json",
    ]


async def test_never_writes_through_a_link_out_of_the_worktree(tmp_path: Path) -> None:
    made, repo, folder = make(tmp_path, ("cfg/**",))
    (repo / "cfg").mkdir()
    (repo / "cfg/a").write_text("x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "cfg").symlink_to(outside)
    assert await made.fill(folder) == {}
    assert list(outside.iterdir()) == []


async def test_a_copy_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, repo, folder = make(tmp_path, ("*",))
    for number in range(5):
        (repo / str(number)).write_text("x")
    monkeypatch.setattr(provision, "MAX_FILES", 3)
    with pytest.raises(OpenDevError, match="matches more than 3 files"):
        await made.fill(folder)


async def test_a_failing_set_up_takes_copied_secrets_away(tmp_path: Path) -> None:
    made, repo, folder = make(tmp_path, (".env",), "echo broken; exit 3")
    (repo / ".env").write_text("KEY=1")
    with pytest.raises(OpenDevError, match=r"exit code 3:\nbroken") as caught:
        await made.fill(folder)
    assert caught.value.info.kind is ErrorKind.SETUP
    assert list(folder.iterdir()) == []


def test_hashes_are_of_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "l").symlink_to("a")
    assert set(hashes(tmp_path, ["a", "l", "gone"])) == {"a"}
