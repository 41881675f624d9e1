"""Where all mail arrives in the driver: checks it, removes doubles, writes the audit log and hands it to the hub (ACT-05)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import ValidationError

from ..core.chat import canonical
from ..core.clock import Clock, iso
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.events import EPHEMERAL
from ..core.ids import new_id
from ..core.mail import ENVELOPE, Body, Envelope, Failed, Progress
from ..core.ports import Ref
from ..policy.redact import redact_values
from .eventlog import LineWriter
from .runtime import Actor

LINGER_S = 0.025
WAIT_S = 10.0


def sender_of(agent: str) -> str:
    """A sender's name: the agent, and a mark that tells its runs apart, so that numbering may start anew."""
    return f"{agent}#{new_id(4)}"


def agent_of(sender: str) -> str:
    """The agent behind a sender's name."""
    return sender.partition("#")[0]


class Postroom:
    """``take`` gets letters that want no answer; ``reply`` answers a question. Both see checked envelopes only."""

    def __init__(
        self,
        *,
        path: Path,
        session: str,
        clock: Clock,
        take: Callable[[Envelope], Awaitable[None]],
        reply: Callable[[Envelope], Awaitable[Body]],
    ) -> None:
        self._audit = LineWriter(path)
        self._session, self._clock, self._take, self._reply = session, clock, take, reply
        self._guard = Actor.around(self)
        self._last: dict[str, int] = {}
        self._open: dict[tuple[str, int], asyncio.Task[None]] = {}

    async def post(self, letters: list[str]) -> int:
        """Take letters of one sender, in order; how many, as the acknowledgement."""
        await self._audit.room()
        for letter in letters:
            envelope = self._checked(letter)
            if isinstance(envelope, Failed) or envelope.seq <= self._last.get(envelope.sender, 0):
                continue
            self._last[envelope.sender] = envelope.seq
            await self._take(envelope)
        return len(letters)

    async def ask(self, letter: str) -> str:
        """Answer one question; whatever goes wrong is an answer too."""
        envelope = self._checked(letter)
        if isinstance(envelope, Failed):
            return self._letter(envelope, to="", correlation="")
        try:
            body = await self._reply(envelope)
        except OpenDevError as error:
            body = Failed(error=error.info)
        return self._letter(body, to=envelope.sender, correlation=envelope.id)

    def forget(self, agent: str) -> None:
        """An agent ended: its numbering is over."""
        for sender in [s for s in self._last if agent_of(s) == agent]:
            del self._last[sender]

    async def drain(self, mailbox: Ref) -> None:
        """Fetch and answer the mail of one mailbox actor until it dies or this task is cancelled."""
        try:
            while True:
                batch = await mailbox.ask("drain", LINGER_S, WAIT_S)
                await self.post(batch["posts"])
                for key, letter in batch["asks"]:
                    task = asyncio.create_task(self._answer(mailbox, key, letter))
                    self._open[mailbox.name, key] = task
                    task.add_done_callback(lambda _, k=(mailbox.name, key): self._open.pop(k, None))
                for key in batch["gone"]:
                    if (task := self._open.get((mailbox.name, key))) is not None:
                        task.cancel()
        except OpenDevError:
            return  # its death is announced by the watch
        finally:
            for task in tuple(self._open.values()):
                task.cancel()

    async def close(self) -> None:
        """Store the rest of the audit log."""
        await self._audit.flush()

    async def _answer(self, mailbox: Ref, key: int, letter: str) -> None:
        answer, error = await self._guard.call("ask", letter)
        if error is not None:  # a defect of the hub must not leave the asker waiting for ever
            answer = self._letter(Failed(error=error), to="", correlation="")
        try:
            await mailbox.ask("answer", [(key, answer)])
        except OpenDevError:
            return

    def _checked(self, letter: str) -> Envelope | Failed:
        try:
            envelope = ENVELOPE.validate_json(letter)
        except ValidationError as error:
            text = f"A letter could not be read: {error.error_count()} fields are off."
            return Failed(error=ErrorInfo(kind=ErrorKind.INTERNAL, message=text))
        self._log(envelope)
        return envelope

    def _letter(self, body: Body, *, to: str, correlation: str) -> str:
        envelope = Envelope(
            id=new_id(),
            session=self._session,
            sender="hub",
            to=to,
            correlation=correlation,
            at=iso(self._clock.now()),
            body=body,
        )
        self._log(envelope)
        return envelope.to_json()

    def _log(self, envelope: Envelope) -> None:
        if not (isinstance(envelope.body, Progress) and envelope.body.event.kind in EPHEMERAL):
            self._audit.put(canonical(redact_values(envelope.model_dump(mode="json", by_alias=True))))
