"""`opendev policy check`: what it is given byte for byte, and what it says when it is used wrongly."""

import io
from types import SimpleNamespace

import pytest

from .conftest import CommandLine


def given(cli: CommandLine, raw: bytes) -> dict[str, object]:
    """The verdict on standard input."""
    stream = SimpleNamespace(buffer=io.BytesIO(raw), isatty=lambda: False)
    cli.patch.setattr("sys.stdin", stream)
    done = cli("policy", "check", "-")
    assert done.code == 0
    return done.json()


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"ls\0rm -rf /", b"'", b"$(", b"x" * 300_000, b"a" * 2_000_000, b"\xff\xfe \x80 $(", b"(" * 20_000]
)  # fmt: skip
def test_what_cannot_be_read_asks(cli: CommandLine, raw: bytes) -> None:
    verdict = given(cli, raw)
    assert (verdict["decision"], verdict["floor"]) == ("ask", False)


def test_line_endings_and_bytes_are_kept(cli: CommandLine) -> None:
    assert given(cli, b"echo 'a\r\nb\rc'")["commands"] == [
        {"text": "echo 'a\r\nb\rc'", "decision": "allow", "rule": "level", "reason": "It only reads."}
    ]
    assert given(cli, b"rm -rf /\n")["floor"] is True
    assert given(cli, b"rm -rf \xff /")["floor"] is True


def test_words_that_were_quoted_stay_words(cli: CommandLine) -> None:
    def decide(*words: str) -> str:
        return cli("policy", "check", "--mode", "auto", "--", *words).json()["decision"]

    assert decide("git", "commit", "-m", "x; rm -rf /") == "allow"
    assert decide("sh", "-c", "rm -rf /") == "deny"
    assert decide("ls", "&&", "rm", "-rf", "/") == "deny"
    assert decide("git commit -m x; rm -rf /") == "deny"


def test_wrong_use_is_told(cli: CommandLine) -> None:
    for words in (
        ["--mode", "x", "--", "ls"],
        [],
        ["--cwd", str(cli.project / "nowhere"), "--", "ls"],
        ["--nope", "--", "ls"],
    ):
        done = cli("policy", "check", *words)
        assert (done.code, done.out) == (2, "")
        assert done.err.strip()
    shown = cli("policy", "check", "--help").out
    assert "Example: opendev policy" in shown
    assert "--rules" in shown
