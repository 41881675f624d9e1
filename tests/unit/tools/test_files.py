"""Bytes in, the same bytes out; all files written or none; what an agent has seen."""

import os
import stat
from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.scope import Scope
from opendev.tools.files import (
    MAX_BYTES,
    SeenHashes,
    Text,
    Write,
    decode,
    encode,
    read_bytes,
    splits_character,
    writable_place,
    write_all,
)
from support.tool_context import make_context


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain\n",
        "caf\u00e9 \u30bd \U0001f600\r\n".encode(),
        b"\xef\xbb\xbfmarked\n",
        b"\xef\xbb\xbf",
        "wide \u30bd\n".encode("utf-16-le").join([b"\xff\xfe", b""]),
        "wide \u30bd\n".encode("utf-16-be").join([b"\xfe\xff", b""]),
        b"caf\xe9 note\n",
        "\u30bd\u30fc\u30c9\n".encode("cp932"),
        "\u4e2d\u6587\n".encode("gb18030"),
        b"ends in the middle of a sign \xe3\x82",
        b"\x1b[31mred\x1b[0m\n",
    ],
)
def test_text_of_any_encoding_comes_back_byte_for_byte(data: bytes) -> None:
    text = decode(data, "f")
    assert encode(text, text.text, "f") == data


@pytest.mark.req("FIL-02")
@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n rest", "PNG image"),
        (b"%PDF-1.7 text", "PDF document"),
        (b"a\0b", "NUL bytes"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "NUL bytes"),
        (b"\xff\xfea", "damaged"),
        (bytes(range(1, 256)), "control bytes"),
    ],
)
def test_binary_data_is_refused_with_a_description(data: bytes, what: str) -> None:
    with pytest.raises(OpenDevError, match=f"f is a binary file .*{what}"):
        decode(data, "f")


def test_new_signs_for_an_unknown_encoding_are_refused() -> None:
    before = decode(b"caf\xe9\n", "f")
    with pytest.raises(OpenDevError, match="encoding is unknown"):
        encode(before, before.text + "\u00e9", "f")


def test_a_sign_that_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(OpenDevError, match=r"U\+D800"):
        encode(Text("", "utf-8"), "\ud800", "f")


def test_a_backslash_inside_a_double_byte_sign_is_no_start() -> None:
    text = decode(b"// \x83\\\x83N\nx = '\\'\n", "f")
    assert splits_character(text, 4)
    assert not splits_character(text, text.text.index("'\\'") + 1)
    latin = decode(b"caf\xe9 note\n", "f")
    assert not splits_character(latin, 4)


def test_a_write_keeps_mode_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_bytes(b"old")
    file.chmod(0o751)
    write_all([Write(file, "run.sh", b"old", b"new")])
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert [item.name for item in tmp_path.iterdir()] == ["run.sh"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_write_keeps_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    os.chown(file, 1234, 1235)
    write_all([Write(file, "f", b"old", b"new")])
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1235)


def test_a_file_that_changed_meanwhile_stops_all_writes(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"old")
    changes = [Write(tmp_path / name, name, b"old", b"new") for name in ("a", "b", "c")]
    (tmp_path / "b").write_bytes(b"other")
    with pytest.raises(OpenDevError, match="b changed while") as caught:
        write_all([Write(tmp_path / "new", "new", None, b"x"), *changes])
    assert caught.value.info.kind is ErrorKind.CONFLICT
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == {
        "a": b"old",
        "b": b"other",
        "c": b"old",
    }


def test_a_read_only_file_stops_all_writes_even_for_root(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "b").chmod(0o444)
    before = (tmp_path / "a").stat()
    with pytest.raises(OpenDevError, match=r"b is read-only \(mode 0444\)"):
        write_all([Write(tmp_path / name, name, b"old", b"new") for name in ("a", "b")])
    after = (tmp_path / "a").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_creating_never_replaces(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OpenDevError, match="exists already"):
        write_all([Write(tmp_path / "a", "a", None, b"new")])
    assert (tmp_path / "a").read_bytes() == b"old"


def test_hard_links_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert write_all([Write(tmp_path / "a", "a", b"old", b"new")]) == ("a",)
    assert (tmp_path / "b").read_bytes() == b"old"


def test_pipes_and_giants_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for name, what in (
        ("pipe", "not a regular file"),
        ("giant", "too large"),
        ("none", "does not exist"),
        (".", "directory"),
    ):
        with pytest.raises(OpenDevError, match=what):
            read_bytes(tmp_path / name, name)


@pytest.mark.req("FIL-15")
def test_paths_and_scope_are_checked_when_the_tool_runs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "allowed").symlink_to("other")
    ctx = make_context(root, scope=Scope(may=("src/**", "allowed"), avoid=("src/x",)))
    assert writable_place("src/a", ctx).name == "src/a"
    assert not writable_place(str(ctx.scratch / "note"), ctx).in_root
    for path in ("../a", "/etc/passwd", "out/a", "src/x", "b", ".git/config", "allowed"):
        with pytest.raises(OpenDevError) as caught:
            writable_place(path, ctx)
        assert caught.value.info.kind is ErrorKind.SCOPE


def test_seen_files_are_bounded() -> None:
    seen = SeenHashes(limit=2)
    for name in ("a", "b", "c"):
        seen.record(Path(name), b"1")
    seen.assert_fresh(Path("a"), b"2")  # forgotten: it passes like a file never read
    with pytest.raises(OpenDevError, match="c has changed since"):
        seen.assert_fresh(Path("c"), b"2")
