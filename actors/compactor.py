"""The compactor actor: turns the middle of a conversation into a summary with the compact model (ACT-13)."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..context.summaries import told
from ..core.chat import MESSAGES, ModelFailed, ModelRequest, Role, SystemMessage, UserMessage
from ..core.clock import SystemClock
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.ports import Ref
from .outbox import Outbox
from .postroom import sender_of
from .uplink import Uplink

_TEMPLATE = Path(__file__).parent.parent / "templates" / "compaction.md"
MAX_TOKENS = 2000
MAX_CHARS = 240_000  # of the material, about 60,000 tokens


class Compactor:
    """``settings``: ``{"run_id"}``. It holds the same handles as a worker: the mailbox and, if there is one, the model."""

    def __init__(self, settings: dict[str, Any], post: Ref, model: Ref | None = None) -> None:
        outbox = Outbox(
            post=post, sender=sender_of("compactor"), session=str(settings["run_id"]), clock=SystemClock()
        )
        self._uplink = Uplink(outbox, model=model)
        self._prompt = re.sub(r"\A\s*<!--.*?-->\s*", "", _TEMPLATE.read_text("utf-8"), flags=re.DOTALL)

    async def ping(self) -> dict[str, Any]:
        """Its process."""
        return {"pid": os.getpid()}

    async def summarise(self, messages_json: str, artifacts: str, model: str, scopes: list[str]) -> str:
        """The summary of the messages. Raises ``OpenDevError`` with the model's failure; the caller prunes instead."""
        text = _material(told(message) for message in MESSAGES.validate_json(messages_json))
        request = ModelRequest(
            id=new_id(),
            agent_id="compactor",
            model=model,
            messages=(
                SystemMessage(stable=self._prompt),
                UserMessage(
                    content=f"<artifacts>\n{artifacts}\n</artifacts>\n\n<messages>\n{text}\n</messages>"
                ),
            ),
            role=Role.COMPACT,
            max_tokens=MAX_TOKENS,
            scopes=tuple(scopes),
        )
        reply = await self._uplink.complete(request)
        if isinstance(reply, ModelFailed):
            raise OpenDevError(reply.error.kind, reply.error.message, reply.error.hint)
        if not reply.message.content.strip():
            raise OpenDevError(ErrorKind.MODEL, f"The compact model {model} returned an empty summary.")
        return reply.message.content


def _material(parts: Iterable[str]) -> str:
    """The messages as one text that cannot close the tag around it; the middle is left out when there is too much."""
    text = "\n\n".join(part for part in parts if part).replace("</messages", "<\\/messages")
    half = MAX_CHARS // 2
    return text if len(text) <= MAX_CHARS else f"{text[:half]}\n[… left out …]\n{text[-half:]}"
