"""Titles of sessions, by the light model, beside the run and never in its way (SES-07)."""

import asyncio
import contextlib
import json

from ..core.chat import (
    AssistantMessage,
    MessageClass,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    UserMessage,
)
from ..core.errors import OpenDevError
from ..core.ids import new_id
from ..core.ports import Ref
from ..core.session import TITLE, SessionMeta, title_of
from ..policy.redact import redact
from ..store.session_files import SessionFiles

LAST = 4  # messages a title is made of (K37)
_CHARS = 1_000  # of each
_TOKENS = 40
_GRACE_S = 2.0  # after the end of the run
_ORDER = (
    f"Answer with a title of at most {TITLE} characters for the conversation you are shown. "
    "Plain words on one line, no quotation marks, no full stop."
)


class Titler:
    """Makes one title for a session that has gone on: one call, once. Whatever fails costs the title and nothing else."""

    def __init__(self, model: Ref, files: SessionFiles) -> None:
        self._model, self._files = model, files
        self._work: asyncio.Task[None] | None = None

    def start(self, name: str, scopes: tuple[str, ...]) -> None:
        """Begin beside the loop; ``name`` is the compact model, the call is charged to ``scopes``."""
        self._work = asyncio.get_running_loop().create_task(self._make(name, scopes))

    async def close(self) -> None:
        """Give it a moment, then let it go."""
        if self._work is not None:
            await asyncio.wait({self._work}, timeout=_GRACE_S)
            self._work.cancel()
            await asyncio.wait({self._work})

    async def _make(self, name: str, scopes: tuple[str, ...]) -> None:
        meta = await asyncio.to_thread(self._files.meta)
        history = await asyncio.to_thread(self._files.history)
        if meta is None or meta.metadata.get("titled") or len(history) < LAST:
            return
        told = [
            {"role": message.role, "content": message.content[:_CHARS]}
            for message in history[-LAST:]
            if isinstance(message, UserMessage | AssistantMessage)
        ]
        request = ModelRequest(
            id=new_id(),
            agent_id="titles",
            model=name,
            messages=(
                SystemMessage(stable=_ORDER),
                UserMessage(content=json.dumps(told, ensure_ascii=False), msg_class=MessageClass.INTERNAL),
            ),
            role=Role.COMPACT,
            max_tokens=_TOKENS,
            scopes=scopes,
        )
        with contextlib.suppress(OpenDevError):
            reply = await self._model.ask("complete", request)
            if isinstance(reply, ModelReply) and (
                title := title_of(redact(reply.message.content.strip(" \"'")), length=TITLE)
            ):
                await asyncio.to_thread(self._files.update, lambda now: _entitled(now or meta, title))


def _entitled(meta: SessionMeta, title: str) -> SessionMeta:
    return meta.with_metadata(title=title, titled=True)
