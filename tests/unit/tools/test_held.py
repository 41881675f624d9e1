"""Reads and writes while somebody puts links in the way: nothing outside is read or written (T02)."""

import os
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.tools import files
from opendev.tools.files import Write, read_bytes, write_all
from opendev.tools.held import held


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("root/a/b", "outside/b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "root/a/b/f.txt").write_text("mine")
    (tmp_path / "outside/b/f.txt").write_text("secret")
    return tmp_path


def swap(tree: Path, part: str) -> None:
    """What a process of the agent's can do between the check of a path and its use."""
    (tree / part).rename(tree / "gone")
    (tree / part).symlink_to(tree / "outside" if part == "root/a" else tree / "outside/b")


@pytest.mark.req("FIL-15")
@pytest.mark.parametrize("part", ["root/a", "root/a/b"])
def test_a_folder_that_became_a_link_is_not_passed(tree: Path, part: str) -> None:
    path = tree / "root/a/b/f.txt"
    assert read_bytes(path, "f") == b"mine"
    swap(tree, part)
    for before, name in ((b"secret", "f.txt"), (b"mine", "f.txt"), (None, "new.txt")):
        with pytest.raises(OpenDevError):
            write_all([Write(path.with_name(name), name, before, b"evil")])
    with pytest.raises(OpenDevError) as caught:
        read_bytes(path, "f")
    assert caught.value.info.kind is ErrorKind.NOT_FOUND
    assert sorted(item.name for item in (tree / "outside/b").iterdir()) == ["f.txt"]
    assert (tree / "outside/b/f.txt").read_text() == "secret"


def test_a_file_that_became_a_link_is_neither_read_nor_written(tree: Path) -> None:
    path = tree / "root/a/b/f.txt"
    path.unlink()
    path.symlink_to(tree / "outside/b/f.txt")
    with pytest.raises(OpenDevError, match="not a regular file"):
        read_bytes(path, "f")
    with pytest.raises(OpenDevError):
        write_all([Write(path, "f", b"secret", b"evil")])
    assert (tree / "outside/b/f.txt").read_text() == "secret"
    assert path.is_symlink()


def test_a_swap_between_staging_and_the_end_hits_the_held_folder(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tree / "root/a/b/f.txt", files.read_bytes

    def late(path: Path, name: str) -> bytes:
        found = real(path, name)
        swap(tree, "root/a")
        return found

    monkeypatch.setattr(files, "read_bytes", late)
    write_all([Write(path, "f", b"mine", b"changed")])
    assert (tree / "gone/b/f.txt").read_text() == "changed"  # the folder that was checked, wherever it is now
    assert (tree / "outside/b/f.txt").read_text() == "secret"
    assert list((tree / "outside/b").iterdir()) == [tree / "outside/b/f.txt"]


def test_another_name_of_a_file_outside_keeps_its_content(tree: Path) -> None:
    inside = tree / "root/a/hard.txt"
    inside.hardlink_to(tree / "outside/b/f.txt")
    assert write_all([Write(inside, "hard.txt", b"secret", b"evil")]) == ("hard.txt",)
    assert (tree / "outside/b/f.txt").read_text() == "secret"


def test_a_folder_that_may_only_be_passed_through(tree: Path) -> None:
    (tree / "root/a").chmod(0o111)
    try:
        with held(tree / "root/a/b") as folder:
            assert os.stat("f.txt", dir_fd=folder).st_size == 4
    finally:
        (tree / "root/a").chmod(0o755)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="absent"), held(tree / "absent/x"):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before
