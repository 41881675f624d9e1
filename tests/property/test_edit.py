"""Random edits of random files: never at a wrong place, never a byte outside of the edit."""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from opendev.core.errors import OpenDevError
from opendev.tools.edit.canonical import folded_line
from opendev.tools.edit.chain import edit
from opendev.tools.edit.document import Document
from opendev.tools.files import Text, decode, encode, splits_character

WORDS = [
    "a",
    "b = 1",
    "if  x:",
    "return (y)",
    "}",
    "'q'",
    "\u201cq\u201d",
    "p\\n",
    "12\tz",
    "",
    "",
    "caf\u00e9",
    "\u30bd",
]
INDENTS = ["", "\t", "\t\t", "    ", "  ", "\t  "]
CODECS = ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp932"]
MARKS = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16": b"\xff\xfe"}


@dataclass(frozen=True)
class Sample:
    """Lines with their ends; the model asks to change line ``target`` of the lines ``first`` to ``last``."""

    lines: list[str]
    ends: list[str]
    codec: str
    first: int
    last: int
    target: int
    old: str
    new: str


def _perturb(draw: st.DrawFn, line: str) -> str:
    kind = draw(st.sampled_from(["same", "same", "tabs", "strip", "trail", "inner"]))
    if kind == "tabs":
        return line.replace("\t", "    ")
    if kind == "strip":
        return line.strip()
    if kind == "trail":
        return line + " "
    return line.replace("  ", " ") if kind == "inner" else line


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    codec = draw(st.sampled_from(CODECS))
    words = [word for word in WORDS if _fits(word, codec)]
    parts = (st.sampled_from(INDENTS), st.sampled_from(words), st.sampled_from(["", " "]))
    line = st.tuples(*parts).map("".join)
    lines = draw(st.lists(line, min_size=1, max_size=12))
    style = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]]))
    ends = [draw(st.sampled_from(style)) for _ in lines]
    if draw(st.booleans()):
        ends[-1] = ""
    first = draw(st.integers(0, len(lines) - 1))
    last = draw(st.integers(first, min(first + 4, len(lines) - 1)))
    target = draw(st.integers(first, last))
    old = [_perturb(draw, text) for text in lines[first : last + 1]]
    new = list(old)
    indent = new[target - first][: len(new[target - first]) - len(new[target - first].lstrip())]
    new[target - first] = f"{indent}CHANGED"
    terminated = draw(st.booleans())
    tail = draw(st.sampled_from(["\n", "\r\n"])) if terminated else ""
    join = "\r\n" if tail == "\r\n" else "\n"
    return Sample(lines, ends, codec, first, last, target, join.join(old) + tail, join.join(new) + tail)


def _fits(word: str, codec: str) -> bool:
    try:
        word.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def _bytes(sample: Sample) -> bytes:
    codec = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(sample.codec, sample.codec)
    text = "".join(line + end for line, end in zip(sample.lines, sample.ends, strict=True))
    return MARKS.get(sample.codec, b"") + text.encode(codec)


def _edit(before: Text, sample: Sample) -> bytes | None:
    try:
        edited = edit(before.text, sample.old, sample.new, path="f")
        if any(splits_character(before, offset) for offset in edited.offsets):
            return None
        return encode(before, edited.text, "f")
    except OpenDevError:
        return None


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.req("FIL-08")
@settings(
    max_examples=2_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(samples())
def test_only_the_line_meant_changes_or_nothing_is_written(sample: Sample) -> None:
    assume(sample.lines[sample.target].strip())
    data = _bytes(sample)
    before = decode(data, "f")
    assert encode(before, before.text, "f") == data
    after = _edit(before, sample)
    event("edited" if after else "refused")
    if after is None:
        return
    old, new = Document(before.text), Document(decode(after, "f").text)
    assert new.ends == old.ends
    changed = [k for k, pair in enumerate(zip(old.lines, new.lines, strict=True)) if pair[0] != pair[1]]
    assert len(changed) == 1
    (place,) = changed
    head, tail = new.lines[place].split("CHANGED")
    assert old.lines[place].startswith(head.rstrip())
    assert old.lines[place].endswith(tail.lstrip())
    assert _around(old.lines, place, sample), "the edit is at a wrong place"


def _around(lines: list[str], place: int, sample: Sample) -> bool:
    """Whether the lines around ``place`` are the ones asked for, blank lines and white space not counted."""
    asked = [folded_line(line) for line in sample.old.split("\n")]
    target = len([line for line in asked[: sample.target - sample.first] if line])
    asked = [line for line in asked if line]
    dense = [(k, folded_line(line)) for k, line in enumerate(lines) if line.strip()]
    first = [k for k, _ in dense].index(place) - target
    window = [line for _, line in dense[first : first + len(asked)]] if first >= 0 else []
    return len(window) == len(asked) and all(mine in real for mine, real in zip(asked, window, strict=True))
