"""SIGKILL at every write point of a session: at most the record being written is lost, the next start reads the rest and goes on."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from opendev.core.chat import AssistantMessage, Message, UserMessage
from opendev.store.layout import Layout
from opendev.store.records import TranscriptLine
from opendev.store.sessions import SessionStore
from support.session_crash import FIRST, ID, SECOND, where

TESTS = Path(__file__).parent.parent
BATCH = 3  # records of one turn that are written together: an answer, and what was said between


def killed(folder: Path, step: int) -> list[Path]:
    """The places of a session that was killed at every ``step``-th point."""
    env = {"PATH": os.defpath, "PYTHONPATH": str(TESTS), "HOME": str(folder)}
    command = [sys.executable, "-m", "support.session_crash", str(folder), str(step)]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, cwd=folder, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return sorted((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def shape(message: Message) -> tuple[str, str]:
    """What two runs of the same script have in common: ids and folders differ."""
    calls = [call.name for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    return message.role, ",".join(calls) or getattr(message, "content", "")[:10]


def check(place: Path, whole: list[tuple[str, str]]) -> None:
    store = SessionStore(Layout(place / "home"), place / "project")
    files = where(place)
    read = [line.message for line in files.read()] if files.transcript.exists() else []
    acked = int((place / "acked").read_bytes() or b"0")
    assert acked <= len(read) <= acked + BATCH, place
    # Of a batch of calls whichever result is in first is written first.
    assert not Counter(map(shape, read)) - Counter(whole[: len(read) + 1]), place
    if not read:
        return
    assert [entry.sessionId for entry in store.entries()] == [ID], place
    with store.resume() as session:
        line = TranscriptLine(at="", message=UserMessage(content="Go on.")).to_json()
        session.files.append([line])
        session.files.update(lambda meta: meta or session.meta())
    again = [line.message for line in files.read()]
    assert again == [*read, UserMessage(content="Go on.")], place
    for raw in files.transcript.read_bytes().splitlines():
        json.loads(raw)  # no half line is left, it was set aside
    json.loads(files.record.read_bytes())
    assert json.loads((store.folder / "sessions-index.json").read_bytes())["entries"][0]["sessionId"] == ID


@pytest.mark.req("SES-03", "SES-01", "UND-06")
@pytest.mark.parametrize("step", [pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(600)]), 17])
@pytest.mark.slow
def test_a_kill_at_any_write_loses_at_most_the_record_being_written(tmp_path: Path, step: int) -> None:
    places = killed(tmp_path, step)
    whole = [shape(line.message) for line in where(tmp_path / "whole").read()]
    assert [shape for shape in whole if shape in (("user", FIRST[:10]), ("user", SECOND[:10]))] == [
        ("user", FIRST[:10]),
        ("user", SECOND[:10]),
    ]
    assert len(places) > 100 / step
    for place in places:
        check(place, whole)
