"""Goals that should not be worked on unseen, and those that may (BLG-19)."""

import pytest
from opendev.context.cautions import cautions


@pytest.mark.req("BLG-19")
@pytest.mark.parametrize(
    ("goal", "word"),
    [
        ("Improve the code.", "`Improve`"),
        ("Please clean up everything", "`clean up`"),
        ("Make the site look nice", "taste"),
        ("A more user-friendly settings page", "taste"),
        ("Make start-up faster", "measurement"),
        ("Optimise `parse` in a.py", "measurement"),  # a name does not replace a measurement
    ],
)
def test_what_nothing_can_check_is_named(goal: str, word: str) -> None:
    assert any(word in caution for caution in cautions(goal)), cautions(goal)


@pytest.mark.req("BLG-19")
@pytest.mark.parametrize(
    "goal",
    [
        "Rename HttpClient to ApiClient everywhere.",
        "Improve `parse`: it must accept 1e3.",
        "Fix the failing test.",
        "Clean up tests/net/test_http.py: one assertion a test.",
        "Port the CLI to typer.",
        "",
        "x" * 100_000,
    ],
)
def test_a_goal_that_can_be_judged_is_left_alone(goal: str) -> None:
    assert cautions(goal) == ()
