"""Gate and person: whether one call may run, and with which arguments (REG-09, APR-03, APR-07, SAF-09)."""

from dataclasses import dataclass
from typing import Any

from ..core.approval import ApprovalAnswer, ApprovalRequest, Keep
from ..core.clock import Clock, iso
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import GateDecided
from ..core.ids import new_id
from ..core.model import Frozen
from ..core.ports import Asker, EventSink
from ..core.tool import Effect, Tool, ToolContext
from ..policy.gate import Gate
from ..policy.grants import shown_call
from ..policy.verdict import Verdict, deny
from .schema import card, dump_args, parse_args

_SCOPE_LAYERS = frozenset({"paths", "scope"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Decides about the calls of one agent; ``agent`` is its type's name."""

    gate: Gate
    asker: Asker
    emit: EventSink
    clock: Clock
    agent: str

    def judge(self, tool: Tool[Any], args: Frozen, *, by_hook: bool = False) -> Verdict:
        """The gate's verdict; ``by_hook``: a hook of the user's allowed the call."""
        try:
            return self.gate.judge(tool, args, by_hook=by_hook)
        except Exception as error:  # noqa: BLE001 a gate that breaks must not be an open gate
            return deny("gate", f"the safety check itself failed ({type(error).__name__}: {error})")

    async def follow(
        self, verdict: Verdict, tool: Tool[Any], args: Frozen, ctx: ToolContext
    ) -> Frozen | ErrorInfo:
        """What ``verdict`` means: the arguments to run the call with, or why it does not run."""
        self._tell(verdict, tool, args, ctx)
        match verdict.decision:
            case "allow":
                return args
            case "deny":
                return _refused(tool.name, verdict)
            case "ask":
                return await self._ask(verdict, tool, args, ctx)

    def _tell(self, verdict: Verdict, tool: Tool[Any], args: Frozen, ctx: ToolContext) -> None:
        """Refusals and questions are events, and so is every command line that passes (APR-07)."""
        if verdict.decision == "allow" and not (Effect.EXEC in tool.effects and hasattr(args, "command")):
            return
        self.emit(
            GateDecided(
                agent=ctx.agent_id,
                at=iso(self.clock.now()),
                tool=tool.name,
                decision=verdict.decision,
                layer=verdict.layer,
                reason=verdict.reason,
                subject=shown_call(dump_args(args)),
                rule=verdict.rule,
            )
        )

    async def _ask(
        self, verdict: Verdict, tool: Tool[Any], args: Frozen, ctx: ToolContext
    ) -> Frozen | ErrorInfo:
        request = ApprovalRequest(
            id=new_id(),
            agent_id=ctx.agent_id,
            agent=self.agent,
            tool=tool.name,
            arguments=dump_args(args),
            reason=verdict.reason,
            card=card(tool, args),
            keep=self._keep(verdict, tool, args),
            must_edit=verdict.edit,
        )
        try:
            answer = await self.asker.approve(request)
        except Exception as error:  # noqa: BLE001 no decision could be had: not allowed (SAF-09)
            return _unanswered(tool.name, f" ({type(error).__name__}: {error})")
        if answer.decision == "no_answer":
            return _unanswered(tool.name, "")
        if not answer.allowed:
            return _denied(tool.name, "the user denied it", answer)
        if answer.digest != request.digest:
            return _denied(tool.name, "the answer was given for other arguments", answer)
        return self._as_answered(answer, request, tool, args, ctx)

    def _keep(self, verdict: Verdict, tool: Tool[Any], args: Frozen) -> Keep:
        try:
            return self.gate.keep(tool, args, verdict)
        except (OpenDevError, ValueError, OSError):
            return "once"

    def _as_answered(
        self,
        answer: ApprovalAnswer,
        request: ApprovalRequest,
        tool: Tool[Any],
        args: Frozen,
        ctx: ToolContext,
    ) -> Frozen | ErrorInfo:
        """The arguments as asked, or as the person changed them: those the gate judges again, so that it never runs what it
        refuses; a question about them is answered by the change itself."""
        if answer.arguments is None or answer.arguments == request.arguments:
            return (
                _denied(tool.name, "it had to be changed first, and was not", answer)
                if request.must_edit
                else args
            )
        try:
            changed = parse_args(tool, answer.arguments)
        except OpenDevError as error:
            return error.info
        verdict = self.judge(tool, changed)
        if verdict.decision != "deny":
            return changed
        self._tell(verdict, tool, changed, ctx)
        return _refused(tool.name, verdict)


def _refused(name: str, verdict: Verdict) -> ErrorInfo:
    """The refusal of a layer or rule, for the model."""
    return ErrorInfo(
        kind=ErrorKind.SCOPE if verdict.layer in _SCOPE_LAYERS else ErrorKind.DENIED,
        message=f"{name} was refused by a rule: {verdict.reason}",
        hint="Nothing was run. Do not repeat the call; take another way.",
    )


def _denied(name: str, why: str, answer: ApprovalAnswer) -> ErrorInfo:
    note = f" Note of the user: {answer.note}" if answer.note else ""
    return ErrorInfo(
        kind=ErrorKind.DENIED,
        message=f"{name} did not run: {why}.{note}",
        hint="Do not try the same call again; take another way or say what you need.",
    )


def _unanswered(name: str, why: str) -> ErrorInfo:
    return ErrorInfo(
        kind=ErrorKind.UNANSWERED,
        message=f"{name} did not run: it needs an approval and nobody answered{why}.",
        hint="The user did not decide about it. Go on without it, or finish and say what needs an approval.",
    )
