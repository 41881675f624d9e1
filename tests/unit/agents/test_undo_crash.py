"""An undo that is killed, or that the disk refuses: finished at the next start, or as if it had never begun."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import OpenDevError
from opendev.worktrees import undo_apply
from opendev.worktrees.undo_files import WorkFiles
from support.repos import write
from support.undoing import Undoing

OLD = {"a": "a\n", "b/c": "c\n", "swap": "file\n", "gone/x": "x\n"}
STORED = ("stage", "put", "remove", "drop_folder")


class Killed(BaseException):
    """What a kill -9 looks like from inside: nothing more is done."""


async def changed(tmp_path: Path) -> Undoing:
    bench = Undoing(tmp_path)
    write(bench.root, OLD)

    def act() -> None:
        write(bench.root, {"a": "agent\n", "b/c": None, "new/n": "n\n", "swap": None, "gone/x": None})
        (bench.root / "gone").rmdir()
        write(bench.root, {"swap/inner": "i\n", "gone": "a file now\n"})

    await bench.step(act)
    return bench


def contents(bench: Undoing) -> dict[str, str]:
    return {str(p.relative_to(bench.root)): p.read_text() for p in bench.root.rglob("*") if p.is_file()}


def failing(monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException) -> list[int]:
    """The ``at``-th write of undo fails; the count of writes so far."""
    count = [0]

    def wrap(real: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] == at:
                raise error
            return real(*args, **named)

        return call

    for name in STORED:
        monkeypatch.setattr(WorkFiles, name, wrap(getattr(WorkFiles, name)))
    return count


@pytest.mark.soak
async def test_a_kill_at_every_write_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await changed(tmp_path)
    agent = contents(bench)
    for at in range(1, 100):
        with monkeypatch.context() as patch:
            failing(patch, at, Killed())
            try:
                bench.back()
            except Killed:
                killed = True
            else:
                killed = False
        if not killed:
            break
        write(bench.root, {"user": f"{at}\n"})
        with pytest.raises(OpenDevError, match="no step that could be undone"):
            bench.undo().prepare()  # finishes the cut one first: then there is none left
        assert contents(bench) == {**OLD, "user": f"{at}\n"}
        bench.back("redo")
        assert contents(bench) == {**agent, "user": f"{at}\n"}
        (bench.root / "user").unlink()
    else:
        pytest.fail("it never came to its end")
    assert at > 8
    assert contents(bench) == OLD


async def test_a_cut_undo_is_finished_around_what_the_user_did_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await changed(tmp_path)
    with monkeypatch.context() as patch:
        failing(patch, 8, Killed())
        with pytest.raises(Killed):
            bench.back()
    write(bench.root, {"a": "mine\n"})
    await bench.step(lambda: None)  # the next run finishes it as well, and says so
    assert bench.text("a") == "mine\n"
    assert any("left alone: a" in notice for notice in bench.notices)
    assert [step.undone for step in bench.undo().steps()] == [True]


@pytest.mark.soak
async def test_a_disk_that_refuses_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await changed(tmp_path)
    agent = contents(bench)
    refused = 0
    for at in range(1, 100):
        with monkeypatch.context() as patch:
            count = failing(patch, at, OSError(28, "No space left on device"))
            try:
                bench.back()
            except OpenDevError as found:
                said = found.info.message
            else:
                said = ""
            if said:
                assert "was taken back" in said
                assert contents(bench) == agent
                assert not list((bench.undo().store.folder / "journal").glob("*.json"))
                refused += 1
                continue
            if count[0] < at:
                break
        bench.back("redo")  # a folder could not be removed: no reason to stop
    assert refused > 6
    assert contents(bench) == OLD


async def test_a_file_that_changes_at_the_last_moment_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await changed(tmp_path)
    undo = bench.undo()
    prepared = undo.prepare()
    write(bench.root, {"a": "mine\n"})
    before = contents(bench)
    with pytest.raises(OpenDevError, match="a changed at this very moment"):
        undo.carry_out(prepared)
    assert contents(bench) == before
    assert not list((undo.store.folder / "journal").glob("*"))
    assert undo_apply.BYTES > 1
    monkeypatch.setattr(undo_apply, "BYTES", 1)
    write(bench.root, {"a": "agent\n"})
    bench.back()
    assert contents(bench) == OLD
