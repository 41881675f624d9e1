"""Redaction: a secret is gone wherever it stands, and what is around it stays (SAF-06)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.policy.redact import redact
from opendev.policy.secrets import Secrets
from opendev.policy.visible import inert, visible

WORDS = st.text(alphabet="abc def\n\t.,;()[]{}<>'\"#", max_size=40)
BODY = st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", min_size=36, max_size=36)
MAKERS = st.sampled_from(
    ["gh" + "p_{}", "sk-" + "ant-{}", "np" + "m_{}", "X_API_KEY=1{}", "https://me:{}@host/x", "--token {}1"]
)


@pytest.mark.req("SAF-06")
@settings(max_examples=150, deadline=None)
@given(before=WORDS, after=WORDS, body=BODY, maker=MAKERS)
def test_a_secret_is_gone_and_the_rest_stays(before: str, after: str, body: str, maker: str) -> None:
    shown = redact(f"{before} {maker.format(body)} {after}")
    assert body not in shown
    assert shown.startswith(f"{before} ")
    assert shown.endswith(f" {after}")
    assert redact(shown) == shown


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
