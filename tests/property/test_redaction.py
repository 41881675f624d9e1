"""Redaction: a secret is gone wherever it stands, and what is around it stays (SAF-06)."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.policy import redact as rules
from opendev.policy.redact import redact
from opendev.policy.secrets import Secrets
from opendev.policy.visible import inert, visible

WORDS = st.text(alphabet="abc def\n\t.,;()[]{}<>'\"#", max_size=40)
BODY = st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", min_size=36, max_size=36)
MAKERS = st.sampled_from(
    ["gh" + "p_{}", "sk-" + "ant-{}", "np" + "m_{}", "X_API_KEY=1{}", "https://me:{}@host/x", "--token {}1"]
)

LOOK_AHEAD = re.compile(r"\(\?=(?:[^()\[\]]|\[[^\]]*\])*\)")


@pytest.mark.req("SAF-06")
@settings(max_examples=150, deadline=None)
@given(before=WORDS, after=WORDS, body=BODY, maker=MAKERS)
def test_a_secret_is_gone_and_the_rest_stays(before: str, after: str, body: str, maker: str) -> None:
    shown = redact(f"{before} {maker.format(body)} {after}")
    assert body not in shown
    assert shown.startswith(f"{before} ")
    assert shown.endswith(f" {after}")
    assert redact(shown) == shown


@pytest.mark.parametrize(("words", "frame"), rules._FRAMES)  # pyright: ignore[reportPrivateUsage]
def test_a_frame_is_looked_for_wherever_it_can_match(words: tuple[str, ...], frame: re.Pattern[str]) -> None:
    small = rules._SMALL  # pyright: ignore[reportPrivateUsage]

    @settings(max_examples=40, deadline=None, database=None)
    @given(st.from_regex(re.compile(LOOK_AHEAD.sub("", frame.pattern), frame.flags)))
    def check(text: str) -> None:
        assert any(word in text.lower() for word in words) or any(letter in text for letter in small)

    check()


def test_no_other_letters_count_as_small_ones() -> None:
    letters = [chr(n) for n in range(128, 0x2_0000) if re.match("[a-z]", chr(n), re.IGNORECASE)]
    assert letters == list(rules._SMALL)  # pyright: ignore[reportPrivateUsage]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_text_without_secrets_is_byte_identical(text: str) -> None:
    if not any(sign in text for sign in ":=_-@"):
        assert redact(text) == text


@given(st.text(max_size=60))
def test_what_is_shown_is_printable_and_stable(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert inert(inert(text)) == inert(text)


@given(st.lists(st.sampled_from(["a", "B", ".ENV", ".env", "x.PEM", "."]), min_size=1, max_size=5))
def test_case_and_depth_do_not_matter(parts: list[str]) -> None:
    secrets = Secrets((".env", "*.pem"))
    held = any(part.lower() in (".env", "x.pem") for part in parts)
    assert secrets.match("/".join(parts)) is held
