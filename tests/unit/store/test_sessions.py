"""Sessions of a project: ids, records, transcripts, index, resume, delete (SES-01..11, MOD-07)."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import Mode
from opendev.core.chat import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.session import CHILDREN, SNAPSHOTS, SessionMeta, Spent, title_of
from opendev.store.layout import Layout
from opendev.store.records import TranscriptLine
from opendev.store.sessions import SessionStore, read_meta


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    (tmp_path / "app").mkdir()
    return SessionStore(Layout(tmp_path / "home"), tmp_path / "app")


def say(store: SessionStore, id: str, *texts: str, **metadata: Any) -> None:
    """A session as an agent leaves it."""
    files = store.files(id)
    files.append([TranscriptLine(at="t", message=UserMessage(content=text)).to_json() for text in texts])
    count = len(files.read())
    files.update(
        lambda meta: (meta or SessionMeta(id=id)).with_metadata(
            **{"title": texts[0], "message_count": count, **metadata}
        )
    )


def texts(store: SessionStore, id: str) -> list[str]:
    return [line.message.content for line in store.files(id).read() if isinstance(line.message, UserMessage)]


def names(store: SessionStore) -> list[str]:
    return [entry.sessionId for entry in store.entries()]


@pytest.mark.req("SES-01", "CFG-08")
def test_a_session_is_a_record_without_messages_and_a_line_for_each_message(store: SessionStore) -> None:
    call = ToolCall(id="c", name="read_file", arguments={"file_path": "a\u2028\x00"})
    messages = (
        UserMessage(content="Fix it.\n\ud800"),
        AssistantMessage(content="So.", tool_calls=(call,)),
        ToolMessage(call_id="c", name="read_file", content="text"),
    )
    files = store.files("abcdefgh")
    files.append([TranscriptLine(at="2026", message=message).to_json() for message in messages])
    files.update(
        lambda _: SessionMeta(
            id="abcdefgh",
            created_at="t0",
            updated_at="t1",
            working_directory="/w",
            metadata={"title": "Fix it.", "summary": "So.", "cost_tracking": {"total_cost_usd": 0.5}},
        )
    )
    raw = files.transcript.read_bytes()
    assert raw.isascii()
    rows = [json.loads(line) for line in raw.splitlines()]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool"]
    assert all({"role", "content", "timestamp", "tokens"} <= row.keys() for row in rows)
    assert rows[1]["tool_calls"][0]["name"] == "read_file"
    assert files.history() == (UserMessage(content="Fix it.\n\ufffd"), *messages[1:])
    record = json.loads(files.record.read_bytes())
    assert "messages" not in record
    assert {"id", "created_at", "updated_at", "working_directory"} <= record.keys()
    assert {"title", "summary", "cost_tracking"} <= record["metadata"].keys()
    for path in (files.record, files.transcript, store.folder / "sessions-index.json"):
        if path.exists():
            assert path.stat().st_mode & 0o777 == 0o600
    assert store.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.req("SES-02")
def test_ids_are_eight_characters_out_of_62_and_new(store: SessionStore) -> None:
    seen: set[str] = set()
    for _ in range(200):
        with store.start() as session:
            seen.add(session.id)
    assert len(seen) == 200
    assert {len(id) for id in seen} == {8}
    assert set("".join(seen)) == set(string.ascii_letters + string.digits)


def test_titles_are_cut_put_on_one_line_and_name_the_type() -> None:
    assert title_of("Do\n  this.") == "Do this."
    assert title_of("x" * 200, "Planner") == f"{'x' * 80} (@Planner)"
    assert title_of("x" * 200, length=50) == "x" * 50


def test_links_are_bounded_and_a_call_has_one() -> None:
    made = SessionMeta(id="a")
    for number in range(CHILDREN + 5):
        made = made.with_child(f"c{number}", "x")
    assert len(made.subagent_sessions) == CHILDREN
    assert "c0" not in made.subagent_sessions
    assert made.with_child("c9", "y").subagent_sessions["c9"] == "y"


@pytest.mark.req("SES-11", "UND-06")
def test_tree_hashes_of_snapshots_are_kept_and_bounded(store: SessionStore) -> None:
    say(store, "s1", "one")
    for number in range(SNAPSHOTS + 5):
        made = SessionMeta(id="a").with_snapshot(f"tree{number}", "t", turn=number)
        assert made.snapshots == ({"tree": f"tree{number}", "at": "t", "turn": number},)
    store.files("s1").update(lambda meta: (meta or SessionMeta(id="s1")).with_snapshot("abc", "t"))
    store.files("s1").update(lambda meta: (meta or SessionMeta(id="s1")).with_snapshot("def", "t"))
    assert [row["tree"] for row in store.files("s1").meta().snapshots] == ["abc", "def"]  # type: ignore[union-attr]
    many = SessionMeta(id="a", metadata={"snapshots": [{"tree": str(n), "at": ""} for n in range(500)]})
    assert len(many.with_snapshot("new", "t").snapshots) == SNAPSHOTS
    assert SessionMeta(id="a", metadata={"snapshots": ["torn", {"tree": 1}]}).snapshots == ()


@pytest.mark.req("MOD-07")
def test_the_costs_of_several_runs_add_up() -> None:
    used = Usage(input=10, output=2, cached=1, cost_usd=0.5)
    made = SessionMeta(id="a").ended("t1", "failed", used, 3).ended("t2", "done", used, 1)
    assert made.metadata["cost_tracking"] == {
        "total_cost_usd": 1.0,
        "total_input_tokens": 20,
        "total_output_tokens": 4,
        "total_cached_tokens": 2,
        "api_call_count": 4,
    }
    assert (made.metadata["status"], made.updated_at) == ("done", "t2")
    blocks: tuple[object, ...] = (None, [], {"total_cost_usd": "much", "api_call_count": None})
    for block in blocks:
        assert Spent.read(block) == Spent()


@pytest.mark.req("SES-06")
def test_the_index_lists_newest_first_whatever_the_clock_says(store: SessionStore) -> None:
    assert store.entries() == ()
    for id in ("first", "second", "third"):
        say(store, id, f"about {id}")
    say(store, "first", "again")
    assert names(store) == ["first", "third", "second"]
    entry = store.entries()[1]
    assert (entry.title, entry.messageCount) == ("about third", 1)
    index = store.folder / "sessions-index.json"
    assert index.stat().st_size / 3 < 250
    assert index.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("SES-06")
@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        '{"entries": 5}',
        '{"version":1,"entries":[{"id":1}]}',
        "\0\0\0",
        "gone",
        "folder",
        "twice",
    ],
)
def test_a_damaged_index_is_built_again_without_empty_sessions(store: SessionStore, damage: str) -> None:
    for id in ("first", "second"):
        say(store, id, id)
    store.files("empty").update(lambda _: SessionMeta(id="empty"))
    (store.folder / "playbook.json").write_text("{}")
    index = store.folder / "sessions-index.json"
    whole = index.read_text()
    index.unlink()
    if damage == "folder":
        index.mkdir()
    elif damage == "twice":
        entry = json.loads(whole)["entries"][0]
        index.write_text(json.dumps({"entries": [entry, entry]}))
    elif damage != "gone":
        index.write_text(damage)
    assert sorted(names(store)) == ["first", "second"]
    if damage != "folder":
        assert {e["sessionId"] for e in json.loads(index.read_text())["entries"]} == {"first", "second"}


@pytest.mark.req("SES-06")
def test_sessions_the_index_lacks_are_added_and_deleted_ones_dropped(store: SessionStore) -> None:
    say(store, "first", "one")
    index = store.folder / "sessions-index.json"
    before = index.read_bytes()
    say(store, "second", "two")
    line = TranscriptLine(at="t", message=UserMessage(content="no record yet")).to_json()
    (store.folder / "third.jsonl").write_text(line + "\n")
    index.write_bytes(before)
    store.files("first").delete()
    assert sorted(names(store)) == ["second", "third"]
    assert json.loads(index.read_bytes())["entries"][-1]["messageCount"] == 1


@pytest.mark.req("SES-08")
def test_the_newest_of_this_project_is_resumed_with_all_it_was(store: SessionStore, tmp_path: Path) -> None:
    with pytest.raises(OpenDevError, match="no session of"):
        store.newest()
    say(store, "mine", "hello", mode="plan")
    say(store, "other", "hi")
    store.files("other").update(
        lambda meta: (meta or SessionMeta(id="other")).model_copy(update={"working_directory": "/elsewhere"})
    )
    with store.resume() as session:
        assert (session.id, session.fresh, session.mode()) == ("mine", False, Mode.PLAN)
        assert session.files.history() == (UserMessage(content="hello"),)
    with store.resume("other") as session:
        assert session.mode() is Mode.NORMAL


@pytest.mark.parametrize("id", ["../../etc/passwd", "", "nobody12", ".held", "a/b", "x" * 300])
def test_an_id_that_is_none_is_refused(store: SessionStore, id: str) -> None:
    say(store, "mine", "hello")
    with pytest.raises(OpenDevError) as caught:
        store.find(id)
    assert caught.value.info.kind is ErrorKind.USAGE


def test_a_session_has_one_holder(store: SessionStore) -> None:
    say(store, "mine", "hello")
    with store.resume("mine"):
        with pytest.raises(OpenDevError, match="in use by another process"), store.resume("mine"):
            pass
        with pytest.raises(OpenDevError, match="in use"):
            store.delete("mine")
        with store.start() as other:
            assert other.id != "mine"
    with store.resume("mine"):
        pass


@pytest.mark.req("SES-09")
def test_what_no_ledger_knows_is_carried_on(store: SessionStore, tmp_path: Path) -> None:
    say(store, "old", "hello", cost_tracking={"total_cost_usd": 2.0, "api_call_count": 3})
    new = Spent(total_cost_usd=1.0, total_input_tokens=5, api_call_count=1)
    for _ in range(2):
        with store.resume("old") as session:
            session.save_cost(new)  # the ledger's totals, which span the runs since
            (tmp_path / "home/runs/old").mkdir(parents=True, exist_ok=True)
            (tmp_path / "home/runs/old/ledger.jsonl").touch()
        found = store.files("old").meta()
        assert found is not None
        assert found.spent == Spent(total_cost_usd=3.0, total_input_tokens=5, api_call_count=4)


def test_deleting_takes_everything_that_is_kept_for_a_session(store: SessionStore, tmp_path: Path) -> None:
    say(store, "mine", "hello")
    say(store, "other", "hi")
    home = tmp_path / "home"
    for place in ("runs/mine", "transcripts/mine", "scratch/main-mine", "scratch/child", "runs/other"):
        (home / place).mkdir(parents=True)
    (home / "transcripts/mine/child.json").write_text("{}")
    store.delete("mine")
    left = {
        path.relative_to(home).as_posix()
        for path in home.rglob("*")
        if "mine" in path.name or "child" in path.name
    }
    assert {name for name in left if not name.endswith((".lock", ".held"))} == set()
    assert names(store) == ["other"]
    assert (home / "runs/other").is_dir()


def test_a_record_that_is_torn_costs_nothing_but_itself(store: SessionStore) -> None:
    say(store, "mine", "hello")
    files = store.files("mine")
    files.record.write_text('{"id": "a", "torn')
    assert read_meta(files.record) is None
    assert names(store) == ["mine"]
    say(store, "mine", "again")
    assert texts(store, "mine") == ["hello", "again"]
    assert (store.folder / "mine.json.bak").read_text() == '{"id": "a", "torn'
