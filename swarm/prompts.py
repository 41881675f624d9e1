"""The texts sent to ticket agents and reviewers, filled from ``templates/swarm``."""

import json
import re
from pathlib import Path
from string import Template
from typing import cast

from ..core.model import JsonObject
from ..core.ticket import ReviewOutcome, Ticket

_TEMPLATES = Path(__file__).parent.parent / "templates" / "swarm"
DIFF_CHARS = 40_000
DETAIL_CHARS = 8_000
MAX_FINDINGS = 50
_VERDICT = re.compile(r"^```verdict[ \t]*\n(.*?)\n```[ \t]*$", re.MULTILINE | re.DOTALL)


def ticket_prompt(ticket: Ticket, attempt: int, feedback: str) -> str:
    """What the agent of a ticket is told: its four parts, and the output that made the last attempt fail."""
    told = ""
    if feedback:
        told = _fill("feedback.md", attempt=str(attempt - 1), detail=_cut(feedback, DETAIL_CHARS))
    return _fill(
        "ticket.md",
        goal=ticket.goal,
        scope=", ".join(ticket.scope) or "anything the goal needs",
        avoid=", ".join(ticket.avoid) or "nothing in particular",
        verify=f"`{ticket.verify}` must exit 0 in a clean checkout."
        if ticket.verify
        else "no command is given.",
        done=ticket.done or "the goal is true.",
        feedback=told,
    )


def review_prompt(ticket: Ticket, files: tuple[str, ...], diff: str) -> str:
    """What a reviewer is told; a long diff is cut in the middle, which the text says."""
    return _fill(
        "review.md",
        goal=ticket.goal,
        scope=", ".join(ticket.scope) or "anything",
        avoid=", ".join(ticket.avoid) or "nothing in particular",
        done=ticket.done or "the goal is true.",
        files=", ".join(files[:100]),
        diff=_cut(diff, DIFF_CHARS),
    )


def read_verdict(agent: str, text: str) -> ReviewOutcome:
    """The verdict of a reviewer's answer. No block, two blocks or one that cannot be read is a rejection that says so."""
    blocks = _VERDICT.findall(text)
    if len(blocks) != 1:
        return _unreadable(agent, f"its answer holds {len(blocks)} verdict blocks instead of one")
    try:
        value = json.loads(blocks[0])
    except (json.JSONDecodeError, RecursionError):
        return _unreadable(agent, "its verdict block is not JSON")
    if not isinstance(value, dict):
        return _unreadable(agent, "its verdict block is not an object")
    fields = cast("JsonObject", value)
    verdict, findings = fields.get("verdict"), fields.get("findings", [])
    if verdict not in ("approve", "reject") or not isinstance(findings, list):
        return _unreadable(agent, "its verdict is neither approve nor reject")
    items = [
        cast("JsonObject", item) if isinstance(item, dict) else {"text": str(item)}
        for item in cast("list[object]", findings)[:MAX_FINDINGS]
    ]
    return ReviewOutcome(agent=agent, verdict=verdict, findings=tuple(items))


def rejection(agent: str, why: str) -> ReviewOutcome:
    """A reviewer that did not come to a verdict."""
    return ReviewOutcome(agent=agent, verdict="reject", findings=({"text": why},))


def _unreadable(agent: str, why: str) -> ReviewOutcome:
    return rejection(agent, f"The verdict of {agent} cannot be used: {why}.")


def _fill(name: str, **values: str) -> str:
    return Template((_TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - limit} characters left out ...]\n{text[-half:]}"
