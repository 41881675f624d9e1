"""The small language-server client against scripted servers, and positions in code units."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.ports import TextEdit
from opendev.tools.lsp.client import LspClient
from opendev.tools.lsp.positions import apply_edits, lines, slice_of, to_points, to_units
from opendev.tools.lsp.words import occurrences, tree, word_pattern
from opendev.tools.shell.reap import family

SERVER = """
import json, sys, time, subprocess
def read():
    size = 0
    while (line := sys.stdin.buffer.readline().strip()):
        size = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else size
    return json.loads(sys.stdin.buffer.read(size)) if size else sys.exit(0)
def write(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Type: x\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()
child = subprocess.Popen(["sleep", "300"])
while True:
    got = read()
    match got.get("method"):
        case "ask":
            write(id=7, method="workspace/configuration", params={"items": [{"section": "a"}]})
            write(method="log", params={})
            config = read()
            write(id=8, method="odd/request")
            write(id=got["id"], result=[config, read()])
        case "fail":
            write(id=got["id"], error={"code": 1, "message": "no such thing"})
        case "later":
            second = read()
            write(id=second["id"], result="second")
            write(id=got["id"], result="first")
        case "die":
            sys.exit(3)
        case "huge":
            sys.stdout.buffer.write(b"Content-Length: 99999999999\\r\\n\\r\\n"); sys.stdout.buffer.flush()
        case _:
            pass
"""


def answer(method: str, params: Any) -> Any:
    if method == "workspace/configuration":
        return [f"settings of {item['section']}" for item in params["items"]]
    raise NotImplementedError(method)


@pytest.fixture
async def client(tmp_path: Path):
    made = await LspClient.start(
        (sys.executable, "-c", SERVER), env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path, answer=answer
    )
    yield made
    await made.stop()
    assert not made.alive
    assert family(group=made.pid) == ()


@pytest.mark.req("SYM-04")
async def test_the_servers_requests_are_answered_while_waiting(client: LspClient) -> None:
    config, odd = await client.request("ask", {}, 5)
    assert config == {"jsonrpc": "2.0", "id": 7, "result": ["settings of a"]}
    assert (odd["id"], odd["error"]["code"]) == (8, -32601)


async def test_answers_find_their_question_in_any_order(client: LspClient) -> None:
    both = await asyncio.gather(client.request("later", {}, 5), client.request("now", {}, 5))
    assert both == ["first", "second"]


@pytest.mark.parametrize(
    ("method", "kind"), [("fail", ErrorKind.TOOL), ("die", ErrorKind.INFRA), ("huge", ErrorKind.INFRA)]
)
async def test_failures_are_sentences(client: LspClient, method: str, kind: ErrorKind) -> None:
    with pytest.raises(OpenDevError) as caught:
        await client.request(method, {}, 5)
    assert caught.value.info.kind is kind
    if method != "fail":
        with pytest.raises(OpenDevError) as caught:
            await client.request("ask", {}, 5)
        assert caught.value.info.kind is ErrorKind.INFRA


async def test_a_silent_server_times_out(client: LspClient) -> None:
    with pytest.raises(OpenDevError) as caught:
        await client.request("silence", {}, 0.2)
    assert caught.value.info.kind is ErrorKind.TIMEOUT
    assert "silence" in str(caught.value)
    assert client._waiting == {}  # pyright: ignore[reportPrivateUsage]


async def test_a_missing_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpenDevError) as caught:
        await LspClient.start((str(tmp_path / "nothing"),), env={}, cwd=tmp_path, answer=answer)
    assert caught.value.info.kind is ErrorKind.NOT_FOUND
    assert "nothing" in str(caught.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), st.data())
def test_columns_go_there_and_back(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(0, len(line)))
    for encoding in ("utf-8", "utf-16", "utf-32"):
        assert to_points(line, to_units(line, column, encoding), encoding) == column


def test_a_column_counts_code_units_of_the_encoding() -> None:
    assert [to_units("𝒳é=x", 3, e) for e in ("utf-8", "utf-16", "utf-32")] == [7, 4, 3]


def test_lines_end_as_the_protocol_says() -> None:
    assert lines("a\r\nb\rc\nd\u2028e\x0cf\n") == ["a", "b", "c", "d\u2028e\x0cf", ""]
    assert slice_of("ab\r\ncd\r\n", (0, 1), (1, 1)) == "b\r\nc"


def test_edits_are_applied_bottom_up_and_checked() -> None:
    text = "x = old\r\nold(old)\r\n"
    edits = tuple(TextEdit(start=(r, c), end=(r, c + 3), text="newer") for r, c in [(0, 4), (1, 0), (1, 4)])
    assert apply_edits(text, edits, "old") == "x = newer\r\nnewer(newer)\r\n"
    assert (
        apply_edits(text, (*edits, edits[0]), "old") == "x = newer\r\nnewer(newer)\r\n"
    )  # a double counts once
    stale = TextEdit(start=(0, 0), end=(0, 3), text="newer")
    with pytest.raises(OpenDevError, match="replace 'x ='"):
        apply_edits(text, (stale,), "old")
    with pytest.raises(OpenDevError, match="overlap"):
        apply_edits("aaaa", tuple(TextEdit(start=(0, c), end=(0, c + 2), text="b") for c in (0, 1)), "aa")


def test_a_tree_leaves_out_what_is_not_the_projects(tmp_path: Path) -> None:
    for path in (
        "a.py", "pkg/b.py", ".git/c.py", ".hidden/d.py", "node_modules/e.py", "env/lib/f.py", "other/g.py", "n.txt"
    ):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("old")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "other" / ".git").write_text("gitdir: /x")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "folder").symlink_to(tmp_path / "pkg")
    assert sorted(tree(tmp_path, frozenset({".py"}))) == ["a.py", "pkg/b.py"]
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\nold\xa0x\n")
    (tmp_path / "data.bin").write_bytes(b"\0old")
    assert [(one.path, one.line) for one in occurrences(tmp_path, "old", 9)] == [
        ("a.py", 1), ("latin.txt", 2), ("n.txt", 1), ("pkg/b.py", 1)
    ]  # fmt: skip
    assert len(occurrences(tmp_path, "old", 2)) == 2


def test_a_word_is_a_whole_identifier() -> None:
    assert word_pattern("a").search("b.a(c)")
    assert not word_pattern("a").search("ab _a a1 éa")
    assert word_pattern("Http*t").fullmatch("HttpClient")


def test_names_in_code_are_told_from_strings_and_comments(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old = 'old'\ns = 'old'\n# old\nf(old=1)\n")
    (tmp_path / "broken.py").write_text("def (\n  old 'x\n")
    (tmp_path / "a.md").write_text("old\n")
    found = [(one.path, one.line, one.code) for one in occurrences(tmp_path, "old", 9)]
    assert found == [
        ("a.md", 1, False), ("a.py", 1, True), ("a.py", 2, False), ("a.py", 3, False), ("a.py", 4, True),
        ("broken.py", 2, True),
    ]  # fmt: skip
