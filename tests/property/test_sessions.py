"""Whatever a crash leaves of a transcript: the whole records before the damage are read, and what is added afterwards is read too (D01, D03)."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from opendev.core.chat import Message, UserMessage
from opendev.store.records import TranscriptLine, read_lines
from opendev.store.session_files import SessionFiles
from support.values import values_of

MESSAGES = st.lists(
    st.one_of(values_of(UserMessage), st.builds(UserMessage, content=st.text(min_size=1))), max_size=4
)
NEW = UserMessage(content="new")


def lines(messages: list[Message]) -> list[bytes]:
    return [TranscriptLine(at="t", message=message).to_json().encode() + b"\n" for message in messages]


@settings(max_examples=60, deadline=None)
@given(messages=MESSAGES, data=st.data())
def test_a_cut_at_any_byte_costs_the_record_it_hits(messages: list[Message], data: st.DataObject) -> None:
    whole = b"".join(lines(messages))
    cut = data.draw(st.integers(0, len(whole)))
    tail = data.draw(st.sampled_from((b"", b"\n", b"\n\n", b"\0\0\0", b"\0\n")))
    kept = [
        number for number in range(len(messages) + 1) if sum(map(len, lines(messages[:number]))) <= cut + 1
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = SessionFiles(Path(folder), "s")
        files.transcript.write_bytes(whole[:cut] + tail)
        files.append([TranscriptLine(at="t", message=NEW).to_json()])
        found = [line.message for line in files.read()]
        assert found == [*messages[: kept[-1]], NEW]
        assert files.transcript.read_bytes().count(b"\n") == len(found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.binary(max_size=60) | st.text(alphabet='{}[]":,role\\ n1', max_size=60).map(str.encode), max_size=8
    )
)
def test_noise_is_never_an_error(noise: list[bytes]) -> None:
    good = lines([NEW])[0]
    found = [line.message for line in read_lines([*noise, b"\n", good])]
    assert found[-1:] == [NEW]
