"""read_file on real files."""

from pathlib import Path

import pytest
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.tool import ToolResult
from opendev.tools.read_file import TOOL, Args
from support.tool_context import make_context


async def read(root: Path, name: str, **more: int) -> ToolResult:
    return await TOOL.run(Args(file_path=name, **more), make_context(root))


@pytest.mark.req("FIL-01")
async def test_lines_are_numbered_as_cat_n_does(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n\ttwo\n\nfour")
    result = await read(tmp_path, "a.txt")
    assert result.text == "     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour"
    assert result.data == {"lines": 4, "first": 1, "last": 4}
    assert result.changed == ()


@pytest.mark.req("FIL-01")
async def test_a_window_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1, 11)))
    result = await read(tmp_path, "a", offset=3, max_lines=2)
    assert result.text == "     3\t3\n     4\t4\n[lines 3-4 of 10; go on with offset=5]"
    assert (await read(tmp_path, "a", offset=10)).text == "    10\t10"
    past = await read(tmp_path, "a", offset=11)
    assert not past.ok
    assert "has 10 lines" in past.text


async def test_two_thousand_lines_are_the_default(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n" * 2_500)
    text = (await read(tmp_path, "a")).text
    assert "go on with offset=2001" in text
    assert text.count("\tx") == 2_000


@pytest.mark.req("FIL-03")
async def test_long_content_keeps_head_and_tail(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{n:<99}\n" for n in range(1, 1_001)))
    text = (await read(tmp_path, "a")).text
    assert len(text) < 21_000
    assert "     1\t1 " in text
    assert "  1000\t1000 " in text
    assert "[… lines 94-907 left out …]" in text
    assert "offset=94" in text
    (tmp_path / "b").write_text("y" * 50_000)
    assert (await read(tmp_path, "b")).text == f"     1\t{'y' * 2_000}[… line cut: 48,000 more characters]"


@pytest.mark.req("FIL-02")
async def test_binary_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    result = await read(tmp_path, "a.png")
    assert not result.ok
    assert "binary file (PNG image; 10 bytes)" in result.text


async def test_what_cannot_be_read_is_explained(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert (await read(tmp_path, "empty")).text == "(empty is empty)"
    missing = await read(tmp_path, "none")
    assert missing.error is not None
    assert missing.error.kind is ErrorKind.NOT_FOUND
    for name in (".", "loop", "../x"):
        assert not (await read(tmp_path, name)).ok


async def test_foreign_bytes_are_shown_and_storable(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9\n")
    result = await read(tmp_path, "a")
    assert "     1\tcaf\ufffd" in result.text
    assert "not UTF-8" in result.text
    result.text.encode()


@pytest.mark.req("FIL-04")
async def test_reading_is_recorded_by_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    ctx = make_context(tmp_path)
    await TOOL.run(Args(file_path="a", max_lines=1), ctx)
    ctx.seen.assert_fresh(ctx.root / "a", b"one\n")
    with pytest.raises(OpenDevError):
        ctx.seen.assert_fresh(ctx.root / "a", b"two\n")


def test_reading_is_read_only_and_knows_other_names() -> None:
    assert TOOL.read_only
    assert TOOL.aliases["path"] == "file_path"
    assert TOOL.aliases["limit"] == "max_lines"
