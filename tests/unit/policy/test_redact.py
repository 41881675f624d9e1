"""Redaction: known secrets out, everything else byte for byte (SAF-06)."""

import time

import pytest
from opendev.policy.redact import redact

# Built from pieces, so that no scanner takes this file for a leak.
SECRETS = [
    "sk-" + "ant-api03-" + "a1B2" * 10,
    "sk-" + "proj-" + "Zz9_" * 8,
    "gh" + "p_" + "A1b2" * 9,
    "github" + "_pat_" + "A1b2C3d4E5" * 6,
    "AK" + "IA" + "ABCDEFGH12345678",
    "AI" + "za" + "x" * 35,
    "xo" + "xb-" + "123456789012-abcdef",
    "h" + "f_" + "a" * 34,
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTYifQ" + "." + "c2lnbmF0dXJlLXZhbHVl",
]


@pytest.mark.req("SAF-06")
@pytest.mark.parametrize("secret", SECRETS)
def test_known_formats(secret: str) -> None:
    assert redact(f"key = '{secret}'\nnext") == "key = '[redacted]'\nnext"
    assert redact(secret) == "[redacted]"


def test_structures_keep_their_frame() -> None:
    key = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow\nAbc=\n-----END RSA PRIVATE " + "KEY-----"
    assert redact(f"a\n{key}\nb").count("MIIEow") == 0
    assert redact("https://me:hunter22@host/x") == "https://me:[redacted]@host/x"
    assert redact("Authorization: Bearer abcdef0123456789") == "Authorization: Bearer [redacted]"
    assert redact("OPENAI_API_KEY=abc123def456") == "OPENAI_API_KEY=[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "task-" + "a" * 40,
        "the sk- prefix",
        "https://host:8080/path@x",
        "postgres://user:$PASSWORD@host",
        "def f(api_key: str) -> None: ...",
        "API_KEY=os.environ['X']",
        "API_KEY=$OTHER",
        "0123456789abcdef" * 4,
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        "desk-" + "b" * 30,
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_long_text_takes_little_time() -> None:
    started = time.monotonic()
    redact("a" * 500_000 + "://" * 50_000 + "-----BEGIN PRIVATE " * 2_000 + "eyJ" * 20_000)
    assert time.monotonic() - started < 5
