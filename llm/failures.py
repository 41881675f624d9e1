"""What went wrong at a provider, as one table: exception and HTTP status to kind, retry and wait. A provider's quirk goes here."""

import ast
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..core.errors import ErrorInfo, ErrorKind
from ..core.model import Frozen


class Failure(Frozen):
    """One failed try. ``retry_after_s`` is what the provider asks for; ``reached`` says that it answered at all."""

    error: ErrorInfo
    retryable: bool = False
    retry_after_s: float | None = None
    reached: bool = True


class _Row(Frozen):
    kind: ErrorKind
    retryable: bool
    what: str
    hint: str = ""


_WINDOW = _Row(
    kind=ErrorKind.CONTEXT,
    retryable=False,
    what="the request does not fit its context window",
    hint="Compact the conversation or choose a model with a larger window.",
)
_LATER = "It was tried again several times; try again later, or choose another model."
_BUSY = _Row(kind=ErrorKind.MODEL, retryable=True, what="its server failed", hint=_LATER)
_LINE = _Row(
    kind=ErrorKind.MODEL,
    retryable=True,
    what="the connection failed or broke",
    hint="Check the network and the provider's base URL.",
)
_REFUSED = _Row(
    kind=ErrorKind.MODEL,
    retryable=False,
    what="it refused the request",
    hint="See the message; no retry would help.",
)
_QUOTA = _Row(
    kind=ErrorKind.RATE_LIMIT,
    retryable=False,
    what="the account's quota or credit is used up",
    hint="Check the plan and billing of the provider.",
)
_NO_PROVIDER = _Row(
    kind=ErrorKind.CONFIG,
    retryable=False,
    what="no such provider is known",
    hint="Write the model as provider/NAME, for example openai/gpt-5 or anthropic/claude-sonnet-4-5.",
)
_NAMES: dict[str, _Row] = {
    "ContextWindowExceededError": _WINDOW,
    "ContentPolicyViolationError": _Row(
        kind=ErrorKind.MODEL, retryable=False, what="its content filter refused the request"
    ),
    "Timeout": _Row(kind=ErrorKind.TIMEOUT, retryable=True, what="it did not answer in time", hint=_LATER),
    "TimeoutError": _Row(
        kind=ErrorKind.TIMEOUT,
        retryable=True,
        what="its answer stalled: no bytes came for too long",
        hint=_LATER,
    ),
    "APIConnectionError": _LINE,
    "MidStreamFallbackError": _LINE,
}
_STATUS: dict[int, _Row] = {
    401: _Row(
        kind=ErrorKind.AUTH,
        retryable=False,
        what="the API key is wrong or has expired",
        hint="Set a valid key in the provider's environment variable.",
    ),
    402: _QUOTA,
    403: _Row(
        kind=ErrorKind.AUTH,
        retryable=False,
        what="the API key may not use this model",
        hint="Check the key's rights.",
    ),
    404: _Row(
        kind=ErrorKind.MODEL,
        retryable=False,
        what="there is no such model or address",
        hint="Check the model's name and the provider's base URL.",
    ),
    408: _Row(kind=ErrorKind.TIMEOUT, retryable=True, what="it did not answer in time", hint=_LATER),
    409: _BUSY,
    413: _WINDOW,
    425: _BUSY,
    429: _Row(kind=ErrorKind.RATE_LIMIT, retryable=True, what="it limits the rate of requests", hint=_LATER),
}
_TOO_LONG = re.compile(
    r"context.{0,12}(length|window)|prompt is too long|maximum context|too many (input )?tokens|exceeds? the (available )?context|request_too_large",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"LLM Provider NOT provided")
_NO_CREDIT = re.compile(
    r"insufficient_quota|credit balance|billing|exceeded your current quota", re.IGNORECASE
)
_DROPPED = re.compile(
    r"connection error|connection reset|stream ended before|not enough data|peer closed|incomplete|disconnected",
    re.IGNORECASE,
)
_VAGUE = frozenset({"APIConnectionError", "MidStreamFallbackError"})  # also wrap errors of the server
_RAW_CHARS, _MESSAGE_CHARS = 4_000, 400
_BODY = re.compile(r"""b(['"])\{.*\}\1""")


def classify(error: BaseException, model: str, *, now: float, secrets: tuple[str, ...] = ()) -> Failure:
    """The failure behind a provider's exception. ``now`` is wall time, for dates in Retry-After; ``secrets`` are blotted out."""
    text = _message(error, secrets)
    status = _status(error)
    row = _row(type(error).__name__, status, text)
    text = _BODY.sub(_said, text).partition(" Handle with `litellm.")[0]
    said = f": {text[:_MESSAGE_CHARS]}" if text else ""
    info = ErrorInfo(
        kind=row.kind, message=f"The model {model} gave no answer, {row.what}{said}", hint=row.hint
    )
    if not info.message.endswith((".", "!", "?")):
        info = info.model_copy(update={"message": info.message + "."})
    return Failure(
        error=info,
        retryable=row.retryable,
        retry_after_s=retry_after(_headers(error), now),
        reached=row is not _LINE and row.kind is not ErrorKind.TIMEOUT,
    )


def retry_after(headers: dict[str, str], now: float) -> float | None:
    """Seconds asked for by ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date); None when absent or nonsense."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = _seconds(headers.get("retry-after", ""), now)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _seconds(value: str, now: float) -> float:
    try:
        return float(value)
    except ValueError:
        moment: datetime = parsedate_to_datetime(value)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, aware.timestamp() - now)


def _row(name: str, status: int, text: str) -> _Row:
    """The first row that fits: name of the exception, words of the message, status, then the vaguer names."""
    candidates = (
        _NAMES.get(name) if name not in _VAGUE else None,
        _NO_PROVIDER if _UNKNOWN.search(text) else None,
        _QUOTA if status == 429 and _NO_CREDIT.search(text) else None,
        _WINDOW if status in (400, 413, 422, 500) and _TOO_LONG.search(text) else None,
        _LINE if status not in _STATUS and _DROPPED.search(text) else None,
        _STATUS.get(status),
        _NAMES.get(name),
        _BUSY if status >= 500 else None,
        _REFUSED if status >= 400 else None,
    )
    return next((row for row in candidates if row), _LINE)


def _status(error: BaseException) -> int:
    status: Any = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _headers(error: BaseException) -> dict[str, str]:
    """litellm keeps the headers in one of three places, by provider."""
    response: Any = getattr(error, "response", None)
    found: dict[str, str] = {}
    for held in (
        getattr(response, "headers", None),
        getattr(error, "headers", None),
        getattr(error, "litellm_response_headers", None),
    ):
        for name, value in dict(held or {}).items():
            found[str(name).lower().removeprefix("llm_provider-")] = str(value)
    return found


def _said(body: re.Match[str]) -> str:
    """The provider's sentence in the body that litellm prints as Python bytes; the body as it is when it holds none."""
    try:
        told = json.loads(ast.literal_eval(body[0]))
        return str(told["error"]["message"])
    except (SyntaxError, ValueError, LookupError, TypeError):
        return body[0]


def _message(error: BaseException, secrets: tuple[str, ...]) -> str:
    raw = str(getattr(error, "message", "") or error).splitlines()
    line = raw[0] if raw else ""
    for secret in secrets:
        line = line.replace(secret, "***") if secret else line
    line = re.sub(r"\b(sk|key)-[A-Za-z0-9_*-]{8,}", "***", line)
    line = re.sub(r"litellm\.\w+:\s*|\w+Exception - |\w+Error - ", "", line)
    return line[:_RAW_CHARS].strip()
