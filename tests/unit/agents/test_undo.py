"""Undo of an agent's steps: files come back, what was created goes, the user's own edits stay (UND, C-24, T-13)."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from opendev.agents.settings import UndoSettings
from opendev.agents.undo import open_store
from opendev.core.chat import ToolCall
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.store import oplog, undo_steps
from opendev.store.layout import Layout
from opendev.store.sessions import SessionStore
from opendev.store.undo_steps import UndoSteps
from support.agents import Bench
from support.repos import ENV, git, write
from support.scripted_model import call, calls, done
from support.undoing import Undoing, Writes


@pytest.fixture
def bench(tmp_path: Path) -> Undoing:
    return Undoing(tmp_path)


@pytest.fixture
def repo(bench: Undoing) -> Undoing:
    git(bench.root, "init", "-q", "-b", "main")
    write(bench.root, {"a.txt": "one\ntwo\nthree\n", "go.mod": "module x\n", ".gitignore": "*.log\nbuild/\n"})
    git(bench.root, "add", "-A")
    git(bench.root, "commit", "-qm", "first")
    return bench


@pytest.mark.req("UND-03", "UND-07", "T-13")
async def test_a_command_is_reversed_what_it_created_goes_and_what_it_deleted_comes_back(
    repo: Undoing,
) -> None:
    def act() -> None:
        write(repo.root, {"a.txt": "changed\n", "new/deep/file.txt": "new\n", "go.mod": None})

    await repo.step(act)
    done = repo.back()
    assert repo.text("a.txt") == "one\ntwo\nthree\n"
    assert repo.text("go.mod") == "module x\n"
    assert not (repo.root / "new").exists()
    assert "sess0001.1" in done
    assert git(repo.root, "status", "--porcelain") == ""
    assert not repo.notices


@pytest.mark.req("UND-04", "UND-09")
async def test_the_users_repository_is_not_touched_and_shares_nothing(repo: Undoing) -> None:
    write(repo.root, {"a.txt": "one\nmine, staged\nthree\n", "loose.txt": "untracked\n"})
    git(repo.root, "add", "a.txt")
    before = prints(repo.root / ".git")

    def act() -> None:
        write(repo.root, {"a.txt": "agent\n", "b.txt": "b\n"})

    await repo.step(act)
    repo.back()
    assert repo.text("a.txt") == "one\nmine, staged\nthree\n"
    assert prints(repo.root / ".git") == before
    (shadow,) = [path for path in (repo.home / "snapshot").iterdir() if path.is_dir()]
    assert len(shadow.name) == 16
    assert not (shadow / "objects" / "info" / "alternates").exists()
    assert (shadow.stat().st_mode | shadow.parent.stat().st_mode) & 0o077 == 0
    assert git(shadow, "--git-dir=.", "rev-list", "--all", "--count") == "0"  # trees only: no history at all


@pytest.mark.req("UND-05", "UND-06", "SES-11", "T-07")
async def test_trees_stand_in_the_sessions_record_and_are_held_by_a_ref(repo: Undoing) -> None:
    await repo.step(Writes({"a.txt": "x\n"}), lambda: write(repo.root, {"b.txt": "b\n"}))
    meta = repo.files.meta()
    assert meta is not None
    assert [row["step"] for row in meta.snapshots] == ["sess0001.1", "sess0001.1"]
    shadow = repo.undo().store.folder
    git(shadow, "--git-dir=.", "-c", "gc.pruneExpire=now", "reflog", "expire", "--expire=now", "--all")
    (shadow / "index").unlink()
    git(shadow, "--git-dir=.", "gc", "--prune=now", "-q")
    assert all(
        git(shadow, "--git-dir=.", "cat-file", "-t", str(row["tree"])) == "tree" for row in meta.snapshots
    )
    repo.back()
    assert repo.text("a.txt") == "one\ntwo\nthree\n"
    assert repo.text("b.txt") is None


@pytest.mark.req("T-07", "UND-09")
async def test_a_session_that_is_deleted_lets_go_of_its_snapshots(repo: Undoing) -> None:
    await repo.step(lambda: write(repo.root, {"b.txt": "b\n"}))
    store = repo.undo().store
    assert store.kept() == ("sess0001.1",)
    SessionStore(Layout(repo.home), repo.root).delete("sess0001")
    await Undoing(repo.root.parent, "sess0002").step(lambda: write(repo.root, {"c.txt": "c\n"}))
    assert store.kept() == ("sess0002.1",)


@pytest.mark.req("UND-01", "UND-02")
async def test_each_operation_of_a_file_tool_is_logged_with_the_content_before(repo: Undoing) -> None:
    cover = repo.cover()
    await repo.answer(cover, Writes({"a.txt": "new\n", "b.bin": b"\xff\0"}))
    await repo.answer(cover, Writes({"b.bin": b"x"}))
    await cover.close()
    rows = [
        json.loads(line) for line in (repo.home / "runs/sess0001/operations.jsonl").read_text().splitlines()
    ]
    assert [(row["type"], row["path"], row["bytes_before"]) for row in rows] == [
        ("modify", "a.txt", 14),
        ("create", "b.bin", None),
        ("modify", "b.bin", 2),
    ]
    assert rows[0]["before"] == "one\ntwo\nthree\n"
    assert rows[2]["before_base64"] == "/wA="
    assert len({row["id"] for row in rows}) == 3
    assert all(row["at"] for row in rows)
    assert [operation.path for operation in cover.log.latest] == ["a.txt", "b.bin", "b.bin"]


@pytest.mark.req("UND-02", "ARC-05")
async def test_the_log_is_bounded_and_a_full_disk_does_not_stop_the_work(
    repo: Undoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oplog, "FILE_BYTES", 300)
    cover = repo.cover()
    await repo.answer(cover, Writes({f"f{number}": "x" for number in range(60)}))
    assert len(cover.log.latest) == 50
    run = repo.home / "runs/sess0001"
    assert (run / "operations.jsonl").stat().st_size < 700
    (run / "operations.jsonl").unlink()
    (run / "operations.jsonl").mkdir()
    await repo.answer(cover, Writes({"last": "x"}))
    await cover.close()
    assert repo.text("last") == "x"
    assert any("operation log" in notice for notice in repo.notices)
    repo.back()
    assert repo.text("last") is None


@pytest.mark.req("C-24", "UND-07")
async def test_the_users_later_edits_stay_or_the_undo_is_refused_with_the_files(repo: Undoing) -> None:
    write(repo.root, {"far.txt": "1\n2\n3\n4\n5\n6\n7\n8\n"})

    def act() -> None:
        write(repo.root, {"far.txt": "1\nagent\n3\n4\n5\n6\n7\n8\n", "a.txt": "agent\n"})

    await repo.step(act)
    write(repo.root, {"far.txt": "1\nagent\n3\n4\n5\n6\n7\nmine\n", "user.txt": "mine\n"})
    before = repo.undo().prepare()
    assert before.files == ("a.txt", "far.txt")
    assert "-agent" in repo.undo().diff(before)
    assert "kept in far.txt" in repo.back()
    assert repo.text("far.txt") == "1\n2\n3\n4\n5\n6\n7\nmine\n"
    assert repo.text("user.txt") == "mine\n"
    repo.back("redo")
    assert repo.text("far.txt") == "1\nagent\n3\n4\n5\n6\n7\nmine\n"
    write(repo.root, {"far.txt": "1\nMINE\n3\n4\n5\n6\n7\n8\n"})
    tree = prints(repo.root)
    with pytest.raises(OpenDevError, match=r"Nothing was undone.*far\.txt") as found:
        repo.back()
    assert found.value.info.kind is ErrorKind.CONFLICT
    assert "a.txt" not in found.value.info.message
    assert prints(repo.root) == tree  # all or nothing: a.txt would have gone back cleanly


async def test_a_turn_that_changed_nothing_is_no_step(repo: Undoing) -> None:
    """D13."""
    await repo.step(Writes({"a.txt": "agent\n"}))
    await repo.step(lambda: None, lambda: (repo.root / "a.txt").touch())
    write(repo.root, {"b.txt": "the user's\n"})
    assert [step.id for step in repo.undo().steps()] == ["sess0001.1"]
    repo.back()
    assert repo.text("b.txt") == "the user's\n"
    assert repo.text("a.txt") == "one\ntwo\nthree\n"
    with pytest.raises(OpenDevError, match="no step that could be undone"):
        repo.back()


@pytest.mark.slow
async def test_steps_go_back_and_come_again_one_by_one_or_together(repo: Undoing) -> None:
    for number in range(1, 5):
        await repo.step(Writes({"n.txt": f"{number}\n"}), lambda: None)
    repo.back()
    assert repo.text("n.txt") == "3\n"
    repo.back(to="sess0001.2")
    assert repo.text("n.txt") == "1\n"
    repo.back("redo")
    assert repo.text("n.txt") == "2\n"
    repo.back(to="4")
    assert repo.text("n.txt") == "4\n"
    repo.back(to="1")
    assert repo.text("n.txt") is None
    assert [step.undone for step in repo.undo().steps()] == [True] * 4
    with pytest.raises(OpenDevError, match=r"no step sess0001\.9"):
        repo.back(to="sess0001.9")


async def test_an_edit_of_the_user_while_the_agent_works_is_not_taken_for_the_agents(repo: Undoing) -> None:
    cover = repo.cover()
    await repo.answer(cover, lambda: write(repo.root, {"a.txt": "one\ntwo\nagent\n"}))
    write(repo.root, {"mine.txt": "mine\n"})
    await repo.answer(cover, lambda: write(repo.root, {"c.txt": "c\n"}))
    await cover.close()
    repo.back()
    assert repo.text("mine.txt") == "mine\n"
    assert repo.text("a.txt") == "one\ntwo\nthree\n"
    assert repo.text("c.txt") is None


async def test_a_nested_repository_is_named_and_what_tools_wrote_in_it_comes_back(repo: Undoing) -> None:
    """D11."""
    git(repo.root, "init", "-q", "repo1")
    write(repo.root, {"repo1/x": "old\n"})
    await repo.step(
        Writes({"repo1/x": "agent\n", "repo1/new": "n\n"}),
        lambda: write(repo.root, {"go.mod": None, "repo1/shell": "s\n"}),
    )
    done = repo.back()
    assert repo.text("go.mod") == "module x\n"
    assert repo.text("repo1/x") == "old\n"
    assert repo.text("repo1/new") is None
    assert "repo1/ (nested repository)" in done
    assert repo.text("repo1/shell") == "s\n"


async def test_a_nested_repository_that_appears_spoils_no_snapshot(repo: Undoing) -> None:
    """D15: v1, then v2 and an empty repository, then v3; undo gives v2, never v1."""
    await repo.step(Writes({"f.txt": "v1\n"}))

    def second() -> None:
        write(repo.root, {"f.txt": "v2\n"})
        git(repo.root, "init", "-q", "nested")

    await repo.step(second)
    await repo.step(lambda: write(repo.root, {"f.txt": "v3\n"}))
    repo.back()
    assert repo.text("f.txt") == "v2\n"
    repo.back()
    assert repo.text("f.txt") == "v1\n"
    assert (repo.root / "nested/.git").is_dir()


@pytest.mark.req("UND-08")
async def test_ignored_files_are_left_alone_even_when_the_agent_changes_the_rules(repo: Undoing) -> None:
    write(repo.root, {"build/out": "data\n", "x.log": "log\n", "private": "p\n"})
    (repo.root / ".git/info/exclude").write_text("private\n")

    def act() -> None:
        write(repo.root, {".gitignore": "", "x.log": "changed\n", "made.log": "m\n"})
        (repo.root / ".git/info/exclude").write_text("")

    await repo.step(act)
    repo.back()
    assert repo.text(".gitignore") == "*.log\nbuild/\n"
    assert (repo.text("build/out"), repo.text("x.log"), repo.text("private")) == (
        "data\n",
        "changed\n",
        "p\n",
    )


async def test_ignored_files_are_covered_when_the_setting_says_so(tmp_path: Path) -> None:
    bench = Undoing(tmp_path, ignored="cover")
    write(bench.root, {".gitignore": "*.log\n", "x.log": "log\n"})
    await bench.step(lambda: write(bench.root, {"x.log": "changed\n", "y.log": "new\n"}))
    bench.back()
    assert bench.text("x.log") == "log\n"
    assert bench.text("y.log") is None


async def test_an_ignored_file_that_a_tool_wrote_comes_back_from_the_log(repo: Undoing) -> None:
    write(repo.root, {"x.log": "log\n"})
    await repo.step(Writes({"x.log": "tool\n", "build/new": "n\n"}))
    repo.back()
    assert repo.text("x.log") == "log\n"
    assert repo.text("build/new") is None


@pytest.mark.slow
@pytest.mark.parametrize("project", ["git", pytest.param("none", marks=pytest.mark.soak)])
async def test_links_modes_empty_folders_and_odd_names(bench: Undoing, project: str) -> None:
    root = bench.root
    if project == "git":
        git(root, "init", "-q")
        (root / ".gitattributes").write_text("* text=auto eol=crlf ident\n")
    odd = [
        "new\nline",
        " spaced ",
        "-dash",
        "$(touch m)",
        "back\\slash",
        "q'\"",
        "ü",
        "u\u0308",
        "git~1",
        "Case",
        "case",
    ]
    for name in odd:
        (root / name).write_bytes(b"mixed\r\nends\n$Id$")
    (root / os.fsdecode(b"bytes\xff")).write_bytes(b"\0\1")
    (root / "secret").write_text("s")
    (root / "secret").chmod(0o600)
    (root / "run.sh").write_text("#!\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("run.sh")
    (root / "broken").symlink_to("nowhere")
    (root / "empty/inner").mkdir(parents=True)
    (root / "folder").mkdir()
    (root / "folder/x").write_text("x")
    (root / "swap").write_text("a file")
    before = prints(root)

    def act() -> None:
        for path in sorted(root.iterdir()):
            if path.name not in (".git", "link", "folder", "swap"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (root / "link").unlink()
        (root / "link").write_text("no link any more")
        shutil.rmtree(root / "folder")
        (root / "folder").symlink_to("/tmp")
        (root / "swap").unlink()
        (root / "swap/deep").mkdir(parents=True)
        (root / "swap/deep/f").write_text("f")
        (root / "made").mkdir()

    await bench.step(act)
    after = prints(root)
    bench.back()
    assert prints(root) == before
    assert not bench.notices
    assert not (root / "m").exists()
    bench.back("redo")
    assert prints(root) == after
    bench.back()
    assert prints(root) == before


async def test_a_change_of_the_executable_bit_goes_back_and_other_rights_stay(bench: Undoing) -> None:
    file = bench.root / "f"
    file.write_text("f")
    file.chmod(0o640)
    await bench.step(lambda: file.chmod(0o750))
    file.write_text("mine")
    bench.back()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("mine", 0o640)


async def test_huge_and_unreadable_things_are_named_and_never_removed(tmp_path: Path) -> None:
    bench = Undoing(tmp_path, max_file_mb=1)
    (bench.root / "big").write_bytes(b"x" * 1_500_000)
    (bench.root / "small").write_text("s")
    os.mkfifo(bench.root / "pipe")

    def act() -> None:
        (bench.root / "small").write_text("changed")
        (bench.root / "big").write_bytes(b"now small")

    await bench.step(act)
    bench.back()
    assert bench.text("small") == "s"
    assert (bench.root / "big").read_bytes() == b"now small"
    await bench.step(lambda: (bench.root / "small").write_bytes(b"y" * 1_200_000))
    with pytest.raises(OpenDevError, match="small"):
        bench.back()


async def test_more_than_the_bounds_allow_is_said_and_stops_nothing(tmp_path: Path) -> None:
    bench = Undoing(tmp_path, max_files=3)
    write(bench.root, {f"f{number}": "x" for number in range(5)})
    await bench.step(lambda: write(bench.root, {"f1": "changed"}), Writes({"f2": "tool\n"}))
    assert any("5 files" in notice and "undo" in notice.lower() for notice in bench.notices)
    done = bench.back()  # what tools wrote is in the log all the same
    assert bench.text("f2") == "x"
    assert bench.text("f1") == "changed"
    assert "Not covered" in done


async def test_the_home_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENV, "HOME", str(tmp_path / "project"))
    bench = Undoing(tmp_path)
    await bench.step(lambda: write(bench.root, {"f": "x"}))
    assert any("home folder" in notice for notice in bench.notices)
    assert not (bench.home / "snapshot").exists()
    with pytest.raises(OpenDevError, match="home folder"):
        open_store(Path("/"), bench.home, ENV, UndoSettings())


async def test_a_project_in_a_part_of_a_repository_follows_the_rules_above_it(tmp_path: Path) -> None:
    top = tmp_path / "mono"
    bench = Undoing(top)
    git(top, "init", "-q")
    write(
        top,
        {
            ".gitignore": "*.log\n/project/out/\n",
            "other/f": "theirs\n",
            "project/f": "f\n",
            "project/out/o": "o\n",
        },
    )

    def act() -> None:
        write(top, {"project/f": "agent\n", "project/x.log": "l\n", "project/out/o": "agent\n"})

    await bench.step(act, Writes({"g": "g\n"}))
    write(top, {"other/f": "edited\n"})
    assert repo_files(bench) == {"project/f", "project/g"}
    bench.back()
    assert (bench.text("f"), bench.text("g"), bench.text("x.log"), bench.text("out/o")) == (
        "f\n",
        None,
        "l\n",
        "agent\n",
    )
    assert (top / "other/f").read_text() == "edited\n"


async def test_a_state_root_inside_the_project_is_not_covered(tmp_path: Path) -> None:
    bench = Undoing(tmp_path)
    bench.home = bench.root / "state"
    await bench.step(lambda: write(bench.root, {"f": "x"}))
    assert repo_files(bench) == {"f"}


async def test_the_target_of_a_link_comes_back_and_the_link_stays(repo: Undoing) -> None:
    (repo.root / "link.md").symlink_to("a.txt")
    await repo.step(Writes({"a.txt": "there\n"}), lambda: (repo.root / "link.md").write_text("through\n"))
    repo.back()
    assert (repo.root / "link.md").is_symlink()
    assert repo.text("a.txt") == "one\ntwo\nthree\n"


async def test_a_step_whose_process_was_killed_is_refused_with_its_files(repo: Undoing) -> None:
    cover = repo.cover()
    write(repo.root, {"earlier.txt": "mine\n"})
    context = cover.around([ToolCall(id="1", name="run_command", arguments={})])
    await context.__aenter__()
    write(repo.root, {"a.txt": "half\n"})  # and here it is killed
    with pytest.raises(OpenDevError, match=r"killed.*a\.txt"):
        repo.back()
    assert repo.text("a.txt") == "half\n"
    repo.back(to="sess0001.1")
    assert repo.text("a.txt") == "one\ntwo\nthree\n"
    assert repo.text("earlier.txt") == "mine\n"
    await cover.close()


@pytest.mark.slow
async def test_steps_are_bounded_and_the_oldest_lets_go(
    repo: Undoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_steps, "STEPS", 3)
    for number in range(5):
        await repo.step(Writes({"n.txt": f"{number}\n"}))
    assert [step.number for step in repo.undo().steps()] == [3, 4, 5]
    assert repo.undo().store.kept() == ("sess0001.3", "sess0001.4", "sess0001.5")
    for _ in range(3):
        repo.back()
    assert repo.text("n.txt") == "1\n"


def repo_files(bench: Undoing) -> set[str]:
    meta = bench.files.meta()
    assert meta is not None
    shadow = bench.undo().store.folder
    return set(
        git(shadow, "--git-dir=.", "ls-tree", "-r", "--name-only", str(meta.snapshots[-1]["tree"])).split()
    )


def prints(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below with its mode and content; nothing of .git when it is not asked for itself."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in folder.rglob("*"):
        if folder.name != ".git" and ".git" in path.relative_to(folder).parts:
            continue
        mode = path.lstat().st_mode
        content = (
            os.fsencode(path.readlink())
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else b""
        )
        found[str(path.relative_to(folder))] = (mode, content)
    return found


async def test_writes_too_large_to_hold_are_said(repo: Undoing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oplog, "ANSWER_BYTES", 10)
    await repo.step(Writes({"a.txt": "agent\n"}))
    assert any("too large" in notice for notice in repo.notices)
    assert repo.text("a.txt") == "agent\n"


async def test_a_snapshot_that_takes_too_long_is_said_and_the_work_goes_on(repo: Undoing) -> None:
    """D17."""
    repo.settings = repo.settings.model_copy(update={"wait_s": 0.0001})
    await repo.step(lambda: write(repo.root, {"a.txt": "agent\n"}), lambda: None, Writes({"b.txt": "b\n"}))
    assert any("undo does not cover" in notice for notice in repo.notices)
    repo.settings = repo.settings.model_copy(update={"wait_s": 60.0})
    assert "what commands changed" in repo.back()
    assert repo.text("b.txt") is None


@pytest.mark.parametrize("enabled", [True, False])
async def test_only_the_foreground_agent_is_covered_and_only_when_it_is_on(
    tmp_path: Path, enabled: bool
) -> None:
    bench = Bench(tmp_path, calls(call("write_file", file_path="f", content="x")), done())
    bench.settings = bench.settings.model_copy(update={"undo": UndoSettings(enabled=enabled)})
    await bench.run(session="sess0001", run_id="sess0001")
    assert (bench.root / "f").exists()
    assert bool(UndoSteps(bench.home / "runs/sess0001").all()) is enabled


async def test_a_command_that_only_reads_takes_no_snapshot(tmp_path: Path) -> None:
    looks = calls(call("run_command", command="ls -l | head -3"))
    bench = Bench(tmp_path, looks, calls(call("run_command", "2", command="touch x; ls")), done())
    bench.settings = bench.settings.model_copy(update={"undo": UndoSettings(enabled=True, wait_s=60)})
    seen: list[bool] = []
    shell = bench.shell.run

    async def run(*args: Any, **named: Any) -> Any:
        seen.append(any(step.spans[-1].open for step in UndoSteps(bench.home / "runs/sess0001").all()))
        return await shell(*args, **named)

    bench.shell.run = run
    await bench.run(session="sess0001", run_id="sess0001")
    assert seen == [False, True]
    assert UndoSteps(bench.home / "runs/sess0001").all() == ()  # the shell is a fake, and touched nothing


async def test_without_git_the_work_goes_on_and_a_notice_says_what_undo_does_not_cover(
    bench: Undoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise OpenDevError(ErrorKind.INFRA, "git could not be started.")

    monkeypatch.setattr("opendev.agents.cover.open_store", missing)
    await bench.step(Writes({"a.txt": "x"}))
    assert bench.text("a.txt") == "x"
    assert "git could not be started." in bench.notices[0]


@pytest.mark.parametrize(
    ("agent", "user", "why"),
    [
        ({"new.txt": "agent\n"}, {"new.txt": "agent\nmine\n"}, "created by the step and changed since"),
        ({"a.txt": "agent\n"}, {"a.txt": None}, "deleted since"),
        ({"a.txt": None}, {"a.txt": "mine\n"}, "created again since"),
        ({"a.txt": "agent\n"}, {"a.txt": "mine\n"}, "changed since in the same place"),
        ({"a.txt": b"\0agent"}, {"a.txt": b"\0mine"}, "changed since in the same place"),
    ],
)
async def test_what_stands_against_an_undo_is_named_with_the_reason(
    repo: Undoing, agent: dict[str, str | bytes | None], user: dict[str, str | bytes | None], why: str
) -> None:
    await repo.step(lambda: write(repo.root, {**agent, "other.txt": "agent\n"}))
    write(repo.root, user)
    before = prints(repo.root)
    with pytest.raises(OpenDevError, match=why) as found:
        repo.back()
    assert next(iter(user)) in found.value.info.message
    assert prints(repo.root) == before


async def test_what_the_user_reversed_by_hand_stands_against_nothing(repo: Undoing) -> None:
    await repo.step(
        lambda: write(repo.root, {"a.txt": "agent\n", "new.txt": "agent\n", "go.mod": "module y\n"})
    )
    write(repo.root, {"a.txt": "one\ntwo\nthree\n", "new.txt": None})
    repo.back()
    assert (repo.text("a.txt"), repo.text("new.txt"), repo.text("go.mod")) == (
        "one\ntwo\nthree\n",
        None,
        "module x\n",
    )
