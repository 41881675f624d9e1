"""One turn's tool calls through every gate, to exactly one result each, in call order (REG-09, LOOP-11, T-18).

The order for one call: name and allow-list → arguments → hooks → gate, on the call as the hooks left it → a person, when
the gate asks → the tool → redaction → offload → hooks → event and message. One call that fails, whatever the reason, never
costs another its result.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.chat import ToolCall, ToolMessage
from ..core.clock import Clock, iso
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import ToolFinished, ToolStarted
from ..core.model import Frozen
from ..core.ports import Asker, EventSink
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from ..policy.gate import Gate
from ..policy.hooks import questioned
from ..policy.redact import redact
from ..policy.verdict import Verdict, deny
from .hooked import AgentHooks
from .mcp.early import settle
from .offload import Offloader
from .outcomes import crashed, failed, for_event
from .permit import Permit
from .registry import ToolRegistry
from .schema import dump_args, parse_args
from .subagent_result import fit
from .summarise import EMPTY, FAILED, summarise


@dataclass(slots=True)
class DispatchStats:
    """Counts over the life of one agent."""

    tool_calls: int = 0  # calls that got a result, refused ones included
    failed: int = 0
    denied: int = 0
    unanswered: int = 0  # needed a person, and nobody answered


@dataclass(slots=True)
class _Job:
    """One call on its way. ``result`` is set as soon as it is decided that the call does not run."""

    index: int
    call: ToolCall
    ctx: ToolContext
    tool: Tool[Any] | None = None
    args: Frozen = field(default_factory=Frozen)
    result: ToolResult | None = None
    notes: tuple[str, ...] = ()  # of hooks, for the agent


@dataclass(kw_only=True)
class Dispatcher:
    """Runs the tool calls of one agent. ``agent`` is the agent's type name, ``make_context`` gives the ports of one call.

    ``changed`` are the root-relative paths that calls changed so far; ``last_failure`` and ``denied`` describe the latest
    ``run``: the last failed call, and whether a rule or a person refused one.
    """

    registry: ToolRegistry
    gate: Gate
    make_context: Callable[[str], ToolContext]
    asker: Asker
    emit: EventSink
    clock: Clock
    agent: str
    max_parallel: int = 5
    hooks: AgentHooks | None = None
    known: tuple[str, ...] = ()  # secret values of the project, which no result shows
    on_result: Callable[[ToolResult], None] | None = (
        None  # is told each result as the tool gave it, data included
    )
    persist: Callable[[ToolMessage], Awaitable[None]] | None = (
        None  # makes a result durable before the event that draws it (ARC-02)
    )
    stats: DispatchStats = field(default_factory=DispatchStats)
    changed: set[str] = field(default_factory=set[str])
    last_failure: ErrorInfo | None = None
    denied: bool = False
    nested: bool = False  # it runs the calls of a batch
    inner: list[tuple[ToolCall, ToolMessage]] = field(
        default_factory=list[tuple[ToolCall, ToolMessage]]
    )  # calls that batches of the latest ``run`` made, with their results
    _slots: list[ToolMessage | None] = field(default_factory=list["ToolMessage | None"])
    _reports: list[int] = field(default_factory=list[int])  # slots with reports of sub-agents

    async def run(self, calls: Sequence[ToolCall]) -> tuple[ToolMessage, ...]:
        """The results of ``calls``, one for each, in call order.

        Neighbouring read-only calls run at once (at most ``max_parallel``), neighbouring spawns all at once, every other
        call alone; so each call sees what the calls before it did. Approvals are asked one at a time, in call order.
        Cancelling this coroutine cancels what runs and raises ``CancelledError``; the results that were in by then are in
        ``finished``, and the caller gives the other calls a synthetic result (T-18).
        """
        self.last_failure, self.denied, self.inner = None, False, []
        await settle(calls, self.registry, self.make_context)
        self._slots = [None] * len(calls)
        self._reports = []
        for start, end, limit in self._batches(calls):
            await self._run_batch([self._job(i, calls[i]) for i in range(start, end)], limit)
        return self.finished

    @property
    def finished(self) -> tuple[ToolMessage, ...]:
        """The results of the latest ``run`` that are in, in call order; reports of sub-agents share one cap."""
        reports = {i: message for i in self._reports if (message := self._slots[i]) is not None}
        texts = fit([message.content for message in reports.values()])
        for (index, message), text in zip(reports.items(), texts, strict=True):
            self._slots[index] = message.model_copy(update={"content": text})
        return tuple(message for message in self._slots if message is not None)

    def _batches(self, calls: Sequence[ToolCall]) -> list[tuple[int, int, int]]:
        """Ranges of calls that may run at once, with the number of them that run at the same time."""
        batches: list[tuple[int, int, int]] = []
        previous = ""
        for index, call in enumerate(calls):
            kind = self._kind(call)
            if kind == previous and kind != "write":
                start, _, limit = batches[-1]
                batches[-1] = (start, index + 1, limit if kind == "read" else index + 1 - start)
            else:
                batches.append((index, index + 1, self.max_parallel if kind == "read" else 1))
            previous = kind
        return batches

    def _kind(self, call: ToolCall) -> str:
        tool = self.registry.resolve(call.name)
        if isinstance(tool, ErrorInfo) or tool.read_only:
            return "read"
        return "spawn" if tool.effects <= {Effect.SPAWN, Effect.READ} else "write"

    def _job(self, index: int, call: ToolCall) -> _Job:
        ctx = self.make_context(call.id)
        return _Job(index=index, call=call, ctx=ctx if self.nested else replace(ctx, inner=self._inner))

    async def _inner(
        self, calls: Sequence[ToolCall], *, parallel: bool, stop: bool
    ) -> tuple[ToolMessage, ...]:
        """The calls of a batch, each through every gate like a call of its own (BAT-02); ``core.tool.InnerCalls``."""
        below = replace(self, nested=True, last_failure=None, denied=False, inner=[], _slots=[], _reports=[])
        done: list[ToolMessage] = []
        try:
            for some in [calls] if parallel else [[call] for call in calls]:
                done += await below.run(some)
                if stop and done[-1].is_error:
                    break
        finally:
            self.denied = self.denied or below.denied
            self.inner += zip(calls, done, strict=False)
        skipped = "Error: not run: a call before it failed."
        return (
            *done,
            *(
                ToolMessage(call_id=call.id, name=call.name, content=skipped, is_error=True, summary=skipped)
                for call in calls[len(done) :]
            ),
        )

    async def _run_batch(self, jobs: list[_Job], limit: int) -> None:
        for job in jobs:
            await self._prepare(job)
        slots = asyncio.Semaphore(limit)
        keys = {key for job in jobs if job.tool for key in _keys(job.tool, job.args)}
        locks = {key: asyncio.Lock() for key in keys}
        await asyncio.gather(*(self._finish(job, slots, locks) for job in jobs))

    async def _prepare(self, job: _Job) -> None:
        """Everything before the tool itself: ``job.result`` is set when it must not run."""
        call = job.call
        tool = self.registry.resolve(call.name)
        if isinstance(tool, ErrorInfo):
            job.result = failed(tool)
            return
        job.tool = tool
        if self.registry.is_deferred(tool.name):
            job.ctx.memo.activated.add(tool.name)  # a direct call discovers (MCP-06)
        if call.problem:
            why = f"The call of {tool.name} did not run: its arguments could not be read: {call.problem}"
            job.result = ToolResult.failure(
                why, "Send the whole call again as valid JSON; if it was cut off, in smaller parts."
            )
            return
        try:
            job.args = parse_args(tool, call.arguments)
        except OpenDevError as error:
            job.result = failed(error.info)
            return
        refusal = _interrupted(job) or await self._permit(tool, job)
        if refusal is not None:
            job.result = failed(refusal)

    async def _permit(self, tool: Tool[Any], job: _Job) -> ErrorInfo | None:
        """Hooks, gate and person. None = the call may run."""
        permit = Permit(gate=self.gate, asker=self.asker, emit=self.emit, clock=self.clock, agent=self.agent)
        verdict = await self._verdict(tool, job, permit)
        found = await permit.follow(verdict, tool, job.args, job.ctx)
        if isinstance(found, ErrorInfo):
            return found
        if found is not job.args and self.hooks is not None:
            return await self._hooked_again(tool, job, found, permit)
        job.args = found
        return _interrupted(job)

    async def _hooked_again(
        self, tool: Tool[Any], job: _Job, changed: Frozen, permit: Permit
    ) -> ErrorInfo | None:
        """A person changed the call: its hooks are asked about what they made of it, for no prompt overrides them (HOK-04)."""
        job.args = changed
        verdict = await self._verdict(tool, job, permit)
        if verdict.decision != "deny" and job.args is not changed:
            verdict = deny("hook", "a hook changes what the user made of the call.")
        if verdict.decision == "deny":
            found = await permit.follow(verdict, tool, job.args, job.ctx)
            return found if isinstance(found, ErrorInfo) else None
        return _interrupted(job)

    async def _verdict(self, tool: Tool[Any], job: _Job, permit: Permit) -> Verdict:
        """The gate judges the call as the hooks left it: none of them can take a refusal back (HOK-08)."""
        if self.hooks is None:
            return permit.judge(tool, job.args)
        try:
            before = await self.hooks.before(tool, job.args)
        except Exception as error:  # noqa: BLE001 a safety layer that breaks refuses (SAF-09)
            return deny("hook", f"its hooks could not be asked ({type(error).__name__}: {error})")
        job.args, job.notes = before.args, before.notes
        if before.refused:
            return deny("hook", before.refused)
        return questioned(permit.judge(tool, job.args, by_hook=before.allowed), before.question)

    async def _finish(self, job: _Job, slots: asyncio.Semaphore, locks: dict[str, asyncio.Lock]) -> None:
        started = self.clock.monotonic()
        result, ran = job.result, job.result is None
        if result is None and job.tool is not None:
            async with AsyncExitStack() as stack:
                # Sorted, so that two calls which share keys cannot wait for each other; the slot last, so that a
                # call which waits for a key holds none.
                for key in sorted(_keys(job.tool, job.args)):
                    await stack.enter_async_context(locks[key])
                await stack.enter_async_context(slots)
                started = self.clock.monotonic()
                result = await self._execute(job.tool, job)
        if result is None:
            result = ToolResult.failure(f"{job.call.name} did not run.", kind=ErrorKind.INTERNAL)
        text = "\n\n".join((await self._present(job, result), *job.notes))
        if self.hooks is not None and job.tool is not None and ran:
            self.hooks.after(job.tool, job.args, result, redact(result.text, self.known))
        summary = redact(summarise(job.tool.name if job.tool else job.call.name, result), self.known)
        message = self._slots[job.index] = ToolMessage(
            call_id=job.call.id, name=job.call.name, content=text, is_error=not result.ok, summary=summary
        )
        if job.tool is not None and job.tool.reports:
            self._reports.append(
                job.index
            )  # on file already (the broker's inbox), and its text may yet be cut
        elif self.persist is not None and not self.nested:
            await self.persist(message)
        self._account(result)
        self._emit_finished(job, result, summary, self.clock.monotonic() - started)

    async def _execute(self, tool: Tool[Any], job: _Job) -> ToolResult:
        refusal = _interrupted(job)
        if refusal is not None:
            return failed(refusal)
        self.emit(
            ToolStarted(
                agent=job.ctx.agent_id,
                at=iso(self.clock.now()),
                call_id=job.call.id,
                tool=tool.name,
                arguments=for_event(dump_args(job.args)),
            )
        )
        try:
            return await tool.run(job.args, job.ctx)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if (
                current is not None and not current.cancelling()
            ):  # something inside was cancelled, not this call
                return ToolResult.failure(f"{tool.name} was cancelled from within.", kind=ErrorKind.CANCELLED)
            cancelled = ToolResult.failure(f"{tool.name} was cancelled.", kind=ErrorKind.CANCELLED)
            self._emit_finished(job, cancelled, f"{FAILED} cancelled", 0.0)
            raise
        except OpenDevError as error:
            return failed(error.info)
        except Exception as error:  # noqa: BLE001 the border: a defect of one tool is a readable result (ERR-06)
            return crashed(tool.name, error)

    async def _present(self, job: _Job, result: ToolResult) -> str:
        """The text for the model: never empty, without secrets, short enough."""
        text = redact(result.text, self.known) if result.text.strip() else EMPTY
        if job.tool is None or job.tool.reports:
            return text
        offloader = Offloader(job.ctx.scratch, job.ctx.limits, frozenset(self.registry.names))
        try:
            return await asyncio.to_thread(
                offloader.shorten, job.tool, job.args, job.call.id, text, failed=not result.ok
            )
        except OSError as error:
            half = job.ctx.limits.offload_chars // 2
            cut = len(text) - 2 * half
            return f"{text[:half]}\n[… {cut:,} characters left out; they could not be saved: {error} …]\n{text[-half:]}"

    def _account(self, result: ToolResult) -> None:
        if self.on_result is not None:
            self.on_result(result)
        self.stats.tool_calls += 1
        self.changed.update(result.changed)
        if result.ok:
            return
        self.stats.failed += 1
        self.last_failure = result.error or ErrorInfo(kind=ErrorKind.TOOL, message=result.text[:1_000])
        if self.last_failure.kind in (ErrorKind.DENIED, ErrorKind.SCOPE):
            self.stats.denied += 1
            self.denied = True
        self.stats.unanswered += self.last_failure.kind is ErrorKind.UNANSWERED

    def _emit_finished(self, job: _Job, result: ToolResult, summary: str, wall_s: float) -> None:
        self.emit(
            ToolFinished(
                agent=job.ctx.agent_id,
                at=iso(self.clock.now()),
                call_id=job.call.id,
                tool=job.tool.name if job.tool else job.call.name,
                ok=result.ok,
                summary=summary,
                error=result.error,
                wall_s=round(max(wall_s, 0.0), 6),
            )
        )


def _keys(tool: Tool[Any], args: Frozen) -> frozenset[str]:
    return frozenset(tool.resources(args)) if isinstance(args, tool.args) else frozenset()


def _interrupted(job: _Job) -> ErrorInfo | None:
    if not job.ctx.interrupt.is_set:
        return None
    return ErrorInfo(
        kind=ErrorKind.CANCELLED,
        message=f"{job.call.name} did not run: interrupted ({job.ctx.interrupt.reason}).",
    )
