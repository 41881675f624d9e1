"""The merge train: every composed state is verified, the branch moves by compare-and-swap, failure leaves no trace."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ticket import VerifyOutcome
from opendev.worktrees.keeper import Keeper
from opendev.worktrees.train import Landing, Train, Verify
from support.repos import commit_files, exists, fingerprint, git, locks, tree_files, worktrees, write

INTO = "swarm/x"


def outcome(
    result: Literal["pass", "fail", "timeout", "infra", "not_run"], command: str = "check"
) -> VerifyOutcome:
    return VerifyOutcome(command=command, exit_code=0 if result == "pass" else 1, outcome=result)


async def passing(_path: Path, _commit: str) -> VerifyOutcome:
    return outcome("pass")


@pytest.fixture
async def train(keeper: Keeper) -> Train:
    train = Train(keeper, INTO, SystemClock())
    assert await train.prepare(keeper.base) == keeper.base
    return train


async def work(
    keeper: Keeper, task: str, files: dict[str, str | bytes | None], base: str = ""
) -> tuple[str, str]:
    """A task's commit and its branch, the folder given back."""
    lease = await keeper.lease(write=True, task=task, run_id="r", base=base)
    write(Path(lease.path), files)
    commit = await keeper.commit(lease, f"work of {task}")
    assert (await keeper.release(lease)).startswith("removed")
    return commit, lease.branch


async def land(
    train: Train, keeper: Keeper, commit: str, verify: Verify = passing, **options: int
) -> Landing:
    return await train.land(
        task="t", commit=commit, base=keeper.base, message="Say what", verify=verify, **options
    )


def state(repo: Path) -> tuple[object, ...]:
    """All that a landing that fails must leave as it was."""
    return (git(repo, "for-each-ref"), worktrees(repo), locks(repo), fingerprint(repo))


@pytest.mark.req("SWM-14")
async def test_a_task_lands_as_one_verified_commit(train: Train, keeper: Keeper, repo: Path) -> None:
    write(repo, {"mine.txt": "untracked"})
    before = fingerprint(repo)
    lease = await keeper.lease(write=True, task="t", run_id="r")
    write(Path(lease.path), {"a.py": "A = 2\n"})
    await keeper.commit(lease, "step 1")
    write(Path(lease.path), {"d.py": "D = 1\n", "b.py": None})
    commit = await keeper.commit(lease, "step 2")
    seen: list[tuple[str, str, str]] = []

    async def verify(path: Path, composed: str) -> VerifyOutcome:
        seen.append((git(path, "rev-parse", "HEAD"), composed, git(path, "status", "--porcelain")))
        write(path, {"junk/out.txt": "x"})
        return outcome("pass")

    landing = await land(train, keeper, commit, verify)
    head = git(repo, "rev-parse", f"refs/heads/{INTO}")
    assert landing == Landing(
        outcome="landed", head=head, merged_as=head, files=("a.py", "b.py", "d.py"), verify=outcome("pass")
    )
    assert seen == [(head, head, "")]
    assert git(repo, "rev-list", f"{keeper.base}..{head}") == head
    assert (
        git(repo, "log", "-1", "--format=%B", head)
        == f"Say what\n\nOpenDev-Task: t\nOpenDev-Source: {commit}"
    )
    assert tree_files(repo, head) == {
        "a.py": "A = 2",
        "d.py": "D = 1",
        "src/c.py": "C = 1",
        ".gitignore": "*.log\nbuild/",
    }
    await keeper.release(lease)
    assert worktrees(repo) == []
    assert fingerprint(repo) == before
    assert "deleted" in await keeper.drop_branch(lease.branch, into=INTO)


@pytest.mark.slow
async def test_a_trailer_in_the_agents_words_proves_nothing(train: Train, keeper: Keeper) -> None:
    victim, branch = await work(keeper, "victim", {"a.py": "A = 2\n"})
    commit, _ = await work(keeper, "liar", {"b.py": "B = 2\n"})
    lie = f"Fine\n\nOpenDev-Source: {victim}\n  opendev-source: {victim}\nsee OpenDev-Source: {victim}"
    landing = await train.land(task="liar", commit=commit, base=keeper.base, message=lie, verify=passing)
    assert landing.outcome == "landed"
    assert "not merged" in await keeper.drop_branch(branch, into=INTO)


@pytest.mark.req("SWM-07")
@pytest.mark.parametrize(
    ("result", "expected"), [("fail", "red"), ("timeout", "red"), ("infra", "infra"), ("not_run", "red")]
)
async def test_only_a_pass_lands(
    train: Train,
    keeper: Keeper,
    repo: Path,
    result: Literal["fail", "timeout", "infra", "not_run"],
    expected: str,
) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    before = state(repo)

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        return outcome(result)

    landing = await land(train, keeper, commit, verify)
    assert (landing.outcome, landing.head, landing.merged_as) == (expected, keeper.base, "")
    assert landing.verify == outcome(result)
    assert state(repo) == before


async def test_without_a_command_there_is_nothing_to_pass(train: Train, keeper: Keeper) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        return VerifyOutcome(command="")

    assert (await land(train, keeper, commit, verify)).outcome == "landed"


@pytest.mark.slow
@pytest.mark.req("SWM-09")
async def test_a_clean_merge_that_is_red_ejects_the_culprit(train: Train, keeper: Keeper, repo: Path) -> None:
    rename, _ = await work(keeper, "rename", {"a.py": "NEW = 1\n"})
    call, _ = await work(keeper, "call", {"user.py": "from a import A\n"})

    async def verify(path: Path, _commit: str) -> VerifyOutcome:
        user = path / "user.py"
        broken = user.exists() and user.read_text().split()[-1] not in (path / "a.py").read_text()
        return outcome("fail" if broken else "pass")

    first = await land(train, keeper, rename, verify)
    second = await land(train, keeper, call, verify)
    assert (first.outcome, second.outcome) == ("landed", "red")
    assert git(repo, "rev-parse", INTO) == first.head == second.head


@pytest.mark.slow
@pytest.mark.req("SWM-09")
async def test_a_textual_conflict_leaves_no_trace(train: Train, keeper: Keeper, repo: Path) -> None:
    one, _ = await work(keeper, "one", {"a.py": "A = 2\n"})
    two, _ = await work(keeper, "two", {"a.py": "A = 3\n", "fine.py": "x\n"})
    gone, _ = await work(keeper, "gone", {"a.py": None})
    first = await land(train, keeper, one)
    before = state(repo)

    async def never(_path: Path, _commit: str) -> VerifyOutcome:
        raise AssertionError("a conflict is not verified")

    for commit in (two, gone):
        landing = await land(train, keeper, commit, never)
        assert (landing.outcome, landing.head, landing.files) == ("conflict", first.head, ("a.py",))
        assert "a.py" in landing.detail
    assert state(repo) == before


@pytest.mark.slow
@pytest.mark.req("SWM-09")
async def test_when_the_branch_moves_during_verification_the_new_state_is_verified(
    train: Train, keeper: Keeper, repo: Path
) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    other, _ = await work(keeper, "other", {"b.py": "B = 2\n"})
    seen: list[dict[str, str]] = []

    async def verify(path: Path, composed: str) -> VerifyOutcome:
        seen.append(tree_files(repo, composed))
        if len(seen) == 1:
            git(repo, "update-ref", f"refs/heads/{INTO}", other)
        return outcome("pass")

    landing = await land(train, keeper, commit, verify)
    assert landing.outcome == "landed"
    assert [(files["a.py"], files["b.py"]) for files in seen] == [("A = 2", "B = 1"), ("A = 2", "B = 2")]
    assert git(repo, "rev-parse", f"{INTO}^") == other
    assert landing.files == ("a.py",)


async def test_a_branch_that_keeps_moving_is_given_up_after_bounded_rounds(
    train: Train, keeper: Keeper, repo: Path
) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    rounds: list[str] = []

    async def verify(path: Path, composed: str) -> VerifyOutcome:
        rounds.append(composed)
        tree = git(repo, "rev-parse", f"{INTO}^{{tree}}")
        git(
            repo,
            "update-ref",
            f"refs/heads/{INTO}",
            git(repo, "commit-tree", tree, "-p", INTO, "-m", f"{len(rounds)}"),
        )
        return outcome("pass")

    landing = await land(train, keeper, commit, verify, max_rounds=2)
    assert (landing.outcome, len(rounds), landing.merged_as) == ("moved", 2, "")
    assert landing.head == git(repo, "rev-parse", INTO)
    assert worktrees(repo) == []


async def test_a_branch_that_is_reset_or_deleted_meanwhile_is_not_brought_back(
    train: Train, keeper: Keeper, repo: Path
) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        git(repo, "update-ref", "-d", f"refs/heads/{INTO}")
        return outcome("pass")

    landing = await land(train, keeper, commit, verify)
    assert (landing.outcome, landing.head) == ("infra", "")
    assert "does not exist" in landing.detail
    assert git(repo, "for-each-ref", f"refs/heads/{INTO}") == ""


async def test_nothing_new_is_empty(train: Train, keeper: Keeper, repo: Path) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    twin, _ = await work(keeper, "twin", {"a.py": "A = 2\n"})
    first = await land(train, keeper, commit)
    assert (await land(train, keeper, twin)).outcome == "empty"
    assert (await land(train, keeper, keeper.base)).outcome == "empty"
    assert git(repo, "rev-parse", INTO) == first.head


@pytest.mark.req("SWM-09")
async def test_a_stale_commit_neither_deletes_nor_brings_back_files_of_others(
    keeper: Keeper, repo: Path
) -> None:
    stale = git(repo, "rev-parse", "HEAD")
    base = commit_files(repo, {"later.py": "L = 1\n", "b.py": None})
    train = Train(keeper, INTO, SystemClock())
    await train.prepare(base)
    stale_work, _ = await work(keeper, "stale", {"a.py": "A = 2\n"}, base=stale)
    wrong = await train.land(task="s", commit=stale_work, base=base, message="m", verify=passing)
    assert (wrong.outcome, wrong.head) == ("conflict", base)
    right = await train.land(task="s", commit=stale_work, base=stale, message="m", verify=passing)
    assert (right.outcome, right.files) == ("landed", ("a.py",))
    assert tree_files(repo, right.head).keys() == {"a.py", "later.py", "src/c.py", ".gitignore"}


@pytest.mark.req("SWM-09")
async def test_a_merge_that_moves_files_of_others_is_refused(keeper: Keeper, repo: Path) -> None:
    git(repo, "config", "merge.directoryRenames", "true")
    base = commit_files(repo, {"old/one.py": "1\n" * 9, "old/two.py": "2\n" * 9})
    train = Train(keeper, INTO, SystemClock())
    await train.prepare(base)
    added, _ = await work(keeper, "add", {"old/three.py": "3\n"}, base=base)
    moved, _ = await work(
        keeper,
        "move",
        {"old/one.py": None, "old/two.py": None, "new/one.py": "1\n" * 9, "new/two.py": "2\n" * 9},
        base=base,
    )
    first = await train.land(task="add", commit=added, base=base, message="m", verify=passing)
    second = await train.land(task="move", commit=moved, base=base, message="m", verify=passing)
    assert (first.outcome, second.outcome, second.head) == ("landed", "conflict", first.head)
    assert second.files == ("new/three.py", "old/three.py")


async def test_a_task_lands_on_a_branch_that_does_not_hold_its_base(keeper: Keeper, repo: Path) -> None:
    git(repo, "branch", "elder")
    base = commit_files(repo, {"only-main.py": "M = 1\n"})
    train = Train(keeper, "elder", SystemClock())
    await train.prepare(base)
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"}, base=base)
    landing = await train.land(task="t", commit=commit, base=base, message="m", verify=passing)
    assert (landing.outcome, landing.files) == ("landed", ("a.py",))
    assert "only-main.py" not in tree_files(repo, landing.head)


@pytest.mark.parametrize("into", ["main", "feature", "bad..name", "-x", "HEAD", ""])
async def test_a_branch_that_somebody_has_checked_out_or_no_branch_at_all_is_refused(
    keeper: Keeper, repo: Path, tmp_path: Path, into: str
) -> None:
    git(repo, "worktree", "add", "-q", "-b", "feature", str(tmp_path / "linked"))
    before = state(repo)
    with pytest.raises(OpenDevError) as caught:
        await Train(keeper, into, SystemClock()).prepare("HEAD")
    assert caught.value.info.kind == ErrorKind.USAGE
    assert state(repo) == before


async def test_a_branch_that_gets_checked_out_meanwhile_is_not_moved(
    train: Train, keeper: Keeper, repo: Path, tmp_path: Path
) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        git(repo, "worktree", "add", "-q", str(tmp_path / "linked"), INTO)
        return outcome("pass")

    landing = await land(train, keeper, commit, verify)
    assert (landing.outcome, landing.head) == ("infra", keeper.base)
    assert "checked out" in landing.detail
    assert git(tmp_path / "linked", "status", "--porcelain") == ""


async def test_an_existing_branch_is_continued(train: Train, keeper: Keeper) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    landing = await land(train, keeper, commit)
    assert await Train(keeper, INTO, SystemClock()).prepare(keeper.base) == landing.head


async def test_a_cancelled_landing_leaves_no_trace(train: Train, keeper: Keeper, repo: Path) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    before = state(repo)
    running = asyncio.Event()

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.ensure_future(land(train, keeper, commit, verify))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert state(repo) == before
    assert keeper.book.records() == ()


async def test_a_verification_that_breaks_leaves_no_trace(train: Train, keeper: Keeper, repo: Path) -> None:
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    before = state(repo)

    async def lost(_path: Path, _commit: str) -> VerifyOutcome:
        raise OpenDevError(ErrorKind.INFRA, "The disk is full.")

    async def defect(_path: Path, _commit: str) -> VerifyOutcome:
        raise ValueError("defect")

    landing = await land(train, keeper, commit, lost)
    assert (landing.outcome, landing.detail) == ("infra", "The disk is full.")
    with pytest.raises(ValueError, match="defect"):
        await land(train, keeper, commit, defect)
    assert state(repo) == before


@pytest.mark.slow
async def test_landings_at_once_run_one_after_the_other(train: Train, keeper: Keeper, repo: Path) -> None:
    commits = [(await work(keeper, f"t{n}", {f"f{n}.txt": str(n)}))[0] for n in range(4)]
    inside: list[int] = []

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        inside.append(1)
        assert len(inside) == 1
        await asyncio.sleep(0.01)
        inside.pop()
        return outcome("pass")

    landings = await asyncio.gather(*(land(train, keeper, commit, verify) for commit in commits))
    assert [landing.outcome for landing in landings] == ["landed"] * 4
    assert {f"f{n}.txt" for n in range(4)} <= tree_files(repo, INTO).keys()
    assert (worktrees(repo), locks(repo)) == ([], [])


async def test_a_checkout_is_clean_detached_and_dropped_once(
    train: Train, keeper: Keeper, repo: Path
) -> None:
    path = await train.checkout(keeper.base)
    assert git(path, "rev-parse", "HEAD") == keeper.base
    assert git(path, "branch", "--show-current") == ""
    await train.drop(path)
    await train.drop(path)
    assert not exists(path)
    assert worktrees(repo) == []


@pytest.mark.req("SWM-14")
async def test_a_branch_that_moves_in_the_last_moment_is_not_overwritten(
    train: Train, keeper: Keeper, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another git, which knows nothing of our lock, moves it between our last look and our own update."""
    commit, _ = await work(keeper, "t", {"a.py": "A = 2\n"})
    verified = asyncio.Event()
    theirs: list[str] = []
    look = Train._read_head  # pyright: ignore[reportPrivateUsage]

    def looks_and_is_overtaken(self: Train) -> str:
        head = look(self)
        if verified.is_set() and not theirs:
            theirs.append(git(repo, "commit-tree", f"{INTO}^{{tree}}", "-p", INTO, "-m", "theirs"))
            git(repo, "update-ref", f"refs/heads/{INTO}", theirs[0])
        return head

    monkeypatch.setattr(Train, "_read_head", looks_and_is_overtaken)

    async def verify(_path: Path, _commit: str) -> VerifyOutcome:
        verified.set()
        return outcome("pass")

    landing = await land(train, keeper, commit, verify, max_rounds=1)
    assert (landing.outcome, landing.head) == ("moved", theirs[0])
    assert git(repo, "rev-parse", INTO) == theirs[0]
