"""Exit codes: one cause each, combined for a batch by a fixed rule (cli.md)."""

from itertools import permutations

import pytest
from opendev.core.errors import ErrorKind, OpenDevError, exit_of
from opendev.core.exits import Exit, combine
from opendev.core.ticket import TASK_EXIT, TaskStatus


@pytest.mark.parametrize(
    ("codes", "whole"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 1], 1),
        ([1, 3], 3),
        ([3, 4, 0], 4),
        ([4, 5], 5),
        ([5, 6, 1], 6),
        ([6, 7], 7),
        ([7, 130], 130),
        ([0, 130, 1], 130),
        ([130], 130),
        ([2, 1], 2),
    ],
)
def test_the_highest_cause_wins_and_interrupted_above_all(codes: list[int], whole: int) -> None:
    for order in permutations(codes):
        assert combine(Exit(code) for code in order) == whole


def test_every_kind_of_error_has_its_exit() -> None:
    assert {kind.value: int(exit_of(kind)) for kind in ErrorKind} == {
        "usage": 2,
        "config": 2,
        "model": 6,
        "rate_limit": 6,
        "auth": 6,
        "context": 1,
        "budget": 5,
        "git": 6,
        "conflict": 4,
        "verify": 3,
        "setup": 1,
        "scope": 1,
        "denied": 1,
        "unanswered": 7,
        "timeout": 1,
        "cancelled": 130,
        "infra": 6,
        "tool": 1,
        "not_found": 1,
        "internal": 1,
    }


def test_every_status_of_a_ticket_has_its_exit_and_only_merged_is_success() -> None:
    assert set(TASK_EXIT) == set(TaskStatus)
    assert [status for status, code in TASK_EXIT.items() if code is Exit.DONE] == [TaskStatus.MERGED]


def test_an_error_is_one_sentence_and_survives_a_copy() -> None:
    error = OpenDevError(ErrorKind.GIT, "git failed.", "Look at it.")
    assert str(error) == error.info.sentence() == "git failed. Look at it."
    assert type(error)(*error.args).info == error.info
