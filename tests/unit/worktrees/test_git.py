"""The door: nothing of the repository's runs, nothing of the environment leaks in, every failure is told."""

import os
import threading
from pathlib import Path

import pytest
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ticket import VerifyOutcome
from opendev.worktrees.git import Git, carried, user_config
from opendev.worktrees.keeper import Keeper
from opendev.worktrees.train import Train
from support.repos import ENV, commit_files, fingerprint, git, make_repo, write


def booby_trap(repo: Path, marker: Path) -> None:
    """Every way that git's configuration can name a program, armed; harmless for plain reading by the test itself."""
    script = repo.parent / "evil.sh"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\ncat\n')
    script.chmod(0o755)
    hooks = repo / ".git" / "hooks"
    for name in (
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
        "post-rewrite",
        "pre-auto-gc",
    ):
        hooks.mkdir(exist_ok=True)
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {marker}\n")
        (hooks / name).chmod(0o755)
    settings = {
        "core.fsmonitor": script,
        "core.hooksPath": hooks,
        "core.pager": script,
        "core.editor": script,
        "core.sshCommand": script,
        "core.askPass": script,
        "core.alternateRefsCommand": script,
        "diff.external": script,
        "diff.evil.command": script,
        "diff.evil.textconv": script,
        "filter.evil.clean": script,
        "filter.evil.smudge": script,
        "filter.proc.process": script,
        "filter.proc.required": "true",
        "merge.evil.driver": f"{script} %A",
        "gpg.program": script,
        "commit.gpgsign": "true",
        "credential.helper": script,
        "sequence.editor": script,
        "interactive.diffFilter": script,
        "alias.status": f"!{script}",
    }
    with (repo / ".git" / "config").open("a") as file:
        for key, value in settings.items():
            section, _, rest = key.partition(".")
            name, _, variable = rest.rpartition(".")
            head = f'[{section} "{name}"]' if name else f"[{section}]"
            file.write(f'{head}\n\t{variable} = "{value}"\n')
    (repo / ".git" / "info" / "attributes").write_text(
        "*.py filter=evil diff=evil merge=evil\n*.dat filter=proc\n"
    )


@pytest.mark.req("SWM-03")
async def test_no_program_of_a_hostile_repository_runs(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path / "repo", {"a.py": "A = 1\n", "b.dat": "raw\n", ".gitattributes": "*.md filter=evil\n"}
    )
    marker = tmp_path / "MARK"
    booby_trap(repo, marker)
    before = (repo / ".git" / "config").read_bytes()
    keeper = Keeper(repo=repo, home=tmp_path / "home", clock=SystemClock(), env=ENV)
    assert "evil" in " ".join(keeper.warnings)
    write(repo, {"a.py": "A = 5\n"})
    os.utime(repo / "a.py", (1, 1))
    assert await keeper.is_dirty() == ("a.py",)
    snap = await keeper.snapshot()
    train = Train(keeper, "swarm/x", SystemClock())
    head = await train.prepare(keeper.base)
    lease = await keeper.lease(write=True, task="t", run_id="r", base=snap)
    write(Path(lease.path), {"a.py": "A = 6\n", "c.md": "text\n", "b.dat": "new\n"})
    assert await keeper.changed(lease) == ("a.py", "b.dat", "c.md")
    commit = await keeper.commit(lease, "work")

    async def verify(path: Path, _commit: str) -> VerifyOutcome:
        assert (path / "c.md").read_text() == "text\n"
        return VerifyOutcome(command="true", exit_code=0, outcome="pass")

    landing = await train.land(task="t", commit=commit, base=head, message="m", verify=verify)
    assert landing.outcome == "landed", landing
    assert (await keeper.release(lease)).startswith("removed")
    assert not marker.exists(), marker.read_text()
    assert (repo / ".git" / "config").read_bytes() == before


@pytest.mark.slow
async def test_a_merge_driver_of_the_repository_is_replaced_by_the_text_merge(tmp_path: Path) -> None:
    lines = "".join(f"{n}\n" for n in range(20))
    repo = make_repo(tmp_path / "repo", {"a.py": lines, ".gitattributes": "*.py merge=evil\n"})
    base = git(repo, "rev-parse", "HEAD")
    marker = tmp_path / "MARK"
    booby_trap(repo, marker)
    keeper = Keeper(repo=repo, home=tmp_path / "home", clock=SystemClock(), env=ENV)
    train = Train(keeper, "swarm/x", SystemClock())
    await train.prepare("HEAD")
    for name, old, new in (
        ("one", "2\n3\n", "2\nthree\n"),
        ("two", "17\n", "seventeen\n"),
        ("bad", "3\n", "drei\n"),
    ):
        lease = await keeper.lease(write=True, task=name, run_id="r")
        write(
            Path(lease.path),
            {"a.py": lines.replace(old, new, 1) if name != "bad" else lines.replace("\n3\n", "\ndrei\n")},
        )
        commit = await keeper.commit(lease, name)
        landing = await train.land(task=name, commit=commit, base=base, message=name, verify=_pass)
        assert landing.outcome == ("conflict" if name == "bad" else "landed"), landing
        await keeper.release(lease)
    assert not marker.exists(), marker.read_text()


async def _pass(_path: Path, _commit: str) -> VerifyOutcome:
    return VerifyOutcome(command="true", exit_code=0, outcome="pass")


def test_a_bare_repository_inside_the_tree_is_not_believed(repo: Path, tmp_path: Path) -> None:
    marker = tmp_path / "MARK"
    git(repo, "init", "-q", "--bare", "sub")
    (repo / "sub" / "config").write_text(
        f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {repo}\n\tfsmonitor = "touch {marker}"\n'
    )
    git(repo / "sub", "rev-parse", "--git-dir")  # git itself believes it
    with pytest.raises(OpenDevError, match=r"safe\.bareRepository") as caught:
        Git(repo / "sub", ENV).run("status")
    assert caught.value.info.kind == ErrorKind.GIT
    assert not marker.exists()


def test_the_environment_of_the_process_does_not_reach_git(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent/index")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    hostile = {**ENV, "GIT_DIR": "/nonexistent", "GIT_EXTERNAL_DIFF": "touch"}
    assert Git(repo, hostile).line("rev-parse", "--show-toplevel") == str(repo)
    shown = Git(repo, hostile, config=(("alias.showenv", "!env"),)).line("showenv")
    assert "sk-secret" not in shown
    assert "GIT_TERMINAL_PROMPT=0" in shown


def test_a_failure_names_command_folder_and_cause(repo: Path) -> None:
    with pytest.raises(OpenDevError) as caught:
        Git(repo, ENV).run("rev-parse", "--verify", "no-such-branch")
    assert caught.value.info.kind == ErrorKind.GIT
    assert "no-such-branch" in caught.value.info.message
    assert str(repo) in caught.value.info.message


def test_a_missing_folder_is_an_error_and_never_the_current_one(tmp_path: Path) -> None:
    with pytest.raises(OpenDevError, match="does not exist"):
        Git(tmp_path / "gone", ENV).run("status")


def test_a_missing_git_is_told(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(OpenDevError, match="could not be started") as caught:
        Git(repo, {"PATH": str(tmp_path), "HOME": "/"}).run("status")
    assert caught.value.info.kind == ErrorKind.INFRA


def test_git_runs_where_the_search_path_of_this_process_is_empty(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Git(repo, ENV).line("rev-parse", "--is-bare-repository") == "false"  # GitPython has found its git
    monkeypatch.setenv("PATH", "")
    assert Git(repo, ENV).line("rev-parse", "--is-bare-repository") == "false"


def test_a_repository_whose_path_holds_a_line_break_is_refused_in_words(repo: Path, tmp_path: Path) -> None:
    odd = repo.rename(repo.with_name("a\nb"))
    with pytest.raises(OpenDevError, match="holds a line break"):
        Keeper(repo=odd, home=tmp_path / "home", clock=SystemClock(), env=ENV)


def test_a_command_that_hangs_is_ended(repo: Path) -> None:
    slow = Git(repo, ENV, config=(("alias.wait", "!sleep 30"),), timeout_s=0.3)
    with pytest.raises(OpenDevError) as caught:
        slow.run("wait")
    assert caught.value.info.kind == ErrorKind.TIMEOUT


def test_a_lock_that_goes_away_is_waited_for(repo: Path) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    timer = threading.Timer(0.3, lock.unlink)
    timer.start()
    write(repo, {"a.py": "A = 2\n"})
    Git(repo, ENV).run("add", "a.py")
    timer.join()
    assert git(repo, "diff", "--cached", "--name-only") == "a.py"


@pytest.mark.slow
def test_a_lock_that_stays_is_a_failure_after_bounded_tries(repo: Path) -> None:
    lock = repo / ".git" / "index.lock"
    lock.touch()
    write(repo, {"a.py": "A = 2\n"})
    with pytest.raises(OpenDevError, match=r"index\.lock"):
        Git(repo, ENV).run("add", "a.py")
    assert lock.exists()


def test_the_users_own_settings_count_but_only_harmless_ones(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "ignore").write_text("*.swp\n")
    (tmp_path / ".gitconfig").write_text(
        f"[user]\n\tname = Bea\n\temail = bea@example.com\n[core]\n\texcludesFile = {tmp_path}/ignore\n\tpager = evil\n"
        "[alias]\n\tx = !touch mark\n"
    )
    settings = user_config({**ENV, "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": str(tmp_path / ".gitconfig")})
    assert settings == {
        "user.name": ("Bea",),
        "user.email": ("bea@example.com",),
        "core.excludesfile": (f"{tmp_path}/ignore",),
    }
    write(repo, {"note.swp": "x"})
    assert Git(repo, ENV, config=carried(settings)).run("status", "--porcelain").text == ""


def test_names_with_odd_bytes_survive(repo: Path) -> None:
    commit_files(repo, {"ü b.txt": "x"})
    (repo / os.fsdecode(b"bad\xff.txt")).write_bytes(b"x")
    names = Git(repo, ENV).run("ls-files", "-z", "--others", "--exclude-standard").fields
    assert names == (os.fsdecode(b"bad\xff.txt"),)
    assert fingerprint(repo)["head"] == b"ref: refs/heads/main\n"
