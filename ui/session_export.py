"""A session as a file to hand on: JSON, Markdown or HTML; secrets are removed, and nothing in the page can act (SAF-06)."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from ..core.chat import AssistantMessage, Message, MessageClass, SystemMessage, ToolMessage
from ..core.model import JsonObject
from ..core.session import SessionMeta
from ..policy.redact import redact
from ..policy.visible import visible
from ..store.records import TranscriptLine

Format = Literal["json", "md", "html"]
_MARK = "[redacted]"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}"
    "pre{background:#f4f4f4;padding:.6rem;overflow-x:auto;white-space:pre-wrap}h2{font-size:1rem;margin:1.5rem 0 .3rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def export(
    meta: SessionMeta, lines: Sequence[TranscriptLine], kind: Format, secrets: Iterable[str] = ()
) -> str:
    """The session as one text. ``secrets`` are known values, such as keys in the environment; formats of keys go in any case."""
    known = tuple(sorted({value for value in secrets if value}, key=len, reverse=True))
    if kind == "json":
        return _as_json(meta, lines, known)
    return (_as_html if kind == "html" else _as_markdown)(meta, lines, known)


def _clean(text: str, known: Sequence[str]) -> str:
    for value in known:
        text = text.replace(value, _MARK)
    return redact(text)


def _as_json(meta: SessionMeta, lines: Sequence[TranscriptLine], known: Sequence[str]) -> str:
    rows = [json.loads(line.to_json()) for line in lines]
    whole = {"schema": 1, "session": json.loads(meta.to_json()), "messages": rows}
    return json.dumps(_cleaned(whole, known), indent=1, ensure_ascii=False) + "\n"


def _cleaned(value: Any, known: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _clean(value, known)
    if isinstance(value, list):
        return [_cleaned(item, known) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("JsonObject", value).items()
        return {_clean(key, known): _cleaned(item, known) for key, item in pairs}
    return value


def _as_markdown(meta: SessionMeta, lines: Sequence[TranscriptLine], known: Sequence[str]) -> str:
    parts = [f"# {visible(_clean(meta.title or meta.id, known))}", *_facts(meta, known)]
    for title, text, code in _shown(lines, known):
        parts += [f"## {title}", _fenced(text) if code else visible(text)]
    return "\n\n".join(parts) + "\n"


def _as_html(meta: SessionMeta, lines: Sequence[TranscriptLine], known: Sequence[str]) -> str:
    title = _escaped(_clean(meta.title or meta.id, known))
    body = [f"<h1>{title}</h1>", *(f"<p>{_escaped(fact)}</p>" for fact in _facts(meta, known))]
    body += [
        f"<h2>{_escaped(name)}</h2>\n<pre>{_escaped(text)}</pre>" for name, text, _ in _shown(lines, known)
    ]
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{_STYLE}</style>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _facts(meta: SessionMeta, known: Sequence[str]) -> list[str]:
    spent = meta.spent
    return [
        _clean(f"Session {meta.id}, begun {meta.created_at}, last written {meta.updated_at}.", known),
        f"{spent.api_call_count} model calls, {spent.total_input_tokens} tokens in, {spent.total_output_tokens} out, "
        f"${spent.total_cost_usd:.4f}.",
    ]


def _shown(lines: Sequence[TranscriptLine], known: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Title, text and whether it is to stand as it is, of each message a reader cares for."""
    shown: list[tuple[str, str, bool]] = []
    for line in lines:
        shown += [
            (title, _clean(text, known), code) for title, text, code in _parts(line.message) if text.strip()
        ]
    return shown


def _parts(message: Message) -> list[tuple[str, str, bool]]:
    if isinstance(message, SystemMessage):
        return []
    if isinstance(message, ToolMessage):
        return [(f"Result of {message.name}{' (failed)' if message.is_error else ''}", message.content, True)]
    if isinstance(message, AssistantMessage):
        calls = [
            (f"Call of {call.name}", json.dumps(call.arguments, indent=1, ensure_ascii=False), True)
            for call in message.tool_calls
        ]
        return [("Assistant", message.content, False), *calls]
    return [
        ("User" if message.msg_class is MessageClass.USER else "Note of the program", message.content, False)
    ]


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{visible(text)}\n{fence}"


def _escaped(text: str) -> str:
    return html.escape(visible(text))
