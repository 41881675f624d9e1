"""Questions to people: runs the approvals state machine, keeps the waiting calls and tells the interfaces (flow "An approval")."""

import asyncio
from collections.abc import Callable

from ..core.approval import ApprovalAnswer, ApprovalRequest
from ..core.chat import Question
from ..core.clock import Clock
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import ApprovalAnswered, ApprovalAsked, Event, Notice, QuestionAnswered, QuestionAsked
from ..core.ids import new_id
from ..core.permissions import Rule
from ..policy.grants import Grants, choices, proposal, shown_call
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
EARLIER = "an earlier answer"


class AskDesk:
    """Every question has an id of the hub's own, so that no agent's id can be answered for another's call.

    ``remember`` saves what a person always allows (APR-05); it may block. None = "always" counts for this session.
    """

    def __init__(
        self,
        emit: Callable[[Event], None],
        clock: Clock,
        timeout_s: float = 300.0,
        remember: Callable[[tuple[Rule, ...]], None] | None = None,
    ) -> None:
        self._emit, self._clock, self._timeout_s, self._remember = emit, clock, timeout_s, remember
        self._desk = Desk()
        self._grants = Grants()
        self._asked: dict[str, ApprovalAsked | QuestionAsked] = {}
        self._waiting: dict[str, asyncio.Future[Said]] = {}
        self._answer: Said = ""

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of the open questions, oldest first."""
        return tuple(p.id for p in self._desk.pending)

    async def approve(self, agent: str, request: ApprovalRequest) -> ApprovalAnswer:
        """A person's answer to this exact request, or ``no_answer`` with the reason as its note."""
        own = request.model_copy(update={"id": new_id(), "agent_id": agent})
        said: Said
        if self._grants.cover(own):
            said = _again(own)
        else:
            asked = ApprovalAsked(agent=agent, request=own)
            said = await self._ask(Pending(own.id, agent, own.digest, self._deadline()), asked)
        if not isinstance(said, ApprovalAnswer):
            said = ApprovalAnswer(decision="no_answer", digest=own.digest, note=str(said))
        if said.decision == "always" and said.by != EARLIER:
            await self._save(own)
        self._emit(
            ApprovalAnswered(
                agent=agent,
                request_id=own.id,
                answer=said,
                tool=own.tool,
                subject=shown_call(said.arguments or own.arguments),
            )
        )
        return said

    async def question(self, agent: str, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        """The user's texts in order; None when nobody answered."""
        id = new_id()
        asked = QuestionAsked(agent=agent, request_id=id, questions=questions)
        said = await self._ask(Pending(id, agent, "", self._deadline()), asked)
        texts = said if isinstance(said, tuple) else None
        self._emit(QuestionAnswered(agent=agent, request_id=id, answers=texts))
        return texts

    def answer(self, request_id: str, answer: ApprovalAnswer | tuple[str, ...]) -> None:
        """The first answer wins. Raises ``OpenDevError`` (usage) for one that is late, stale, wider than what was offered or
        of the wrong kind."""
        asked = self._asked.get(request_id)
        if asked is not None and isinstance(answer, tuple) is not isinstance(asked, QuestionAsked):
            raise _unfit(f"The answer to {request_id} is not of the kind that was asked for.")
        if isinstance(answer, tuple) or not isinstance(asked, ApprovalAsked):
            self._answer = answer
            self._step(Answered(request_id, "" if isinstance(answer, tuple) else answer.digest))
            return
        request = asked.request
        _check(request, answer)
        self._answer = answer
        # "Once" is for the call that was shown, also where others ask the same; so is a call that was changed.
        wide = answer.arguments is None and answer.decision != "once"
        self._step(Answered(request_id, answer.digest, wide))
        self._grants.note(request, answer)
        self._release()

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

    async def _ask(self, question: Pending, asked: ApprovalAsked | QuestionAsked) -> Said:
        loop = asyncio.get_running_loop()
        future = self._waiting[question.id] = loop.create_future()
        self._asked[question.id] = asked
        timer = loop.call_later(self._timeout_s, self._step, Tick(question.deadline))
        if not self._desk.attached:
            self._emit(asked)  # nobody can answer; what was asked is told all the same
        try:
            self._step(Asked(question))
            return await future
        finally:
            timer.cancel()
            self._step(Withdrawn(question.id))
            self._waiting.pop(question.id, None)
            self._asked.pop(question.id, None)

    def _release(self) -> None:
        """Answer what now needs no question any more (the answer just given covers it)."""
        for question in self._desk.pending:
            asked = self._asked.get(question.id)
            if isinstance(asked, ApprovalAsked) and self._grants.cover(asked.request):
                self._answer = _again(asked.request)
                self._step(Answered(question.id, question.digest))

    async def _save(self, request: ApprovalRequest) -> None:
        if self._remember is None:
            return
        try:
            await asyncio.to_thread(self._remember, proposal(request.tool, request.arguments))
        except OpenDevError as error:
            text = f"The rule could not be saved and counts for this session only: {error.info.sentence()}"
            self._emit(Notice(level="warning", text=text))

    def _step(self, event: approvals.Happening) -> None:
        self._desk, commands = approvals.step(self._desk, event)
        for command in commands:
            match command:
                case Show(id):
                    self._emit(self._asked[id])
                case Settle(id, answered, why):
                    self._settle(id, self._answer if answered else why)
                case Refuse(id, why):
                    raise _unfit(f"The answer to {id} does not count: {why}.")

    def _settle(self, id: str, said: Said) -> None:
        future = self._waiting.get(id)
        if future is not None and not future.done():
            future.set_result(said)


def _check(request: ApprovalRequest, answer: ApprovalAnswer) -> None:
    if answer.decision not in {*(choice.decision for choice in choices(request)), "no_answer"}:
        raise _unfit(f"{request.id} cannot be answered with `{answer.decision}`: that was not offered.")
    unchanged = answer.arguments is None or answer.arguments == request.arguments
    if request.must_edit and answer.allowed and unchanged:
        raise _unfit(f"{request.id} must be changed before it can be allowed.")
    if not unchanged and answer.decision not in ("once", "deny"):
        raise _unfit(f"{request.id}: a call that was changed can be allowed once only.")


def _again(request: ApprovalRequest) -> ApprovalAnswer:
    return ApprovalAnswer(decision="session", digest=request.digest, by=EARLIER)


def _unfit(message: str) -> OpenDevError:
    return OpenDevError(ErrorKind.USAGE, message)
