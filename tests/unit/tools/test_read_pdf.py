"""read_pdf on real files, whole, hostile and encrypted (PDF-01)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import ErrorKind
from opendev.core.tool import ToolResult
from opendev.tools.read_pdf import MAX_CHARS, TOOL, Args
from pypdf import PdfWriter
from support.tool_context import make_context


def pdf(*pages: str, title: str = "Turtles", author: str = "") -> bytes:
    """A PDF by hand: one text line per line of a page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", f"<< /Title ({title}) /Author ({author}) >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]  # fmt: skip
    kids: list[str] = []
    for text in pages:
        drawn = "".join(f"({line}) Tj 0 -12 Td " for line in text.splitlines())
        stream = f"BT /F1 10 Tf 20 700 Td {drawn}ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 720] /Resources << /Font << /F1 4 0 R >> >> "
            f"/Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    body, places = "%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(body)
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
    body += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 3 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return body.encode("latin-1")


async def read(root: Path, name: str = "a.pdf", **args: Any) -> ToolResult:
    return await TOOL.run(Args(file_path=name, **args), make_context(root))


@pytest.mark.req("PDF-01", "SAF-07")
async def test_text_and_metadata_of_a_range_of_pages(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("first page\nsecond line", "page two", "page three", author="Ann"))
    whole = await read(tmp_path)
    assert whole.data == {
        "pages": 3,
        "first": 1,
        "last": 3,
        "metadata": {"Title": "Turtles", "Author": "Ann"},
    }
    assert "Title: Turtles" in whole.text
    assert "--- page 1 of 3 ---\nfirst page\nsecond line\n--- page 2 of 3 ---\npage two" in whole.text
    assert whole.text.startswith('<outside source="a.pdf">')
    assert TOOL.read_only
    for pages, shown in (("2", ["two"]), ("2-", ["two", "three"]), ("1-2", ["first", "two"]), (" 2 - 9 ", ["two", "three"])):  # fmt: skip
        text = (await read(tmp_path, pages=pages)).text
        assert [word for word in ("first", "two", "three") if f"{word}" in text.split("---", 2)[-1]] == shown
    assert "has 3 pages; page 4 is past its end" in (await read(tmp_path, pages="4")).text
    for wrong in ("0", "3-1", "x", "-2", "1,2"):
        assert "is no range of pages" in (await read(tmp_path, pages=wrong)).text


@pytest.mark.req("PDF-01")
async def test_an_encrypted_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("secret words"))
    writer = PdfWriter(clone_from=tmp_path / "a.pdf")
    writer.encrypt("key", algorithm="RC4-128")
    writer.write(tmp_path / "b.pdf")
    locked = await read(tmp_path, "b.pdf")
    assert not locked.ok
    assert "b.pdf is encrypted" in locked.text
    assert "the password is wrong" in (await read(tmp_path, "b.pdf", password="x")).text
    assert "secret words" in (await read(tmp_path, "b.pdf", password="key")).text


@pytest.mark.req("PDF-01")
async def test_long_text_is_cut_and_says_where_to_go_on(tmp_path: Path) -> None:
    line = "\n".join(["word " * 20] * 100)
    (tmp_path / "a.pdf").write_bytes(pdf(*[line] * 8))
    result = await read(tmp_path)
    assert MAX_CHARS < len(result.text) < MAX_CHARS + 2_000
    assert result.data is not None
    assert f'go on with pages="{result.data["last"]}-"' in result.text


async def test_what_is_no_readable_pdf(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_text("plain text")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.4\nrubbish\n%%EOF")
    (tmp_path / "c.pdf").write_bytes(pdf(""))
    assert "is no PDF file" in (await read(tmp_path)).text
    assert "cannot be read as PDF" in (await read(tmp_path, "b.pdf")).text
    assert "hold no text" in (await read(tmp_path, "c.pdf")).text
    missing = await read(tmp_path, "none.pdf")
    assert missing.error is not None
    assert missing.error.kind is ErrorKind.NOT_FOUND
    assert "refused" in (await read(tmp_path, "../a.pdf")).text
