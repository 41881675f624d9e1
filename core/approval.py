"""Approvals: the levels, a request bound to a digest of the exact arguments, and its answer."""

import hashlib
from enum import StrEnum
from typing import Literal

from .chat import canonical
from .model import Frozen, JsonObject


class ApprovalLevel(StrEnum):
    """How much passes without asking (APR-01)."""

    MANUAL = "manual"
    SEMI_AUTO = "semi-auto"
    AUTO = "auto"


class Mode(StrEnum):
    """Plan mode refuses every tool that is not read-only (REG-06)."""

    NORMAL = "normal"
    PLAN = "plan"


Keep = Literal["once", "session", "always"]


class ApprovalRequest(Frozen):
    """A question to a person. ``card`` is what is shown, control characters escaped by whoever draws it.

    ``keep`` is the widest scope an answer may have (APR-06). ``must_edit``: it counts only with other arguments (APR-03).
    """

    id: str
    agent_id: str
    agent: str
    tool: str
    arguments: JsonObject
    reason: str
    card: str
    keep: Keep = "once"
    must_edit: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of tool and exact arguments: an answer counts only for this digest."""
        return hashlib.sha256(canonical([self.tool, self.arguments]).encode()).hexdigest()


class ApprovalAnswer(Frozen):
    """``no_answer`` is a denial that is told as "nobody answered", never as "the user denied".

    ``arguments``: what the person made of the call; None = as it was asked.
    """

    decision: Literal["once", "session", "always", "deny", "no_answer"]
    digest: str
    arguments: JsonObject | None = None
    by: str = ""
    note: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the call may run."""
        return self.decision in ("once", "session", "always")
