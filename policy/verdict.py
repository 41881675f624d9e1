"""A verdict on one call, and the order in which verdicts join: allow < ask < deny."""

from collections.abc import Iterable
from typing import Literal

from ..core.model import Frozen

Decision = Literal["allow", "ask", "deny"]
_RANK: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}


class Verdict(Frozen):
    """What one safety layer says, and why. ``layer`` names the layer, ``reason`` is a sentence for model and person.

    ``rule`` is the rule of permissions.json that decided; ``edit``: a person has to change the call before it runs (APR-03).
    """

    decision: Decision
    layer: str
    reason: str = ""
    rule: str = ""
    edit: bool = False

    @property
    def rank(self) -> int:
        """Severity: 0 allow, 1 ask, 2 deny."""
        return _RANK[self.decision]


ALLOW = Verdict(decision="allow", layer="", reason="")


def allow(layer: str, reason: str = "") -> Verdict:
    """The layer has no objection."""
    return Verdict(decision="allow", layer=layer, reason=reason)


def ask(layer: str, reason: str) -> Verdict:
    """A person must decide."""
    return Verdict(decision="ask", layer=layer, reason=reason)


def deny(layer: str, reason: str) -> Verdict:
    """The call may not run, whoever would allow it."""
    return Verdict(decision="deny", layer=layer, reason=reason)


def join(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe verdict; among equals the first, of those that allow the first with a rule. No verdict at all = allow.

    A rule of a lower layer can so never undo a refusal of another (SAF-01: layers are independent). Of several questions
    one that wants the call changed makes the joined one want it too.
    """
    worst, edit = ALLOW, False
    for verdict in verdicts:
        edit = edit or verdict.edit
        named = verdict.rank == worst.rank == 0 and verdict.rule and not worst.rule
        if verdict.rank > worst.rank or worst is ALLOW or named:
            worst = verdict
    return worst.model_copy(update={"edit": True}) if edit and worst.decision == "ask" else worst
