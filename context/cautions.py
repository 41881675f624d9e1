"""What makes a goal unfit to be worked on unseen: it cannot be checked, it is a matter of taste, or it needs a person's eye (BLG-19)."""

import re

WIDE = 10  # files a change may touch before a person should watch it
_VAGUE = re.compile(
    r"\b(improve|enhance|better|nicer|clean(er)?( ?up)?|tidy|moderni[sz]e|polish|robust|more readable|production[- ]ready)\b", re.I
)  # fmt: skip
_TASTE = re.compile(
    r"\b(beautiful|pretty|prettier|elegant|attractive|intuitive|delightful|user[- ]friendly|look(s)? (good|great|nice)|engaging)\b",
    re.I,
)
_SPEED = re.compile(
    r"\b(perform(s|ance)|faster|speed( it)? ?up|latency|throughput|optimi[sz]e|memory usage)\b", re.I
)
# A name, a path, a quotation or a number: something a check can take hold of.
_ANCHOR = re.compile(r"[`\"']|\w[./_]\w|\w::\w|[a-z][A-Z]|\d|\w\(\)")


def cautions(goal: str) -> tuple[str, ...]:
    """Sentences about ``goal``; empty when nothing speaks against starting."""
    found: list[str] = []
    if (word := _VAGUE.search(goal)) and not _ANCHOR.search(goal):
        found.append(f"`{word[0]}` names no result that can be checked")
    if word := _TASTE.search(goal):
        found.append(f"`{word[0]}` is a matter of taste, which a person decides")
    if word := _SPEED.search(goal):
        found.append(f"`{word[0]}` is work that only a measurement before and after can judge")
    return tuple(found)
