"""Writes that cannot tear: whole files, JSON lines by many processes, locks that fail instead of going ahead (CFG-08)."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.store.atomic import JsonlLog, Lock, write_atomic

APPENDER = Path(__file__).parents[2] / "support" / "appender.py"


def modes(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_a_write_replaces_the_whole_file_and_leaves_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.json"
    write_atomic(path, b"one" * 1000)
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert modes(path) == "0o600"
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]
    write_atomic(path, b"three", 0o644)
    assert modes(path) == "0o644"


def test_a_reader_sees_the_old_or_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "state"
    versions = [bytes([letter]) * 50_000 for letter in b"abcdef"]
    write_atomic(path, versions[0])
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for version in versions * 5:
        write_atomic(path, version)
    over.set()
    reader.join()
    assert seen <= set(versions)
    assert seen


def test_a_failed_rename_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.mkdir()
    (path / "inside").touch()
    with pytest.raises(OpenDevError, match="Could not write") as caught:
        write_atomic(path, b"x")
    assert caught.value.info.kind is ErrorKind.INFRA
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("place", ["a file", "/proc"])
def test_a_folder_that_cannot_be_written_is_an_infra_error(tmp_path: Path, place: str) -> None:
    folder = Path("/proc") if place == "/proc" else tmp_path / "file"
    if place == "a file":
        folder.write_text("no folder")
    for act in (lambda: write_atomic(folder / "x", b"x"), lambda: JsonlLog(folder / "x").append("{}")):
        with pytest.raises(OpenDevError, match="Could not") as caught:
            act()
        assert caught.value.info.kind is ErrorKind.INFRA
        assert "OPENDEV_HOME" in caught.value.info.hint


def test_lines_are_appended_privately(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "run" / "log.jsonl")
    assert list(log.read()) == []
    log.append('{"a": 1}')
    log.append('{"b": "ü"}')
    assert list(log.read()) == ['{"a": 1}', '{"b": "ü"}']
    assert modes(log.path) == "0o600"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b'{"a": 1}\n{"b": 2', ['{"a": 1}']),
        (b'{"a": 1}\n\0\0\0\0\n{"b": 2}\n', ['{"a": 1}', '{"b": 2}']),
        (b'{"a": 1}\n{"b"\0: 2}\n{"c": 3}\n', ['{"a": 1}', '{"c": 3}']),
        (b"\0\0\0\0", []),
        (b'\n\n  \n{"a": 1}\r\n', ['{"a": 1}']),
        (b'{"a": "\xff"}\n', ['{"a": "\ufffd"}']),
        (b"", []),
    ],
)
def test_reading_passes_over_what_a_crash_left(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    log = JsonlLog(tmp_path / "log.jsonl")
    log.path.write_bytes(content)
    assert list(log.read()) == lines


def test_a_torn_tail_does_not_spoil_the_next_line(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "log.jsonl")
    log.path.write_bytes(b'{"a": 1}\n{"torn')
    log.append('{"b": 2}')
    assert log.path.read_bytes() == b'{"a": 1}\n{"torn\n{"b": 2}\n'
    assert list(log.read())[::2] == ['{"a": 1}', '{"b": 2}']


@pytest.mark.slow
def test_sixteen_processes_append_at_once_and_no_line_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    names, count = "abcdefghijklmnop", 20
    command = [sys.executable, str(APPENDER), str(path), names, str(count)]
    subprocess.run(command, check=True, timeout=60)
    lines = list(JsonlLog(path).read())
    assert sorted(lines) == sorted(f"{name}:{n}:{name * 3000}" for name in names for n in range(count))
    for name in names:  # each process's lines keep their order
        own = [line for line in lines if line.startswith(f"{name}:")]
        assert own == [f"{name}:{n}:{name * 3000}" for n in range(count)]


def test_a_lock_that_is_held_fails_in_time_and_works_when_released(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "a.lock"
    entered = False
    with Lock(path):
        with pytest.raises(OpenDevError, match=str(path)) as caught, Lock(path, timeout_s=0.1):
            entered = True
        assert caught.value.info.kind is ErrorKind.INFRA
        assert not entered
    with Lock(path, timeout_s=0.1):
        entered = True
    assert entered


def test_a_lock_is_released_when_its_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with pytest.raises(ValueError, match="inside"), Lock(path):
        raise ValueError("inside")
    with Lock(path, timeout_s=0.1):
        pass
