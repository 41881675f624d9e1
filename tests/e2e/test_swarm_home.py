"""Bad disks and hostile repositories: a sentence and the right exit code, nothing of the repository runs, the checkout stays as it is."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.repos import commit_files, fingerprint, git
from support.swarm_cli import Bench, make_bench, put, sh, sub, task

pytestmark = pytest.mark.slow
FILL = "test -e {0}/go && echo done > filled.txt && exit 0\ncat /dev/zero > big.bin\nexit 1\n"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def small(bench: Bench) -> Iterator[Bench]:
    """A state root on a disk with 216 MB: 16 more than a worktree asks for."""
    bench.home.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=216m", "tmpfs", bench.home],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    yield bench
    subprocess.run(["umount", "-l", bench.home], check=True)


def refused(bench: Bench, *words: str) -> str:
    """The complaint of a run that infrastructure refuses before anything is started."""
    before = fingerprint(bench.repo)
    done = bench.opendev("swarm", *words)
    assert done.code == 6, done
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    assert fingerprint(bench.repo) == before
    assert "swarm/x" not in git(bench.repo, "branch", "--list")
    return done.stderr


@pytest.mark.req("CFG-07", "SWM-15")
@pytest.mark.parametrize("home", ["/dev/null/x", "/proc/opendev"])
def test_a_state_root_that_cannot_be_written(bench: Bench, home: str) -> None:
    file = bench.tickets(task("one", put("one.txt", "1\n")))
    bench.sandbox.env["OPENDEV_HOME"] = home
    for words in (("run", str(file), "--output", "json"), ("demo", str(bench.place / "demo"))):
        assert home in refused(bench, *words, "--runtime", "local")
    for words in (("status", "r1"), ("resume", "r1")):
        done = bench.opendev("swarm", *words)
        assert done.code in (2, 6), (words, done)
        assert "defect" not in done.stderr, (words, done)


def test_a_disk_without_room_is_refused_before_the_start(small: Bench) -> None:
    subprocess.run(["fallocate", "-l", "100m", small.home / "ballast"], check=True)
    file = small.tickets(task("one", put("one.txt", "1\n")), verify="true")
    before = fingerprint(small.repo)
    done = small.opendev("swarm", str(file), "--runtime", "local", "--output", "json")
    assert done.code == 6
    assert "MB are free" in done.stderr + done.stdout
    small.assert_tidy(before)
    subprocess.run(["fallocate", "-l", "116m", small.home / "more"], check=False)
    said = refused_full(small, file)
    assert "No space left" in said


def refused_full(small: Bench, file: Path) -> str:
    subprocess.run(f"cat /dev/zero > {small.home}/rest", shell=True, check=False, capture_output=True)
    done = small.opendev("swarm", str(file), "--runtime", "local")
    assert done.code == 6, done
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.req("SWM-15", "SWM-03")
def test_a_disk_that_fills_up_in_the_middle_is_infrastructure_and_resume_goes_on(small: Bench) -> None:
    commit_files(small.repo, {"fill.sh": FILL.format(small.place)})
    before = fingerprint(small.repo)
    file = small.tickets(
        task("early", put("early.txt", "e\n"), scope=["early.txt"]),
        task("fills", sh("sh fill.sh"), scope=["filled.txt", "big.bin"], depends_on=["early"]),
        task("later", put("later.txt", "l\n"), scope=["later.txt"], depends_on=["fills"]),
        verify="true",
    )
    done = small.opendev("swarm", str(file), "--runtime", "local", "--output", "json")
    assert (done.code, done.run.status) == (6, "partial"), done
    assert "Traceback" not in done.stderr
    assert (done.statuses["early"], done.statuses["later"]) == ("merged", "infra")
    assert done.statuses["fills"] in ("infra", "agent_failed")  # whether the last page held one more record
    assert all(
        "No space left" in (row.error or "") and "Internal" not in (row.error or "")
        for row in done.run.tasks[1:]
    )
    assert [Path(path).parent.parent.name for path in done.run.leftovers.worktrees] == [
        "worktrees"
    ]  # with the work in it
    assert small.commits() == ["Do early."]
    small.assert_tidy(before, folders=False)
    for big in small.home.rglob("big.bin"):
        big.unlink()
    (small.place / "go").touch()
    again = small.opendev("swarm", "resume", done.run.run_id, "--runtime", "local", "--output", "json")
    assert (again.code, set(again.statuses.values())) == (0, {"merged"}), again
    assert small.commits() == ["Do early.", "Do fills.", "Do later."]
    small.assert_tidy(before, folders=False)


HOOKS = """
post-checkout pre-commit post-commit prepare-commit-msg commit-msg reference-transaction post-index-change pre-merge-commit
post-merge post-rewrite fsmonitor-watchman pre-auto-gc
"""


@pytest.mark.req("SWM-03", "SAF-01")
def test_nothing_of_a_hostile_repository_runs(bench: Bench) -> None:
    repo, canary = bench.repo, bench.place / "canary"
    evil = repo / ".git" / "evil.sh"
    commit_files(
        repo,
        {
            ".gitattributes": "* filter=evil diff=evil merge=evil text eol=crlf ident\n",
            ".githooks/post-checkout": f"#!/bin/sh\necho tree >> {canary}\n",
            "sitecustomize.py": f"open({str(canary)!r}, 'a').write('site')\n",
            "conftest.py": f"open({str(canary)!r}, 'a').write('conftest')\n",
        },
    )
    for name in HOOKS.split():
        hook = repo / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {canary}\n")
        hook.chmod(0o755)
    evil.write_text(f"#!/bin/sh\necho evil $* >> {canary}\ncat\n")
    evil.chmod(0o755)
    (repo / ".git/hooks").chmod(0o755)
    with (repo / ".git/config").open("a") as config:
        config.write(
            f'[filter "evil"]\n\tclean = {evil} clean\n\tsmudge = {evil} smudge\n\tprocess = {evil} process\n\trequired = true\n'
            f'[diff "evil"]\n\tcommand = {evil} diff\n\ttextconv = {evil} textconv\n'
            f'[merge "evil"]\n\tdriver = {evil} merge %A\n[diff]\n\texternal = {evil} external\n'
            f"[core]\n\tfsmonitor = {evil}\n\tpager = {evil} pager\n\teditor = {evil} editor\n\tsshCommand = {evil} ssh\n"
            f"\thooksPath = .git/hooks\n\taskpass = {evil}\n"
            f"[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {evil} gpg\n[alias]\n\tworktree = !{evil} alias\n"
            f'[credential]\n\thelper = !{evil} credential\n[interactive]\n\tdiffFilter = {evil} filter\n[uploadpack]\n\tpackObjectsHook = {evil} pack\n'
        )  # fmt: skip
    canary.unlink(missing_ok=True)
    done = bench.run(
        task("one", sub("greet", "salute", "*.py"), put("new.txt", "n\n"), verify="test -f lib.py"),
        task("two", put("two.txt", "2\n"), depends_on=["one"]),
        verify="test -f app.py",
        dirty="ignore",
    )
    assert (done.code, set(done.statuses.values())) == (0, {"merged"}), done
    assert not canary.exists(), canary.read_text()
    assert "salute" in git(repo, "show", "swarm/x:lib.py")


@pytest.mark.req("SWM-03")
@pytest.mark.parametrize("walls", ["off", "auto"])
def test_git_commands_of_an_agent_leave_the_refs_of_the_user_alone(bench: Bench, walls: str) -> None:
    """Also inside of a script, which no policy reads; its own branch, and other repositories with their hooks, are free.

    The fence holds without the sandbox, and an agent reads from either whose the refs are.
    """
    bench.sandbox.env["OPENDEV_SANDBOX__MODE"] = walls
    other = bench.place / "other"
    script = (
        "echo x >> lib.py; git stash; git tag evil; git update-ref refs/heads/evil HEAD; git switch -c evil\n"
        "git worktree add -q ../../../evil; git fetch -q . HEAD:refs/remotes/evil/x\n"
        "git checkout -q -- lib.py && echo s > s.txt && git add s.txt && git -c user.name=x -c user.email=y commit -qm mine || exit 1\n"
        f"git init -q {other} && cd {other} && printf '#!/bin/sh\\ntouch hooked\\n' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit\n"
        "git -c user.name=x -c user.email=y commit -q --allow-empty -m free && git branch free && test -e hooked\n"
    )
    commit_files(bench.repo, {"script.sh": script})
    done = bench.run(
        task("script", sh("sh script.sh"), scope=["s.txt"]),
        task("switch", sh("git switch -q -c evil && echo e > e.txt"), scope=["e.txt"]),
        task("commit", sh("echo c > c.txt && git add c.txt && git commit -qm mine"), scope=["c.txt"]),
    )
    assert done.statuses == {"script": "merged", "switch": "agent_failed", "commit": "merged"}, done
    assert "belongs to the user" in (done.run.tasks[1].error or ""), done.run.tasks[1].error
    assert sorted(bench.commits()) == ["Do commit.", "Do script."]
    assert git(other, "branch", "--list", "free") == "free"
