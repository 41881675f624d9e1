"""Bad files and bad moments: torn, glued and foreign records, other versions, many processes, a full disk (group 7 of the cases)."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from opendev.core.chat import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.session import SessionMeta
from opendev.store.atomic import write_atomic
from opendev.store.layout import Layout
from opendev.store.records import TranscriptLine, read_lines, rows_of
from opendev.store.session_files import SessionFiles
from opendev.store.sessions import SessionStore
from support.session_writer import __file__ as WRITER

GOOD = b'{"role":"user","content":"a"}\n'
NEW = TranscriptLine(at="t", message=UserMessage(content="new")).to_json()


def contents(files: SessionFiles) -> list[str]:
    return [line.message.content for line in files.read() if isinstance(line.message, UserMessage)]


@pytest.fixture
def files(tmp_path: Path) -> SessionFiles:
    return SessionFiles(tmp_path, "s1")


TAILS = {
    "no newline": b'{"role":"assis',
    "newline": b'{"role":"assis\n',
    "blank line": b'{"role":"assis\n\n',
    "twice": b'{"role":"assis\n{"role":"user","con\n',
    "NUL bytes": b"\0\0\0\0\0\0",
    "NUL bytes and newline": b"\0\0\0\n",
    "half a character": '{"role":"user","content":"é'.encode()[:-1],
    "a bracket": b"{",
    "an inner object": b'{"role":"assistant","tool_calls":[{"id":"c","arguments":{"a":1}',
    "long": b'{"role":"user","content":"' + b"x" * 200_000,
}


@pytest.mark.parametrize("tail", TAILS)
def test_d01_a_torn_tail_is_kept_aside_and_costs_nothing_else(files: SessionFiles, tail: str) -> None:
    files.transcript.write_bytes(GOOD + TAILS[tail])
    assert contents(files) == ["a"]
    files.append([NEW])
    assert contents(SessionFiles(files.record.parent, "s1")) == ["a", "new"]
    files.append([NEW])
    assert contents(files) == ["a", "new", "new"]
    for raw in files.transcript.read_bytes().splitlines():
        json.loads(raw)
    kept = files.transcript.with_name("s1.jsonl.bak")
    if TAILS[tail].strip(b"\0\n"):
        assert kept.read_bytes().strip() == TAILS[tail].strip()
        assert kept.stat().st_mode & 0o777 == 0o600
    else:
        assert not kept.exists()


@pytest.mark.parametrize(
    "whole",
    [
        b'{"role":"user","content":"b"}',
        b'{"role":"user","content":"b"}\r\n\n',
        b'{"role":"user",\n"content":"b"}\n',
        b'{\n"role":"user",\n\n"content":"b"\n}',
    ],
)
def test_d01_a_whole_record_without_its_line_break_is_kept(files: SessionFiles, whole: bytes) -> None:
    files.transcript.write_bytes(GOOD + whole)
    files.append([NEW])
    assert contents(files) == ["a", "b", "new"]
    assert not files.transcript.with_name("s1.jsonl.bak").exists()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"a":1}{"b":2}\n', [{"a": 1}, {"b": 2}]),
        (b'{"a":1} {"b":2}\n{"c":3}', [{"a": 1}, {"b": 2}, {"c": 3}]),
        (b'{"c":"x\ny"}\n{"d":1}\n', [{"c": "x\ny"}, {"d": 1}]),
        (b'{"c":"x\n\ty\n z"}\n', [{"c": "x\n\ty\n z"}]),
        (b'{"a":"\\ud800"}\n', [{"a": "\ud800"}]),
        ('{"a":"x\u2028y\u2029"}\n'.encode(), [{"a": "x\u2028y\u2029"}]),
        (b'{"a":"\x00\x01"}\n', [{"a": "\x01"}]),
        (b'\0\0\0{"a":1}\n', [{"a": 1}]),
        (b'\xef\xbb\xbf{"a":1}\r\n', [{"a": 1}]),
        (b'{"a":"\xff"}\n', [{"a": "\ufffd"}]),
        (b'noise\n[1]\n"x"\n7\n{"a":1}\n', [{"a": 1}]),
        (b'{"role":"us{"role":"user","content":"b"}\n', [{"role": "user", "content": "b"}]),
        (b'{"x":"torn\n{"role":"user","content":"b"}\n', [{"role": "user", "content": "b"}]),
        (b"{" * 100_000 + b"\n" + b'{"a":1}\n', [{"a": 1}]),
        (b"[" * 100_000 + b"\n" + b'{"a":1}\n', [{"a": 1}]),
    ],
)
def test_d03_what_can_be_read_is_read(raw: bytes, found: list[Any]) -> None:
    assert list(rows_of(io.BytesIO(raw))) == found


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udcffb", "\u2028\u2029\x85", "\x00\x1b[2J", "}{", "\ufeff", "\U0001f600"]
)
def test_d03_any_text_is_written_as_one_line_and_read_back(files: SessionFiles, text: str) -> None:
    call = ToolCall(id="c", name="n", arguments={"deep": [{text: text}]})
    messages = (
        SystemMessage(stable=text, dynamic=text),
        UserMessage(content=text),
        AssistantMessage(content=text, tool_calls=(call,), thinking=({"text": "x"},)),
        ToolMessage(call_id="c", name="n", content=text, is_error=True, summary=text),
    )
    files.append([TranscriptLine(at="t", message=message).to_json() for message in messages])
    raw = files.transcript.read_bytes()
    assert raw.count(b"\n") == len(raw.decode().splitlines()) == len(messages)
    assert tuple(line.message for line in files.read()) == messages


UPSTREAM: dict[str, Any] = {
    "id": "0123456789ab",
    "created_at": "2025-01-02T03:04:05",
    "updated_at": "2025-01-02T03:05:00",
    "messages": [
        {"role": "user", "content": "fix it", "timestamp": "2025-01-02T03:04:05", "metadata": {}},
        {
            "role": "assistant",
            "content": "I read.",
            "tool_calls": [
                {
                    "id": "t1",
                    "name": "read_file",
                    "parameters": {"file_path": "a"},
                    "result": "text",
                    "approved": True,
                },
                {"id": "t2", "name": "gone_tool", "parameters": {}, "result": None, "error": "no such tool"},
            ],
            "token_usage": {"prompt_tokens": 5},
            "thinking_trace": "hm",
        },
        {"role": "assistant", "content": "Done.", "tool_calls": []},
    ],
    "context_files": ["a"],
    "working_directory": "/w",
    "parent_id": None,
    "channel": "cli",
    "metadata": {"title": "Fix", "cost_tracking": {"total_cost_usd": 0.25, "api_call_count": 2}},
    "playbook": {"bullets": []},
}


@pytest.mark.req("SES-10")
def test_an_old_session_with_its_messages_inside_is_brought_over_once(tmp_path: Path) -> None:
    store = SessionStore(Layout(tmp_path / "home"), tmp_path)
    store.folder.mkdir(parents=True)
    original = json.dumps(UPSTREAM)
    path = store.folder / "0123456789ab.json"
    path.write_text(original)
    assert [(entry.title, entry.messageCount) for entry in store.entries()] == [("Fix", 5)]
    files = store.find("0123456789ab")
    said = files.history()
    assert [message.role for message in said] == ["user", "assistant", "tool", "tool", "assistant"]
    assert said[1] == AssistantMessage(
        content="I read.",
        tool_calls=(
            ToolCall(id="t1", name="read_file", arguments={"file_path": "a"}),
            ToolCall(id="t2", name="gone_tool"),
        ),
    )
    assert [m.is_error for m in said if isinstance(m, ToolMessage)] == [False, True]
    for _ in range(2):
        files.update(lambda meta: (meta or SessionMeta(id="?")).with_metadata(status="done"))
    assert files.history() == said
    record = json.loads(path.read_bytes())
    assert "messages" not in record
    assert (record["channel"], record["playbook"], record["context_files"]) == ("cli", {"bullets": []}, ["a"])
    assert record["schema"] == 1
    assert (store.folder / "0123456789ab.json.bak").read_text() == original
    assert len(files.transcript.read_bytes().splitlines()) == 3  # as they were
    with store.resume("0123456789ab") as session:
        assert session.carried.total_cost_usd == 0.25


def test_a_transcript_of_the_earlier_implementations_is_read_in_place(tmp_path: Path) -> None:
    store = SessionStore(Layout(tmp_path / "home"), tmp_path)
    store.folder.mkdir(parents=True)
    rows: list[dict[str, Any]] = UPSTREAM["messages"]
    (store.folder / "0123456789ab.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (store.folder / "0123456789ab.json").write_text(json.dumps({**UPSTREAM, "messages": []}))
    entry = {
        "sessionId": "0123456789ab",
        "title": None,
        "messageCount": 3,
        "projectPath": "/w",
        "created": "x",
    }
    (store.folder / "sessions-index.json").write_text(json.dumps({"version": 1, "entries": [entry]}))
    assert [entry.title for entry in store.entries()] == ["Fix"]
    with store.resume("0123456789ab") as session:
        session.files.append([NEW])
        assert len(session.files.history()) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"schema": None},
        {"title": 5},
        {"metadata": None},
        {"metadata": "x"},
        {"id": None},
        {"id": "other"},
        {"subagent_sessions": []},
        {"created_at": 5, "updated_at": None},
        {"schema": "x"},
        {"further": {"deep": [1]}},
    ],
)
def test_d09_records_of_other_versions_load_and_keep_what_is_unknown(
    files: SessionFiles, change: dict[str, Any]
) -> None:
    whole: dict[str, Any] = {
        "schema": 1,
        "id": "s1",
        "metadata": {"title": "T"},
        "mine": [1, {"x": 2}],
        **change,
    }
    files.record.write_text(json.dumps(whole))
    files.transcript.write_bytes(
        GOOD + b'{"type":"checkpoint","x":1}\n' + b'{"schema":999,"role":"user","content":"b","new":1}\n'
    )
    before = files.transcript.read_bytes()
    meta = files.meta()
    assert meta is not None
    assert meta.id == "s1"
    files.append([NEW])
    files.update(lambda now: (now or meta).with_metadata(status="done"))
    assert contents(files) == ["a", "b", "new"]
    assert files.transcript.read_bytes().startswith(before)
    record = json.loads(files.record.read_bytes())
    assert record["mine"] == [1, {"x": 2}]
    assert record.get("further", {"deep": [1]}) == {"deep": [1]}
    assert record["metadata"]["status"] == "done"


def test_d09_a_session_of_a_newer_version_is_only_read(tmp_path: Path) -> None:
    store = SessionStore(Layout(tmp_path / "home"), tmp_path)
    store.folder.mkdir(parents=True)
    record = json.dumps({"schema": 999, "id": "s1", "metadata": {"title": "T"}})
    (store.folder / "s1.json").write_text(record)
    (store.folder / "s1.jsonl").write_bytes(GOOD)
    assert [entry.title for entry in store.entries()] == ["T"]
    assert contents(store.find("s1")) == ["a"]
    with pytest.raises(OpenDevError, match="newer version"), store.resume("s1"):
        pass
    with pytest.raises(OpenDevError, match="only reads it"):
        store.find("s1").update(lambda meta: meta or SessionMeta(id="s1"))
    assert (store.folder / "s1.json").read_text() == record


@pytest.mark.req("SES-03")
def test_a_lock_that_is_not_given_in_time_is_a_failure(tmp_path: Path) -> None:
    files = SessionFiles(tmp_path, "s1", lock_s=0.05)
    with FileLock(str(tmp_path / "s1.lock")):
        for change in (lambda: files.append([NEW]), lambda: files.update(lambda _: SessionMeta(id="s1"))):
            with pytest.raises(OpenDevError, match="held the lock") as caught:
                change()
            assert caught.value.info.kind is ErrorKind.INFRA
    assert not files.transcript.exists()
    files.append([NEW])


@pytest.mark.req("SES-03", "SES-05")
@pytest.mark.slow
def test_d05_sixteen_processes_write_one_session_and_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    names = [chr(97 + number) for number in range(16)]
    command = [sys.executable, WRITER, str(tmp_path / "home"), str(tmp_path / "p"), "".join(names), "2"]
    writers = subprocess.Popen(command)
    store = SessionStore(Layout(tmp_path / "home"), tmp_path / "p")
    while writers.poll() is None:
        files = store.files("shared")
        if files.record.exists():
            json.loads(files.record.read_bytes())
            assert len(store.entries()) <= 1
    assert writers.returncode == 0
    found = contents(store.files("shared"))
    assert sorted(text.split(":")[0] + text.split(":")[1] for text in found) == sorted(
        f"{name}{number}" for name in names for number in range(2)
    )
    meta = store.files("shared").meta()
    assert meta is not None
    assert {name: meta.metadata[name] for name in names} == dict.fromkeys(names, 1)
    assert [entry.sessionId for entry in store.entries()] == ["shared"]
    assert [p.name for p in store.folder.iterdir() if p.name.startswith(".") or p.name.endswith(".bak")] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.req("SES-03")
def test_a_full_disk_is_told_and_leaves_whole_files(small_disk: Path) -> None:
    store = SessionStore(Layout(small_disk / "home"), small_disk)
    files = store.files("s1")
    line = TranscriptLine(at="t", message=UserMessage(content="x" * 9000)).to_json()
    files.append([NEW])
    files.update(lambda _: SessionMeta(id="s1", metadata={"message_count": 1, "title": "T"}))
    record = files.record.read_bytes()

    def fill() -> None:
        while True:
            files.append([line, line])

    with pytest.raises(OpenDevError, match="No space left") as caught:
        fill()
    assert caught.value.info.kind is ErrorKind.INFRA
    assert "Free disk space" in caught.value.info.hint
    written = len(files.read())
    assert written % 2 == 1  # of the two that did not fit neither is there
    subprocess.run(f"cat /dev/zero > {small_disk}/ballast", shell=True, check=False, capture_output=True)
    big = {"message_count": written, "title": "T", "todos": ["x" * 20_000]}
    with pytest.raises(OpenDevError, match="No space left"):
        files.update(lambda _: SessionMeta(id="s1", metadata=big))
    assert files.record.read_bytes() == record
    assert [entry.title for entry in store.entries()] == ["T"]
    (small_disk / "ballast").unlink()
    files.append([NEW])
    assert contents(files)[-1] == "new"


def test_a_clock_that_jumps_back_does_not_change_what_is_newest(tmp_path: Path) -> None:
    store = SessionStore(Layout(tmp_path / "home"), tmp_path)
    for id, at in (("before", "2099-01-01T00:00:00+00:00"), ("after", "1999-01-01T00:00:00+00:00")):
        files = store.files(id)
        files.append([NEW])
        meta = SessionMeta(id=id, updated_at=at, metadata={"message_count": 1})
        files.update(lambda _, meta=meta: meta)
    assert store.newest() == "after"


def test_two_projects_that_share_a_folder_do_not_share_sessions(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home")
    for project in (tmp_path / "a-b/c", tmp_path / "a/b-c"):
        project.mkdir(parents=True)
        store = SessionStore(layout, project)
        files = store.files(project.name.replace("-", ""))
        files.append([NEW])
        made = SessionMeta(id=files.id, working_directory=str(project), metadata={"message_count": 1})
        files.update(lambda _, made=made: made)
    assert layout.project_path(tmp_path / "a-b/c") == layout.project_path(tmp_path / "a/b-c")
    assert SessionStore(layout, tmp_path / "a-b/c").newest() == "c"


def test_a_long_path_has_a_folder_of_its_own(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    long = [Path("/" + "/".join(["é" * 40] * 10 + [end])) for end in ("one", "two")]
    first, second = (layout.project_path(path) for path in long)
    assert first != second
    assert len(first.name.encode()) <= 200
    assert layout.project(long[0]).is_dir()


def test_lines_of_the_first_version_are_read() -> None:
    old = b'{"schema":1,"at":"t","message":{"role":"user","content":"a","msg_class":"user","images":[]}}\n'
    assert list(read_lines([old])) == [TranscriptLine(at="t", message=UserMessage(content="a"))]


def test_d07_a_file_that_is_a_mount_point_is_replaced_in_place(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "state" / "target"
    target.parent.mkdir()
    source.write_text("old")
    target.write_text("")
    if subprocess.run(["mount", "--bind", source, target], capture_output=True, check=False).returncode:
        pytest.skip("no bind mount can be made here")
    try:
        write_atomic(target, b"new")
        assert target.read_text() == source.read_text() == "new"
        assert [entry.name for entry in target.parent.iterdir()] == ["target"]
    finally:
        subprocess.run(["umount", "-l", target], check=True)


def test_a_state_root_that_is_read_only_lists_what_it_has(small_disk: Path) -> None:
    store = SessionStore(Layout(small_disk / "home"), small_disk)
    files = store.files("s1")
    files.append([NEW])
    files.update(lambda _: SessionMeta(id="s1", metadata={"message_count": 1, "title": "T"}))
    (store.folder / "sessions-index.json").unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert [entry.title for entry in store.entries()] == ["T"]
    with pytest.raises(OpenDevError, match="Read-only file system"):
        files.append([NEW])
    with pytest.raises(OpenDevError, match="Read-only file system"), store.resume():
        pass


def test_a_record_that_cannot_be_read_is_not_written_over(files: SessionFiles) -> None:
    files.append([NEW])
    files.record.mkdir()
    with pytest.raises(OpenDevError, match="Could not read"):
        files.update(lambda meta: meta or SessionMeta(id="s1"))
    assert files.record.is_dir()
    assert contents(files) == ["new"]
