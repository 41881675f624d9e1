"""Prompts and verdicts: what cannot be read is a rejection."""

import json

import pytest
from opendev.swarm.prompts import DIFF_CHARS, MAX_FINDINGS, read_verdict, review_prompt, ticket_prompt
from support.fake_swarm import plan

TICKET = plan(
    {"id": "a", "scope": ["src/**"], "avoid": ["x"], "verify": "make t", "done": "Green $HOME."}
).task[0]


def fenced(value: str) -> str:
    return f"I looked.\n\n```verdict\n{value}\n```\n"


def test_a_ticket_prompt_has_the_four_parts_and_the_last_failure() -> None:
    first = ticket_prompt(TICKET, 1, "")
    for part in ("Goal: Do a.", "touch: src/**", "not touch: x", "`make t` must exit 0", "Green $HOME."):
        assert part in first
    again = ticket_prompt(TICKET, 2, "boom $x")
    assert "earlier attempt (number 1)" in again
    assert "boom $x" in again


def test_a_long_diff_is_cut_in_the_middle() -> None:
    prompt = review_prompt(TICKET, ("a",), "A" * DIFF_CHARS + "Z" * DIFF_CHARS)
    assert f"[... {DIFF_CHARS} characters left out ...]" in prompt
    assert len(prompt) < DIFF_CHARS + 3_000


@pytest.mark.req("SWM-12")
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (fenced('{"verdict": "approve", "findings": []}'), "approve"),
        (fenced('{"verdict": "approve"}'), "approve"),
        (fenced('{"verdict": "reject", "findings": ["x"]}'), "reject"),
        (fenced('{"verdict": "Approve"}'), "reject"),
        (fenced('{"verdict": true}'), "reject"),
        (fenced("approve"), "reject"),
        (fenced("[]"), "reject"),
        (fenced("[" * 100_000), "reject"),
        (fenced('{"verdict": "approve", "findings": 3}'), "reject"),
        (fenced('{"verdict": "approve"}') * 2, "reject"),
        ('{"verdict": "approve"}', "reject"),
        ("", "reject"),
    ],
)
def test_verdicts(text: str, verdict: str) -> None:
    found = read_verdict("PR-Reviewer", text)
    assert found.verdict == verdict
    assert found.findings or verdict == "approve"


def test_findings_are_bounded() -> None:
    many = json.dumps({"verdict": "reject", "findings": [{"text": "x"}] * 500})
    assert len(read_verdict("R", fenced(many)).findings) == MAX_FINDINGS
