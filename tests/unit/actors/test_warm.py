"""Who may use a Ray that is kept warm: only a living keeper's of this version, by a process that has shown no other token."""

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from opendev import __version__
from opendev.actors import ray_session, warm
from opendev.actors.ray_session import Token

ME = os.getpid()


def record(home: Path, **fields: Any) -> warm.Warm:
    token = home / "token"
    token.write_text("ab" * 32)
    values = {
        "pid": ME,
        "started": ray_session.started(ME),
        "address": "127.0.0.1:1",
        "token": str(token),
        "version": __version__,
        "idle_s": 60.0,
    }
    made = warm.Warm.model_validate({**values, **fields})
    warm.record_path(home).write_text(made.model_dump_json())
    return made


@pytest.fixture(autouse=True)
def own_token(monkeypatch: pytest.MonkeyPatch) -> Token:
    token = Token()
    monkeypatch.setattr(ray_session, "TOKEN", token)
    return token


def borrowed(home: Path) -> warm.Warm | None:
    with contextlib.ExitStack() as stack:
        return warm.borrow(home, stack)


def test_a_run_takes_it_its_token_and_holds_it_until_its_end(tmp_path: Path, own_token: Token) -> None:
    made = record(tmp_path)
    with contextlib.ExitStack() as stack:
        assert warm.borrow(tmp_path, stack) == made
        assert warm.in_use(tmp_path)
        with warm.held(tmp_path) as second:
            assert second  # runs share it
    assert not warm.in_use(tmp_path)
    assert own_token.show() == "ab" * 32


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "\0"])
def test_a_record_that_is_none_is_not_believed(tmp_path: Path, text: str) -> None:
    warm.record_path(tmp_path).write_text(text)
    assert warm.find(tmp_path) is None
    assert borrowed(tmp_path / "none") is None


@pytest.mark.parametrize("fields", [{"started": 1}, {"started": 0}, {"pid": 2**22 + 1}])
def test_another_process_under_its_number_is_not_believed(tmp_path: Path, fields: dict[str, int]) -> None:
    record(tmp_path, **fields)
    assert warm.find(tmp_path) is None


def test_another_version_another_token_or_its_end_are_no_use(tmp_path: Path, own_token: Token) -> None:
    record(tmp_path, version="0.0.0")
    assert warm.find(tmp_path)
    assert borrowed(tmp_path) is None
    record(tmp_path, token=str(tmp_path / "gone"))
    assert borrowed(tmp_path) is None
    own_token.show()
    record(tmp_path)
    assert borrowed(tmp_path) is None
