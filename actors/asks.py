"""Questions to people: runs the approvals state machine, keeps the waiting calls and tells the interfaces (flow "An approval")."""

import asyncio
from collections.abc import Callable

from ..core.approval import ApprovalAnswer, ApprovalRequest
from ..core.chat import Question
from ..core.clock import Clock
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import ApprovalAnswered, ApprovalAsked, Event, QuestionAnswered, QuestionAsked
from ..core.ids import new_id
from .state import approvals
from .state.approvals import (
    AgentGone,
    Answered,
    Asked,
    Attached,
    Desk,
    HubLost,
    Pending,
    Refuse,
    Settle,
    Show,
    Tick,
    Withdrawn,
)

Said = ApprovalAnswer | tuple[str, ...] | str  # a person's answer, or the sentence why there is none


class AskDesk:
    """Every question has an id of the hub's own, so that no agent's id can be answered for another's call."""

    def __init__(self, *, emit: Callable[[Event], None], clock: Clock, timeout_s: float = 300.0) -> None:
        self._emit, self._clock, self._timeout_s = emit, clock, timeout_s
        self._desk = Desk()
        self._shown: dict[str, Event] = {}
        self._waiting: dict[str, asyncio.Future[Said]] = {}
        self._answer: Said = ""

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of the open questions, oldest first."""
        return tuple(p.id for p in self._desk.pending)

    async def approve(self, agent: str, request: ApprovalRequest) -> ApprovalAnswer:
        """A person's answer to this exact request, or ``no_answer`` with the reason as its note."""
        own = request.model_copy(update={"id": new_id(), "agent_id": agent})
        shown = ApprovalAsked(agent=agent, request=own)
        said = await self._ask(Pending(own.id, agent, own.digest, self._deadline()), shown)
        if not isinstance(said, ApprovalAnswer):
            said = ApprovalAnswer(decision="no_answer", digest=own.digest, note=str(said))
        self._emit(ApprovalAnswered(agent=agent, request_id=own.id, answer=said))
        return said

    async def question(self, agent: str, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        """The user's texts in order; None when nobody answered."""
        id = new_id()
        shown = QuestionAsked(agent=agent, request_id=id, questions=questions)
        said = await self._ask(Pending(id, agent, "", self._deadline()), shown)
        texts = said if isinstance(said, tuple) else None
        self._emit(QuestionAnswered(agent=agent, request_id=id, answers=texts))
        return texts

    def answer(self, request_id: str, answer: ApprovalAnswer | tuple[str, ...]) -> None:
        """The first answer wins. Raises ``OpenDevError`` (usage) for one that is late, stale or of the wrong kind."""
        shown = self._shown.get(request_id)
        if shown is not None and isinstance(answer, tuple) is not isinstance(shown, QuestionAsked):
            raise OpenDevError(
                ErrorKind.USAGE, f"The answer to {request_id} is not of the kind that was asked for."
            )
        self._answer = answer
        digest = "" if isinstance(answer, tuple) else answer.digest
        self._step(Answered(request_id, digest))

    def attach(self) -> Callable[[], None]:
        """An interface that can answer is there; call the result once when it leaves."""
        self._step(Attached(1))
        left: list[bool] = []

        def detach() -> None:
            if not left:
                left.append(True)
                self._step(Attached(-1))

        return detach

    def abandon(self, agent: str) -> None:
        """The agent ended: its questions are moot."""
        self._step(AgentGone(agent))

    def close(self) -> None:
        """Nobody will answer any more."""
        self._step(HubLost())

    def _deadline(self) -> float:
        return self._clock.monotonic() + self._timeout_s

    async def _ask(self, question: Pending, shown: Event) -> Said:
        loop = asyncio.get_running_loop()
        future = self._waiting[question.id] = loop.create_future()
        self._shown[question.id] = shown
        timer = loop.call_later(self._timeout_s, self._step, Tick(question.deadline))
        self._emit(shown)
        self._step(Asked(question))
        try:
            return await future
        finally:
            timer.cancel()
            self._step(Withdrawn(question.id))
            self._waiting.pop(question.id, None)
            self._shown.pop(question.id, None)

    def _step(self, event: approvals.Happening) -> None:
        self._desk, commands = approvals.step(self._desk, event)
        for command in commands:
            match command:
                case Show():
                    pass  # the event went out before: interfaces draw from events
                case Settle(id, answered, why):
                    self._settle(id, self._answer if answered else why)
                case Refuse(id, why):
                    raise OpenDevError(ErrorKind.USAGE, f"The answer to {id} does not count: {why}.")

    def _settle(self, id: str, said: Said) -> None:
        future = self._waiting.get(id)
        if future is not None and not future.done():
            future.set_result(said)
