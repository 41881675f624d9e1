"""`opendev swarm`: how tickets end, what lands, what the report and the exit code say, and that the user's checkout is as before."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Json
from support.repos import commit_files, fingerprint, git, tree_files, worktrees
from support.swarm_cli import CHECK, Bench, make_bench, put, sh, sub, task

pytestmark = pytest.mark.slow
RENAME = (
    sub("greet", "salute", "lib.py"),
    sub("greet", "salute", "app.py"),
)
CALLER = put("extra.py", "from lib import greet\n\ngreet()\n")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


def branch_files(bench: Bench, ref: str = "swarm/x") -> dict[str, str]:
    return tree_files(bench.repo, ref)


@pytest.mark.req("SWM-01", "SWM-03", "SWM-09", "SWM-15")
def test_green_alone_and_red_together_ejects_one_by_name(bench: Bench) -> None:
    done = bench.run(
        task("rename", *RENAME, scope=["lib.py", "app.py"], verify=CHECK),
        task("caller", CALLER, scope=["extra.py"], verify=CHECK),
        task("bystander", put("notes.txt", "n\n"), scope=["notes.txt"]),
        verify=CHECK,
    )
    merged = [name for name, status in done.statuses.items() if status == "merged"]
    loser = ({"rename", "caller"} - set(merged)).pop()
    assert (done.code, done.run.status, done.statuses[loser]) == (3, "partial", "verify_failed")
    assert len(merged) == 2
    assert any(f"{loser} makes swarm/x red" in note and "ejected" in note for note in done.run.notes)
    assert bench.green()
    assert len(bench.commits()) == 2
    lost = next(row for row in done.run.tasks if row.id == loser)
    assert lost.branch in done.run.leftovers.branches
    assert git(bench.repo, "rev-parse", lost.branch) == lost.commit
    assert done.run.head == git(bench.repo, "rev-parse", "swarm/x")


@pytest.mark.req("SWM-09")
def test_a_textual_conflict_keeps_the_branch_of_the_loser(bench: Bench) -> None:
    """Each overwrites the same line by a shell command that refuses any other content: redoing it cannot help."""
    edit = "grep -q \"'hi'\" lib.py && sed -i \"s/'hi'/'{0}'/\" lib.py && sleep 0.5"
    done = bench.run(
        task("one", sh(edit.format("one")), scope=["lib.py"], attempts=1),
        task("two", sh(edit.format("two")), scope=["lib.py"], attempts=1),
        verify=CHECK,
    )
    assert sorted(done.statuses.values()) == ["conflict", "merged"]
    assert (done.code, done.run.status) == (4, "partial")
    lost = next(row for row in done.run.tasks if row.status == "conflict")
    assert "lib.py" in (lost.error or "")
    assert done.run.leftovers.branches == (lost.branch,)
    assert f"'{lost.id}'" in git(bench.repo, "show", f"{lost.branch}:lib.py")
    assert f"'{lost.id}'" not in branch_files(bench)["lib.py"]
    assert bench.green()


@pytest.mark.req("SWM-09")
def test_a_branch_that_moves_during_the_verification_is_rebased_upon(bench: Bench) -> None:
    flag = bench.place / "moved"
    bench.sandbox.env["OPENDEV_SANDBOX__MODE"] = "off"  # it stands in for somebody else
    move = (
        f"cd {bench.repo} && c=$(GIT_AUTHOR_NAME=B GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_NAME=B GIT_COMMITTER_EMAIL=b@b"
        " git commit-tree -p swarm/x -m Foreign swarm/x^{tree}) && git update-ref refs/heads/swarm/x $c"
    )
    verify = f"test ! -f one.txt || test -e {flag} || (touch {flag} && {move})"
    done = bench.run(task("one", put("one.txt", "1\n")), verify=verify)
    assert (done.code, done.statuses) == (0, {"one": "merged"})
    assert bench.commits() == ["Foreign", "Do one."]
    assert branch_files(bench)["one.txt"] == "1"


@pytest.mark.req("SWM-08")
def test_a_write_outside_the_scope_is_refused_at_the_tool_and_at_the_merge(bench: Bench) -> None:
    done = bench.run(
        task("tool", put("evil.txt", "e\n"), scope=["good.txt"]),
        task("shell", sh("echo e > evil.txt; echo g > good2.txt"), scope=["good2.txt"]),
        task("avoided", put("src/secret.txt", "e\n"), scope=["src/**"], avoid=["src/secret.txt"]),
        task("climb", put("../../evil.txt", "e\n")),
    )
    found = done.statuses
    assert done.code == 1
    assert found["shell"] == "out_of_scope"
    assert {found["tool"], found["avoided"], found["climb"]} <= {"out_of_scope", "agent_failed"}
    assert "evil.txt" in (next(row.error for row in done.run.tasks if row.id == "shell") or "")
    assert "evil.txt" in (next(row.error for row in done.run.tasks if row.id == "tool") or "")
    assert set(branch_files(bench)) == {"lib.py", "app.py", "check.py", ".gitignore"}
    assert not list(bench.place.rglob("evil.txt"))


@pytest.mark.req("SWM-06", "SWM-07")
def test_setup_timeouts_and_background_processes(bench: Bench) -> None:
    bench.sandbox.env["OPENDEV_SWARM__VERIFY_TIMEOUT_S"] = "1.5"
    done = bench.run(
        task("hangs", put("h.txt", "1\n"), verify="sleep 300", attempts=1),
        task("red", put("r.txt", "1\n"), verify="echo because $((6*7)); exit 4"),
        task("daemon", put("d.txt", "1\n"), verify="(setsid sleep 300 >/dev/null 2>&1 &) ; test -f d.txt"),
        task("child", put("c.txt", "1\n"), depends_on=["red"]),
        task("worker", sh("(setsid nohup sleep 301 >/dev/null 2>&1 &) ; echo w > w.txt")),
    )
    assert done.statuses == {
        "hangs": "verify_failed", "red": "verify_failed", "daemon": "merged", "child": "skipped", "worker": "merged",
    }  # fmt: skip
    assert done.code == 3
    rows = {row.id: row for row in done.run.tasks}
    hangs, red = rows["hangs"].verify, rows["red"].verify
    assert hangs is not None
    assert red is not None
    assert (hangs.outcome, hangs.exit_code) == ("timeout", None)
    assert (red.outcome, red.exit_code) == ("fail", 4)
    assert "because 42" in Path(red.log).read_text()
    assert "time limit" in (rows["hangs"].error or "")
    assert rows["red"].attempts == 1
    assert "depends on red" in (rows["child"].error or "")
    assert (rows["child"].attempts, rows["child"].branch) == (0, "")


@pytest.mark.req("SWM-06")
def test_a_failing_setup_is_infrastructure_and_its_dependants_are_skipped(bench: Bench) -> None:
    done = bench.run(
        task("one", put("one.txt", "1\n")),
        task("two", put("two.txt", "1\n"), depends_on=["one"]),
        setup="echo no pip; exit 9",
    )
    assert (done.code, done.run.status, done.statuses) == (
        6,
        "failed",
        {"one": "setup_failed", "two": "skipped"},
    )
    assert "no pip" in (done.run.tasks[0].error or "")
    assert done.run.head == git(bench.repo, "rev-parse", "main")


@pytest.mark.parametrize(
    ("tasks", "swarm", "code"),
    [
        ([task("ok", put("n.txt", "1\n"))], {}, 0),
        ([task("bad", sh("exit 3"))], {}, 1),
        ([task("bad", sh("exit 3")), task("red", put("n.txt", "1\n"), verify="false")], {}, 3),
        ([task("red", put("n.txt", "1\n"), verify="false"), task("ok", put("o.txt", ""))], {"verify": "no-such-command"}, 6),
        ([task("noop", sub("nowhere", "x", "*.py"))], {}, 1),
        ([task("ask", sh("touch n.txt"))], {"approve": "manual"}, 7),
    ],
)  # fmt: skip
@pytest.mark.req("SWM-15", "CLI-06")
def test_exit_codes(bench: Bench, tasks: list[Json], swarm: Json, code: int) -> None:
    done = bench.run(*tasks, **swarm)
    assert (done.code, done.run.status == "succeeded") == (code, code == 0)


def test_it_runs_from_a_linked_worktree_and_leaves_both_alone(bench: Bench) -> None:
    main, linked = bench.repo, bench.place / "linked"
    git(main, "worktree", "add", "-q", "-b", "side", str(linked))
    commit_files(linked, {"side.txt": "s\n"})
    before = fingerprint(main)
    bench.sandbox.project = linked
    done = bench.run(task("one", put("one.txt", "1\n")), task("red", put("r.txt", ""), verify="exit 1"))
    assert (done.code, done.statuses) == (3, {"one": "merged", "red": "verify_failed"})
    assert fingerprint(main) == before
    assert {"side.txt", "one.txt"} <= set(branch_files(bench))
    assert worktrees(main) == [str(linked)]
