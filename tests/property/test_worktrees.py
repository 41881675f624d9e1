"""Properties of worktrees: names are always legal, and no sequence of leases loses work or touches the user's checkout."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from opendev.core.lease import Lease
from opendev.worktrees import names
from opendev.worktrees.keeper import Keeper
from support.fixed_clock import FixedClock
from support.repos import ENV, fingerprint, git, locks, make_repo, tree_files, worktrees, write


@given(st.text(max_size=200))
def test_a_slug_is_one_legal_part_of_a_ref_and_of_a_path(text: str) -> None:
    part = names.slug(text)
    assert 0 < len(part) <= 60
    assert all(char.isascii() and (char.isalnum() or char in "-_.") for char in part)
    assert not {part[0], part[-1]} & set("-.")
    assert ".." not in part
    assert not part.endswith(".lock")
    assert names.slug(part) == part


@settings(max_examples=25, deadline=None)
@given(run=st.text(max_size=80), task=st.text(max_size=80), attempt=st.integers(1, 999))
def test_git_accepts_every_branch_name(run: str, task: str, attempt: int) -> None:
    branch = names.branch_name(run, task, attempt)
    assert git(Path("/"), "check-ref-format", "--branch", branch) == branch


class Leases(RuleBasedStateMachine):
    """Writers write, commit, give back, die in any order; a model says what must be found at the end."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.repo = make_repo(self.place / "repo")
        write(self.repo, {"b.py": "B = 99\n", "mine.txt": "x"})
        self.before = fingerprint(self.repo)
        self.keeper = Keeper(repo=self.repo, home=self.place / "home", clock=FixedClock(), env=ENV)
        self.content: dict[str, dict[str, str]] = {}
        self.committed: dict[str, dict[str, str]] = {}
        self.base = tree_files(self.repo, "HEAD")

    @rule(target=held)
    def lease(self) -> Lease:
        lease = asyncio.run(self.keeper.lease(write=True, task="t", run_id="r"))
        self.content[lease.id] = dict(self.base)
        self.committed[lease.id] = dict(self.base)
        return lease

    @rule(
        lease=held,
        name=st.sampled_from(["a.py", "new.py", "d/e.py"]),
        text=st.sampled_from(["A = 2", "B = 3", "C"]),
    )
    def write(self, lease: Lease, name: str, text: str) -> None:
        write(Path(lease.path), {name: text})
        self.content[lease.id][name] = text

    @rule(lease=held)
    def commit(self, lease: Lease) -> None:
        commit = asyncio.run(self.keeper.commit(lease, "step"))
        self.committed[lease.id] = dict(self.content[lease.id])
        assert tree_files(self.repo, commit) == self.content[lease.id]

    @rule(lease=held)
    def changed(self, lease: Lease) -> None:
        mine = self.content[lease.id]
        expected = sorted(n for n in mine.keys() | self.base.keys() if mine.get(n) != self.base.get(n))
        assert sorted(asyncio.run(self.keeper.changed(lease))) == expected

    @rule(lease=consumes(held))
    def die(self, lease: Lease) -> None:
        ref = asyncio.run(self.keeper.quarantine(lease, "died"))
        assert tree_files(self.repo, ref) == self.content[lease.id]
        assert not Path(lease.path).exists()

    @rule(lease=consumes(held))
    def release(self, lease: Lease) -> None:
        answer = asyncio.run(self.keeper.release(lease))
        safe = self.content[lease.id] == self.committed[lease.id]
        assert answer.startswith("removed") == safe, answer
        assert Path(lease.path).exists() != safe
        assert tree_files(self.repo, lease.branch) == self.committed[lease.id]

    @invariant()
    def the_users_checkout_is_untouched(self) -> None:
        assert fingerprint(self.repo) == self.before
        assert locks(self.repo) == []
        records: list[Any] = list(self.keeper.book.records())
        assert sorted(worktrees(self.repo)) == sorted(record.lease.path for record in records)

    def teardown(self) -> None:
        shutil.rmtree(self.place)


class ManyLeases(Leases):
    """The same, longer."""


Leases.TestCase.settings = settings(
    max_examples=3, stateful_step_count=10, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
ManyLeases.TestCase.settings = settings(Leases.TestCase.settings, max_examples=12, stateful_step_count=12)
TestLeases = pytest.mark.slow(Leases.TestCase)
TestManyLeases = pytest.mark.soak(ManyLeases.TestCase)
