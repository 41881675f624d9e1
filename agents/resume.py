"""How a resumed agent gets back what its session's record keeps beside the messages (``IterationContext.state``; TSK-09, SKL-04)."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..core.chat import MessageClass, ToolMessage, UserMessage
from ..core.session import SessionMeta
from ..core.tool import Todo
from .iteration import IterationContext

_TODOS = TypeAdapter(tuple[Todo, ...])
_NAMES = TypeAdapter(tuple[str, ...])


def restore(ctx: IterationContext, meta: SessionMeta | None) -> None:
    """Give a resumed agent its todos, the tools and skills it had loaded, and the summary that stands for its earlier messages."""
    if meta is None:
        return
    memo, kept = ctx.memo, meta.metadata
    memo.todos = list(_valid(_TODOS, kept.get("todos")))
    memo.activated |= set(_valid(_NAMES, kept.get("activated")))
    memo.skills |= set(_valid(_NAMES, kept.get("skills")))
    _restore_view(ctx, kept.get("view"))


def _restore_view(ctx: IterationContext, view: Any) -> None:
    """Show the summary of the last compaction again, unless the conversation is not the one it was made of."""
    match view:
        case {"upto": int(upto), "summary": str(summary)} if summary and upto > 0:
            messages = ctx.messages.snapshot()
            if upto < len(messages) and not isinstance(messages[upto], ToolMessage):
                shown = ctx.compaction.shown
                shown.upto = upto
                shown.summary = UserMessage(content=summary, msg_class=MessageClass.INTERNAL)
        case _:
            return


def _valid(kind: TypeAdapter[Any], value: Any) -> tuple[Any, ...]:
    try:
        return kind.validate_python(value or ())
    except ValidationError:
        return ()
