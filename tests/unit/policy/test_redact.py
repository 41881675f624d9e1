"""Redaction: known secrets out, everything else byte for byte (SAF-06)."""

import json
import time

import pytest
from opendev.policy.redact import redact, redact_line

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


B64 = "\n".join(["b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ" * 1] * 3)


@pytest.mark.req("SAF-06")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("machine a.com login me password hunter22", "machine a.com login me password [redacted]"),
        ("machine a.com\n  login me\n  password hunter22\n", "machine a.com\n  login me\n  password [redacted]\n"),
        ("aws_secret_access_key = " + "wJalr/XUtn" * 4, "aws_secret_access_key = [redacted]"),
        ("AccountKey=" + "abcdEFGH12" * 3 + "==;x", "AccountKey=[redacted];x"),
        ("//r.org/:_authToken=abc123def456", "//r.org/:_authToken=[redacted]"),
        ("git clone https://tok" + "a1" * 12 + "@host.com/x", "git clone https://[redacted]@host.com/x"),
        ("mysql --password=hunter2hunter2 -e x", "mysql --password=[redacted] -e x"),
        ("x-api-key: 0123456789abcdef", "x-api-key: [redacted]"),
        ("DB_PASSWORD=s3cretpw1", "DB_PASSWORD=[redacted]"),
        ("https://hooks.slack" + ".com/services/T0000/B0000/" + "x" * 24, "https://hooks.slack.com/services/[redacted]"),
        ("gl" + "dt-" + "a1" * 12, "[redacted]"),
        ("do" + "p_v1_" + "a1" * 32, "[redacted]"),
        ("-----BEGIN OPENSSH PRIVATE " + f"KEY-----\n{B64}", "-----BEGIN OPENSSH PRIVATE " + "KEY-----[redacted]"),
        ("     1\t-----BEGIN RSA PRIVATE " + "KEY-----\n     2\t" + "Ab1+" * 12 + "\nend", "     1\t-----BEGIN RSA PRIVATE " + "KEY-----[redacted]\nend"),
        ("-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\nVersion: x (y)\n\nlQO\n-----END PGP PRIVATE " + "KEY BLOCK-----",
         "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----[redacted]-----END PGP PRIVATE " + "KEY BLOCK-----"),
    ],
)  # fmt: skip
def test_more_frames(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "550e8400-e29b-41d4-a716-446655440000",
        "commit 04e73c9aa12345678901234567890123456789ab",
        "token = self.tokens[0]",
        "PASSWORD=os.environ['PASSWORD1']",
        "MAX_TOKENS=128000000",
        "--password-file=/run/secrets/x1",
        "https://user@host.com/x",
        "sha256:" + "ab12" * 16,
        "the line -----BEGIN PRIVATE " + "KEY----- starts a key",
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
    redact(
        "-----BEGIN PRIVATE "
        + "KEY-----\n" * 300
        + "ABC_TOKEN=" * 20_000
        + " --token" * 20_000
        + "machine a login b " * 20_000
    )
    assert time.monotonic() - started < 5


@pytest.mark.req("SAF-06")
def test_a_line_of_a_log_stays_json() -> None:
    key = "gh" + "p_" + "A1b2" * 9
    head, end = "-----BEGIN RSA PRIVATE " + "KEY-----", "-----END RSA PRIVATE " + "KEY-----"
    data = {"a": [f"x {key}", {"b": head}, 1, None], "c": end, "d": f"machine h\n login u\n password {key}9"}
    found = json.loads(redact_line(json.dumps(data)))
    assert found == {
        "a": ["x [redacted]", {"b": head}, 1, None],
        "c": end,
        "d": "machine h\n login u\n password [redacted]",
    }
    plain = '{"b": 1,  "a": "caf\\u00e9"}'
    assert redact_line(plain) == plain
