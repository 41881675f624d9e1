"""All a user interface may ask of the hub."""

from typing import Annotated, Literal

from pydantic import Field

from .approval import ApprovalAnswer
from .model import Frozen

COMPACT = "/compact"  # typed while an agent works it is a command, not a message (CMP-15)


class Prompt(Frozen):
    """Text for the main agent; while it works, the text is injected at the next boundary (LOOP-19)."""

    kind: Literal["prompt"] = "prompt"
    text: str


class Interrupt(Frozen):
    """Stop what runs. Empty ``agent_id`` = everything."""

    kind: Literal["interrupt"] = "interrupt"
    agent_id: str = ""


class AnswerApproval(Frozen):
    """Answer a pending approval. The first answer wins; a stale digest is refused."""

    kind: Literal["answer_approval"] = "answer_approval"
    request_id: str
    answer: ApprovalAnswer


class AnswerQuestion(Frozen):
    """Answer a pending question."""

    kind: Literal["answer_question"] = "answer_question"
    request_id: str
    texts: tuple[str, ...]


Op = Annotated[Prompt | Interrupt | AnswerApproval | AnswerQuestion, Field(discriminator="kind")]
