"""A journal, folded: what stands, what goes on from its commit, and what runs again (SWM-15, kill at any record)."""

import pytest
from opendev.core.ticket import SwarmPlan, TaskResult, TaskStatus
from opendev.swarm.journal import (
    AgentDone,
    AttemptStarted,
    Final,
    LandingDone,
    Record,
    RunBegan,
    RunEnded,
    content_key,
)
from opendev.swarm.recover import recover

PLAN = SwarmPlan.model_validate(
    {
        "swarm": {"verify": "true", "into": "swarm/x"},
        "task": [{"id": "one", "goal": "g"}, {"id": "two", "goal": "g2"}],
    }
)
BEGAN = RunBegan(run_id="r", repo="/r", base="b0", plan=PLAN)


def final(task: str, status: TaskStatus) -> Final:
    merged_as = "m1" if status is TaskStatus.MERGED else ""
    return Final(result=TaskResult(id=task, status=status, merged_as=merged_as))


def worked(key: str) -> tuple[Record, ...]:
    return (
        AttemptStarted(task="one", attempt=1, key=key, base="b0"),
        AgentDone(task="one", attempt=1, key=key, base="b0", branch="w/one", commit="c1"),
    )


CIRCUMSTANCES = (
    TaskStatus.CANCELLED,
    TaskStatus.INFRA,
    TaskStatus.SKIPPED,
    TaskStatus.BUDGET,
    TaskStatus.SETUP_FAILED,
)


@pytest.mark.req("SWM-15")
@pytest.mark.parametrize("finished", [False, True])
def test_what_is_merged_is_never_run_again(finished: bool) -> None:
    end = (RunEnded(status="failed", exit_code=1),) if finished else ()
    found = recover([BEGAN, final("one", TaskStatus.MERGED), *end])
    assert found.finished is finished
    assert (found.is_over("one"), found.tasks["one"].merged) == (True, "m1")
    landed = recover([BEGAN, LandingDone(task="one", attempt=1, commit="c1", merged_as="m2"), *end])
    assert (landed.is_over("one"), landed.tasks["one"].merged) == (
        True,
        "m2",
    )  # killed before its final record
    assert not landed.is_over("two")


@pytest.mark.req("SWM-15")
@pytest.mark.parametrize("status", CIRCUMSTANCES)
def test_what_circumstances_ended_runs_again_even_after_a_crash(status: TaskStatus) -> None:
    assert not recover([BEGAN, final("one", status)]).is_over("one")


@pytest.mark.req("SWM-15")
def test_a_verdict_on_the_work_stands_after_a_crash_but_not_after_an_end() -> None:
    crashed = [BEGAN, final("one", TaskStatus.VERIFY_FAILED)]
    assert recover(crashed).is_over("one")
    assert not recover([*crashed, RunEnded(status="failed", exit_code=3)]).is_over("one")


@pytest.mark.req("SWM-15")
def test_work_goes_on_from_its_commit_only_while_its_ticket_is_the_same() -> None:
    same = recover([BEGAN, *worked(content_key(PLAN.task[0], "b0"))]).tasks["one"].worked
    assert same is not None
    assert same.commit == "c1"
    assert recover([BEGAN, *worked("the key of another prompt")]).tasks["one"].worked is None
    again = AttemptStarted(task="one", attempt=2, key=content_key(PLAN.task[0], "b0"), base="b0")
    assert recover([BEGAN, *worked(content_key(PLAN.task[0], "b0")), again]).tasks["one"].worked is None


@pytest.mark.req("SWM-15")
def test_a_key_is_the_content_and_the_base_and_never_the_place() -> None:
    one, two = PLAN.task
    assert content_key(one, "b0") != content_key(one, "b1")
    assert content_key(one, "b0") != content_key(two.model_copy(update={"id": "one"}), "b0")
    assert content_key(one, "b0") == content_key(one.model_copy(), "b0")
