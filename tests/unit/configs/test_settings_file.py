"""Bad settings files, each told with its line, none of them changed or believed; and values that are secrets (CFG-04, CFG-08)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.configs.set_value import changed_settings
from opendev.configs.settings_file import MAX_BYTES, parse_settings, read_settings, without_secrets
from opendev.core.errors import OpenDevError

GOOD = '{\n  "model": "a/b",\n  "agents": {\n    "max_depth": 1\n  }\n}\n'
BAD = {
    "a comma too many": (b'{\n "model": "a/b",\n}', 3, "a comma too many"),
    "a comment": (b'{\n // mine\n "model": "a/b"\n}', 2, "JSON has no comments"),
    "single quotes": (b"{\n 'model': 'a/b'\n}", 2, "double quotes"),
    "cut off": (b'{\n "model": "a/', 2, "not valid JSON"),
    "two objects": (b'{"model": "a/b"}\n{"model": "c/d"}', 2, "not valid JSON"),
    "a list": (b"[1]", 1, "one JSON object"),
    "no number": (b'{"temperature": NaN}', 1, "NaN is no JSON number"),
    "a huge number": (b'{"max_tokens": ' + b"9" * 5_000 + b"}", 1, "not valid JSON"),
    "UTF-16": (GOOD.encode("utf-16"), 1, "no UTF-8 text"),
    "Latin-1": ('{\n "model": "é"}'.encode("latin-1"), 2, "no UTF-8 text"),
    "NUL": (b"\0\0\0\0", 1, "not valid JSON"),
    "a bomb of brackets": (b'{"agents": ' + b"[" * 100_000, 1, "nested too deeply"),
    "deep": (b'{"a": ' * 30 + b"1" + b"}" * 30, 1, "nested too deeply"),
    "twice": (b'{\n "model": "a/b",\n "model": "c/d"\n}', 3, "`model` stands twice"),
    "twice below": (
        b'{\n "agents": {\n "max_depth": 1,\n\n "max_depth": 2}\n}',
        5,
        "`agents.max_depth` stands twice",
    ),
}


@pytest.mark.req("CFG-08")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_with_its_line_and_left_alone(tmp_path: Path, name: str) -> None:
    data, line, why = BAD[name]
    path = tmp_path / "settings.json"
    path.write_bytes(data)
    file = read_settings(path)
    assert [(problem.place, problem.line) for problem in file.problems] == [(str(path), line)]
    assert why in file.problems[0].what
    with pytest.raises(OpenDevError, match=r"settings\.json"):
        changed_settings(file, "model", "x/y")
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "data",
    [
        GOOD.encode(),
        GOOD.encode("utf-8-sig"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "").encode(),
        GOOD.replace("{\n", '{\n"$schema": "x",', 1).encode(),
    ],
)
def test_marks_and_line_ends_of_other_systems_are_fine(tmp_path: Path, data: bytes) -> None:
    file = parse_settings(tmp_path / "s", data)
    assert file.problems == ()
    assert {**file.settings, "$schema": ""} == {**json.loads(GOOD), "$schema": ""}


@pytest.mark.parametrize("data", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"{}"])
def test_an_empty_file_says_nothing(tmp_path: Path, data: bytes) -> None:
    file = parse_settings(tmp_path / "s", data)
    assert (file.settings, file.problems) == ({}, ())


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """Also behind a link that came with a repository: neither an endless device nor a pipe holds anything up."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "big").write_bytes(b" " * (MAX_BYTES + 1))
    told = {path.name: [p.what for p in read_settings(path).problems] for path in sorted(tmp_path.iterdir())}
    assert told == {
        "big": ["it is larger than 1,000,000 bytes"],
        "device": ["it cannot be read: it is no regular file"],
        "folder": ["it cannot be read: Is a directory"],
        "loop": ["it cannot be read: Too many levels of symbolic links"],
        "pipe": ["it cannot be read: it is no regular file"],
    }
    assert read_settings(tmp_path / "none").problems == ()
    (tmp_path / "gone").symlink_to("nowhere")
    assert read_settings(tmp_path / "gone").problems == ()


KEY = "sk-proj-0123456789abcdef"


@pytest.mark.req("CFG-04")
@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("model", KEY, True),
        ("key", "abc", True),
        ("openai-key", "abc", True),
        ("OPENAI_KEY", "abc", True),
        ("aws_access_key_id", "abc", True),
        ("private_key", "abc", True),
        ("passwd", "abc", True),
        ("Authorization", f"Bearer {KEY}", True),
        ("Authorization", "Bearer 0123456789", True),
        ("Authorization", "Bearer ${TOKEN}", False),
        ("GITHUB_TOKEN", "${GITHUB_TOKEN}", False),
        ("GITHUB_TOKEN", "${GITHUB_TOKEN:-abc}", True),
        ("GITHUB_TOKEN", "ghp_0123456789abcdef", True),
        ("args", ["--token", "ghp_0123456789abcdef"], True),
        ("args", ["--port", "80"], False),
        ("max_tokens", 9, False),
        ("model", "openai/gpt-5", False),
        ("model", "sk-8b/mini", False),
    ],
)
def test_what_looks_like_a_secret(name: str, value: Any, secret: bool) -> None:
    kept, removed = without_secrets({"a": {name: value}})
    assert removed == ((f"a.{name}",) if secret else ())
    assert kept == {"a": {} if secret else {name: value}}


NAMES = st.text(st.characters(codec="utf-8", exclude_characters=".0123456789"), min_size=1, max_size=5)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=40)
@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_the_line_of_every_key_is_found(tree: dict[str, Any]) -> None:
    """One name a line: what the place of a key says is where its name stands."""
    text = json.dumps(tree, indent=1)
    file = parse_settings(Path("s"), text.encode())
    assert file.problems == ()
    rows = text.splitlines()
    for key, line in file.lines.items():
        name = key.rpartition(".")[2]
        assert name.isdigit() or f"{json.dumps(name)}: " in rows[line - 1]


def test_the_line_of_a_key_is_not_that_of_its_namesake(tmp_path: Path) -> None:
    text = '{\n "agents": {"x": "model"},\n "prices": {\n  "agents": {\n   "max": 1}\n },\n "hooks": {"Stop": [\n  {"hooks": [\n   {"command": 1}]}]}}'
    file = parse_settings(tmp_path / "s", text.encode())
    assert file.line("prices.agents.max") == 5
    assert file.line("hooks.Stop.0.hooks.0.command") == 9
    assert file.line("hooks.Stop.0.matcher") == 8
    assert file.line("none") == 1
