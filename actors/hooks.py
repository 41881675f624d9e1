"""The user's own commands around every sub-agent: JSON on standard input, the exit code decides (SUB-16)."""

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from ..configs.schema import Hook, HookGroup, Hooks
from ..core.agent import AgentReport
from ..core.errors import ErrorKind, OpenDevError
from ..core.events import Event, Notice
from ..core.model import JsonObject

_BLOCK = 2  # the exit code that refuses
_CAP = 100_000  # bytes kept of standard output and of standard error
_LEFT_S = 0.3  # for what is still in the pipes after the end
_POLL_S = 0.02
_TEXT = 20_000  # characters of a result that a hook is told


class _Ended(NamedTuple):
    code: int | None  # None: it was ended by us
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class SubagentHooks:
    """``env`` holds no keys; ``emit`` tells of hooks that failed."""

    settings: Hooks
    session: str
    env: Mapping[str, str]
    emit: Callable[[Event], None]

    async def before(self, agent: str, task: str, cwd: str) -> str:
        """Run the hooks of SubagentStart, one after the other. What they add to the task; raises ``OpenDevError`` (denied)
        when one refuses. A hook that fails in any other way is told and passed over."""
        added: list[str] = []
        facts = {"agent_type": agent, "agent_task": task}
        for hook in _matching(self.settings.SubagentStart, agent):
            ended = await self._run(hook, "SubagentStart", facts, cwd)
            said = _answer(ended) if ended.code in (0, _BLOCK) else {}
            if ended.code == _BLOCK or _refuses(said):
                reason = str(said.get("reason") or ended.err.strip() or "Blocked by hook")
                raise OpenDevError(
                    ErrorKind.DENIED,
                    f"The sub-agent was not started: a hook of the user refused it: {reason[:1000]}",
                    "Do the work another way.",
                )
            if isinstance(context := said.get("additionalContext"), str) and context.strip():
                added.append(context.strip()[:_TEXT])
        return "\n\n".join(added)

    async def after(self, report: AgentReport, task: str, cwd: str) -> None:
        """Run the hooks of SubagentStop; nothing they say changes the result."""
        result = {"status": report.status.value, "text": report.text[:_TEXT]}
        facts = {
            "agent_type": report.agent,
            "agent_task": task,
            "agent_id": report.id,
            "agent_result": result,
        }
        for hook in _matching(self.settings.SubagentStop, report.agent):
            await self._run(hook, "SubagentStop", facts, cwd)

    async def _run(
        self, hook: Hook, event: Literal["SubagentStart", "SubagentStop"], facts: JsonObject, cwd: str
    ) -> _Ended:
        letter = json.dumps({"session_id": self.session, "cwd": cwd, "hook_event_name": event, **facts})
        try:
            ended = await _command(hook, letter.encode(), self.env, cwd)
        except OSError as error:
            ended = _Ended(None, "", str(error))
        if ended.code is None:
            self._tell(event, hook, ended.err or f"it did not end within {hook.timeout:g} s")
        elif ended.code not in (0, _BLOCK):
            self._tell(event, hook, f"exit code {ended.code}; {ended.err.strip()[:500]}")
        return ended

    def _tell(self, event: str, hook: Hook, why: str) -> None:
        text = f"A {event} hook failed and was passed over: `{hook.command[:200]}`: {why}"
        self.emit(Notice(level="warning", text=text))


def _matching(groups: tuple[HookGroup, ...], agent: str) -> list[Hook]:
    return [hook for group in groups if re.search(group.matcher, agent) for hook in group.hooks]


def _answer(ended: _Ended) -> JsonObject:
    """The JSON object on standard output; empty when there is none."""
    try:
        value: Any = json.loads(ended.out)
    except (ValueError, RecursionError):
        return {}
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _refuses(said: JsonObject) -> bool:
    return said.get("decision") == "block" or said.get("permissionDecision") == "deny"


async def _command(hook: Hook, letter: bytes, env: Mapping[str, str], cwd: str) -> _Ended:
    """Run it in a process group of its own, which is ended in any case."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", hook.command),
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    out, err = bytearray(), bytearray()
    pipes = [
        asyncio.ensure_future(_feed(process.stdin, letter)),
        asyncio.ensure_future(_keep(process.stdout, out)),
        asyncio.ensure_future(_keep(process.stderr, err)),
    ]
    code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(hook.timeout):
                code = await _exit_code(process)
        if code is not None:
            await asyncio.wait(pipes, timeout=_LEFT_S)  # a child of its own may hold them open
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await _exit_code(process)
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
    return _Ended(code, out.decode(errors="replace"), err.decode(errors="replace"))


async def _exit_code(process: asyncio.subprocess.Process) -> int:
    """Wait for the process alone: ``wait()`` of Python 3.11 also waits for its pipes, which a child may hold open."""
    while process.returncode is None:  # noqa: ASYNC110 - the event would come with wait()
        await asyncio.sleep(_POLL_S)
    return process.returncode


async def _feed(stream: asyncio.StreamWriter | None, letter: bytes) -> None:
    if stream is None:
        return
    with contextlib.suppress(OSError):  # it need not read
        stream.write(letter)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _keep(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    """The first bytes; the rest is read and dropped, so that the command never waits for us."""
    while stream is not None and (data := await stream.read(65_536)):
        into.extend(data[: max(0, _CAP - len(into))])
