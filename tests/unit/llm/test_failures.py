"""The table of provider failures."""

from dataclasses import dataclass, field

import pytest
from opendev.core.errors import ErrorKind
from opendev.llm.failures import classify, retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@dataclass
class Response:
    headers: dict[str, str]


@dataclass
class ProviderError(Exception):
    status_code: int
    message: str
    response: Response = field(default_factory=lambda: Response({}))


@dataclass
class Named:
    name: str
    status: int = 0

    def error(self) -> Exception:
        made = type(self.name, (Exception,), {"status_code": self.status, "message": "odd"})
        return made()


@pytest.mark.parametrize(
    ("status", "message", "kind", "retryable"),
    [
        (400, "bad", ErrorKind.MODEL, False),
        (400, "LLM Provider NOT provided. Pass it", ErrorKind.CONFIG, False),
        (401, "bad", ErrorKind.AUTH, False),
        (402, "bad", ErrorKind.RATE_LIMIT, False),
        (403, "bad", ErrorKind.AUTH, False),
        (404, "bad", ErrorKind.MODEL, False),
        (408, "bad", ErrorKind.TIMEOUT, True),
        (413, "bad", ErrorKind.CONTEXT, False),
        (400, "prompt is too long: 9 tokens", ErrorKind.CONTEXT, False),
        (429, "slow", ErrorKind.RATE_LIMIT, True),
        (429, "insufficient_quota", ErrorKind.RATE_LIMIT, False),
        (500, "oops", ErrorKind.MODEL, True),
        (529, "overloaded", ErrorKind.MODEL, True),
        (0, "Connection error.", ErrorKind.MODEL, True),
    ],
)
def test_status_decides(status: int, message: str, kind: ErrorKind, retryable: bool) -> None:
    failure = classify(ProviderError(status, message), "p/m", now=NOW)
    assert (failure.error.kind, failure.retryable) == (kind, retryable)
    assert "p/m" in failure.error.message
    assert failure.error.message.endswith(".")


@pytest.mark.parametrize(
    ("named", "kind", "retryable"),
    [
        (Named("ContextWindowExceededError", 400), ErrorKind.CONTEXT, False),
        (Named("ContentPolicyViolationError", 400), ErrorKind.MODEL, False),
        (Named("Timeout", 408), ErrorKind.TIMEOUT, True),
        (Named("TimeoutError"), ErrorKind.TIMEOUT, True),
        (Named("APIConnectionError", 500), ErrorKind.MODEL, True),
    ],
)
def test_names_decide_where_the_status_is_vague(named: Named, kind: ErrorKind, retryable: bool) -> None:
    failure = classify(named.error(), "p/m", now=NOW)
    assert (failure.error.kind, failure.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_every_spelling(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.req("CFG-04")
def test_keys_are_blotted_out_and_messages_bounded() -> None:
    error = ProviderError(401, "Incorrect API key provided: sk-abcdefgh1234, or my-own-secret " + "x" * 5000)
    failure = classify(error, "p/m", now=NOW, secrets=("my-own-secret",))
    assert "sk-abc" not in failure.error.message
    assert "my-own-secret" not in failure.error.message
    assert len(failure.error.message) < 600


def test_a_body_printed_as_python_bytes_becomes_its_sentence() -> None:
    raw = """AnthropicException - b'{"type": "error", "error": {"type": "x", "message": "no \\xc3\\xa9, it\\'s so"}}'"""
    assert "request: no é, it's so." in classify(ProviderError(400, raw), "p/m", now=NOW).error.message
    too_large = raw.replace('"x"', '"request_too_large"') + " Handle with `litellm.Router`"
    failure = classify(ProviderError(400, too_large), "p/m", now=NOW)
    assert (failure.error.kind, "litellm" in failure.error.message) == (ErrorKind.CONTEXT, False)
    assert "b'{odd}'" in classify(ProviderError(400, "b'{odd}'"), "p/m", now=NOW).error.message
