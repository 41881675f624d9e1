"""The one handle a worker holds: model, people, sub-agents, events and compaction, all by mail to the hub (ACT-04, ACT-08)."""

import asyncio
from collections.abc import Callable

from ..core.agent import AgentReport, SpawnRequest
from ..core.approval import ApprovalAnswer, ApprovalRequest
from ..core.chat import Message, ModelFailed, ModelReply, ModelRequest, Question, Role
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import Event
from ..core.mail import (
    Answer,
    AskApproval,
    AskRoster,
    AskUser,
    Body,
    CollectOutput,
    Compact,
    CostReport,
    Failed,
    ModelAnswer,
    ModelCall,
    Progress,
    Result,
    Spawn,
    Summary,
)
from ..core.ports import Ref
from ..llm.roles import model_for
from .outbox import Outbox

MODEL_TRIES = 3  # of a model service that is being restarted


class Uplink:
    """Implements the ports ``ModelClient``, ``Asker``, ``Spawner``, ``EventSink`` and ``Compactor`` for one agent.

    ``model`` is the model service beside the agent; None = model calls go through the hub. ``models``: the task's roles.
    """

    def __init__(
        self,
        outbox: Outbox,
        *,
        model: Ref | None = None,
        models: dict[Role, str] | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        self._outbox = outbox
        self._model = model
        self._models = models or {}
        self._scopes = scopes

    def __call__(self, event: Event) -> None:
        """Take an event; never blocks."""
        self._outbox.put(Progress(event=event))

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        """Call the model and report what it cost (ACT-14). A failure is a value."""
        await self._outbox.room()
        if self._model is None:
            reply = await self._by_mail(request)
        else:
            reply = await self._direct(self._model, request, on_delta)
        self._outbox.put(CostReport(usage=reply.usage))
        return reply

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """A person's answer; a hub that cannot be reached is "no answer", which denies."""
        answer = await self._outbox.ask(AskApproval(request=request))
        if isinstance(answer, Answer) and answer.approval is not None:
            return answer.approval
        return ApprovalAnswer(decision="no_answer", digest=request.digest, note=_why(answer))

    async def question(self, questions: tuple[Question, ...]) -> tuple[str, ...] | None:
        """The user's answers in order; None when nobody answered."""
        answer = await self._outbox.ask(AskUser(questions=questions))
        return answer.texts if isinstance(answer, Answer) else None

    async def spawn(self, request: SpawnRequest) -> AgentReport | str | ErrorInfo:
        """Start a sub-agent through the broker: its report, a background agent's id, or why not."""
        return _result(await self._outbox.ask(Spawn(request=request)))

    async def output(self, agent_id: str, wait_s: float) -> AgentReport | str | ErrorInfo:
        """The report of a background sub-agent, its id while it runs, or an error."""
        return _result(await self._outbox.ask(CollectOutput(agent_id=agent_id, wait_s=wait_s)))

    async def summarise(self, messages: tuple[Message, ...], artifacts: str) -> str | ErrorInfo:
        """A summary by the compactor actor with the compact model (ACT-13); an error makes the caller prune instead."""
        try:
            model = model_for(Role.COMPACT, self._models, _blind)
        except OpenDevError as error:
            return error.info
        letter = Compact(messages=messages, artifacts=artifacts, model=model, scopes=self._scopes)
        answer = await self._outbox.ask(letter)
        return answer.text if isinstance(answer, Summary) else _error(answer)

    async def roster(self) -> str:
        """The agent's sub-agents, one a line; empty when it has none or the hub cannot be reached."""
        answer = await self._outbox.ask(AskRoster())
        return answer.text if isinstance(answer, Summary) else ""

    async def finish(self, report: AgentReport) -> None:
        """Hand the report in after every earlier letter, so that no event comes after the agent's end."""
        await self._outbox.ask(Result(report=report))

    async def _by_mail(self, request: ModelRequest) -> ModelReply | ModelFailed:
        answer = await self._outbox.ask(ModelCall(request=request))
        return answer.reply if isinstance(answer, ModelAnswer) else ModelFailed(error=_error(answer))

    async def _direct(
        self, model: Ref, request: ModelRequest, on_delta: Callable[[str], None] | None
    ) -> ModelReply | ModelFailed:
        told = ErrorInfo(kind=ErrorKind.INFRA, message="The model service gave no answer.")
        for attempt in range(MODEL_TRIES):
            try:
                if on_delta is None or not request.stream:
                    return await model.ask("complete", request)
                return await _streamed(model, request, on_delta)
            except OpenDevError as error:
                told = error.info
                if (
                    told.kind is not ErrorKind.INFRA or request.stream
                ):  # half an answer may be on the screen already
                    break
                await asyncio.sleep(0.1 * 3**attempt)
        return ModelFailed(error=told)


async def _streamed(
    model: Ref, request: ModelRequest, on_delta: Callable[[str], None]
) -> ModelReply | ModelFailed:
    async for item in model.stream("stream", request):
        if not isinstance(item, str):
            return item
        on_delta(item)
    return ModelFailed(
        error=ErrorInfo(kind=ErrorKind.MODEL, message="The model's stream ended without an answer.")
    )


def _blind(_model: str) -> bool:
    return False


def _error(answer: Body) -> ErrorInfo:
    if isinstance(answer, Failed):
        return answer.error
    return ErrorInfo(
        kind=ErrorKind.INTERNAL, message=f"The hub answered with {answer.kind}, which does not fit."
    )


def _why(answer: Body) -> str:
    return answer.error.sentence() if isinstance(answer, Failed) else "nobody answered"


def _result(answer: Body) -> AgentReport | str | ErrorInfo:
    if not isinstance(answer, Result):
        return _error(answer)
    return answer.report if answer.report is not None else answer.running
