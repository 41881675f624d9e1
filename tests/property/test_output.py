"""The output buffer: any bytes in any chunks give the same bounded, clean text."""

# pyright: reportPrivateUsage=false

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opendev.tools.shell.output import HELD, OutputBuffer, clean

NOISE = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\b",
        b"\x1b[31m",
        b"\x1b[2K",
        b"\x1b]0;t\x07",
        b"\xe2\x9c\x93",
        b"\xff",
        b"\0",
        b"word ",
    ]
)
BYTES = st.lists(NOISE | st.binary(max_size=20), max_size=60).map(b"".join)


def fill(chunks: list[bytes], head: int = 50, tail: int = 40, whole: int = 120) -> OutputBuffer:
    buffer = OutputBuffer(head=head, tail=tail, whole=whole)
    for chunk in chunks:
        buffer.feed(chunk)
    buffer.finish()
    return buffer


@pytest.mark.req("SHL-06")
@example(b"\xe2\x9c\x93\r\x1b[2K", 1)
@example(b"a\r\x1b]0;t\r\nb\x07\n", 2)
@given(BYTES, st.integers(1, 7))
def test_chunk_borders_do_not_matter(data: bytes, size: int) -> None:
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert fill(pieces).text() == fill([data]).text()


@given(BYTES)
def test_the_text_is_bounded_and_clean(data: bytes) -> None:
    text = fill([data]).text()
    assert len(text) <= 120 + len("\n[... 000000 bytes omitted ...]\n")
    assert not set(text) & {chr(i) for i in range(32) if chr(i) not in "\n\t"}


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40), max_size=40))
def test_plain_text_keeps_head_and_tail_and_counts_the_rest(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    buffer = fill([text.encode()])
    if len(text) <= 120:
        assert (buffer.text(), buffer.omitted_bytes) == (text, 0)
    else:
        assert buffer.text().startswith(text[:50])
        assert buffer.text().endswith(text[-40:])
        assert buffer.omitted_bytes == len(text[50:-40].encode())


@given(st.integers(0, 3 * HELD), st.sampled_from([b"x", b"\r5%", b"\x1b[2K7"]))
def test_an_endless_line_is_not_held(count: int, piece: bytes) -> None:
    buffer = OutputBuffer()
    block = piece * 4096
    for _ in range(min(count, HELD) // 4096):
        buffer.feed(block)
        assert len(buffer._line) <= HELD
    buffer.feed(b"\nDONE\n")
    buffer.finish()
    assert buffer.text().endswith("DONE\n")


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r100%\n", "100%\n"),
        ("10%\x1b[2K\x1b[1G100%\n", "100%\n"),
        ("|\b/\b-\bok\n", "ok\n"),
        ("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "red link\n"),
        ("\x1b(Bplain\x1b=\x1b>\n", "plain\n"),
        ("one \x00 two\n", "one \ufffd two\n"),
        ("x\x00y\x00z\x00" * 4 + "\n", "x[binary data, about 23 bytes]\n"),
    ],
)
def test_what_a_person_would_see(raw: str, seen: str) -> None:
    assert clean(raw) == seen
